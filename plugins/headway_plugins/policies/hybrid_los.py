"""Hybrid-LOS: Delayed-LOS for batch jobs mixed with jobs that must start at a given second.

R. Kumar, Z. Shae, H. Jamjoom: Scheduling Batch and Heterogeneous Jobs with Runtime Elasticity in a
Parallel Processing Environment. 2012, Algorithms 2 and 3.

Beside the symbols of :mod:`headway_plugins.policies.los`: W_d the dedicated jobs that are not due
yet, by requested start; fret_d and frec_d the end time and end capacity of the dedicated freeze.
With W_d empty it is Delayed-LOS. Otherwise, in each round of an instant:

1. dedicated jobs that are due stand at the head of the queue, and count as skipped C_s times;
2. the head was skipped less than C_s times, whether it fits or not: Reservation_DP over the queue,
   the head included, under the dedicated freeze: what runs past the earliest requested start must fit
   in what the dedicated jobs of that start leave. If the head is not in the chosen set, its skip count
   rises, once an instant;
3. the head was skipped C_s times or more: it starts if it fits and respects the dedicated freeze.

Decisions on what the paper leaves open or gets wrong:

- A running job that is expected to end exactly at the requested start counts as ended (the paper's
  index keeps it).
- When the dedicated jobs do not fit at their start, the freeze moves to the first expected end at
  which they do (lines 24 to 26, with their need instead of the head's). It stands for the whole
  instant: no start of that may take what is booked for one of them.
- Lines 35 to 38 start the head without checking that it fits. Here, in case 3, a head that does not
  fit, or fits but would break the dedicated freeze, is booked at the earliest time at which it fits
  for its whole estimate beside the dedicated jobs, and the jobs behind it are packed under both freezes.
- Due dedicated jobs are served by requested start, then arrival, each as soon as it can without
  delaying an earlier job, and before jobs that are not due yet.
- ``freeze: first`` (the paper's, and the default) keeps processors for the earliest group of dedicated
  jobs; ``freeze: all`` for each group, where every group is a freeze of its own in the packing, which is
  what a real site wants.
- It is asked at every arrival, as in the paper ("at next event"), because an instant may count as a skip.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Literal

import pydantic

from headway.decisions import Decision
from headway.events import Event
from headway.hookspecs import hookimpl
from headway.plugins import Again
from headway.results import RunResult
from headway.state import Job, State, Status
from headway.view import View
from headway_plugins.policies.dedicated import (
    DEDICATED,
    DedicatedQueue,
    dedicated_delay,
    dedicated_first,
    requested_start,
)
from headway_plugins.policies.dedicated_reservations import DedicatedReservations, ReservingOptions
from headway_plugins.policies.los import DelayedLos, DelayedLosOptions, Round

_INF = float("inf")


class HybridLosOptions(DelayedLosOptions, ReservingOptions):
    """Options of Hybrid-LOS."""

    freeze: Literal["first", "all"] = pydantic.Field(
        default="first",
        description="reserve processors for the earliest group of dedicated jobs only, or for all groups",
    )


class HybridLos(DelayedLos):
    """Hybrid-LOS: Delayed-LOS that keeps processors for dedicated jobs, which start on time."""

    Options = HybridLosOptions
    traits = replace(DelayedLos.traits, observes=DEDICATED, ask_again=Again.ANY_EVENT)

    def __init__(self, options: HybridLosOptions) -> None:
        super().__init__(options)
        self._dedicated = DedicatedQueue()
        self._reservations = DedicatedReservations(options)

    @hookimpl
    def startup(self, state: State, capabilities: frozenset[type]) -> None:
        self._reservations.startup(state, capabilities)

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        self._dedicated.observe(event, state)
        self._reservations.observe(event, state)

    @hookimpl
    def queue_key(self, job: Job) -> tuple[int, float]:
        return dedicated_first(job)

    @hookimpl
    def prepare(self, view: View) -> None:
        self._dedicated.keep(view, self.options.freeze)

    @hookimpl
    def control(self, state: State) -> Iterator[Decision]:
        yield from self._reservations.decide(state, self._dedicated.bookings)

    @hookimpl
    def register_metrics(self) -> dict[str, Callable[[RunResult], Any]]:
        return {"dedicated jobs": dedicated_delay}

    def _step(self, round_: Round) -> bool:
        head = round_.waiting[0]
        ahead = [b.start for b in round_.view.bookings if b.job.status is Status.WAITING and b.start != _INF]
        if not ahead:
            return super()._step(round_)
        if requested_start(head) is not None:
            return round_.reservation_branch()
        if self._skips.of(head) < self.max_skips:
            return self._packed(round_, head, min(ahead))
        if round_.fits(head):
            # Refused if it would break the freeze; then it does not fit any more.
            return round_.start([head], f"skipped {self.max_skips} times, so it starts first")
        return round_.reservation_branch()

    def _packed(self, round_: Round, head: Job, freeze: float) -> bool:
        """Case 2: Reservation_DP over the whole queue under the dedicated freeze."""
        chosen = round_.best(round_.candidates(0))
        if head not in chosen:
            self._skips.skipped(head, round_.view.now)
        when = round_.view.clock(freeze)
        return bool(chosen) and round_.start(
            chosen, f"in the best-filling set that keeps room for the dedicated jobs of {when}"
        )
