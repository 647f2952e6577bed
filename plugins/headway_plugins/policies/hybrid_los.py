"""Hybrid-LOS: Delayed-LOS for batch jobs mixed with jobs that must start at a given second.

R. Kumar, Z. Shae, H. Jamjoom: Scheduling Batch and Heterogeneous Jobs with Runtime Elasticity in a
Parallel Processing Environment. 2012, Algorithms 2 and 3.

Beside the symbols of :mod:`headway_plugins.policies.los`: W_d the dedicated jobs that are not due
yet, by requested start; fret_d and frec_d the end time and end capacity of the dedicated freeze.
With W_d empty it is Delayed-LOS. Otherwise, in each round of an instant:

1. dedicated jobs that are due stand at the head of the queue, and count as skipped C_s times;
2. the head was skipped less than C_s times, whether it fits or not: Reservation_DP over the queue, the head included,
   under the dedicated freeze: what runs past the earliest requested start must fit in what the
   dedicated jobs of that start leave. If the head is not in the chosen set, its skip count rises;
3. the head was skipped C_s times or more: it starts if it fits and respects the dedicated freeze.

Decisions on what the paper leaves open or gets wrong:

- A running job that is expected to end exactly at the requested start counts as ended (the paper's
  index keeps it).
- When the dedicated jobs do not fit at their start, the freeze moves to the first expected end at
  which they do (lines 24 to 26, with their need instead of the head's).
- Lines 35 to 38 start the head without checking that it fits. Here, in case 3, a head that fits but
  would break the dedicated freeze waits, with a booking after it; and a head that does not fit is
  booked as in Delayed-LOS. In both cases the jobs behind it are packed under both freezes.
- ``freeze: first`` (the paper's, and the default) keeps processors for the earliest group of dedicated
  jobs; ``freeze: all`` for each group, every one of them a freeze of its own in the packing, which is
  what a real site wants.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import pydantic

from headway.decisions import Decision
from headway.events import Event
from headway.hookspecs import hookimpl
from headway.results import RunResult
from headway.state import Job, State
from headway.view import View
from headway_plugins.policies.dedicated import (
    DedicatedQueue,
    dedicated_delay,
    dedicated_first,
    requested_start,
)
from headway_plugins.policies.los import DelayedLos, DelayedLosOptions, Round

_INF = float("inf")

#: A freeze: its end time, and the processors that may run past it.
Freeze = tuple[float, int]


class HybridLosOptions(DelayedLosOptions):
    """Options of Hybrid-LOS."""

    freeze: Literal["first", "all"] = pydantic.Field(
        default="first", description="keep processors for the earliest group of dedicated jobs only, or for all"
    )


class HybridLos(DelayedLos):
    """Hybrid-LOS: Delayed-LOS that keeps processors for dedicated jobs, which start on time."""

    Options = HybridLosOptions

    def __init__(self, options: HybridLosOptions) -> None:
        super().__init__(options)
        self._dedicated = DedicatedQueue()

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        self._dedicated.observe(event, state)

    @hookimpl
    def queue_key(self, job: Job) -> tuple[int, float]:
        return dedicated_first(job)

    @hookimpl
    def register_metrics(self) -> dict[str, Callable[[RunResult], Any]]:
        return {"dedicated jobs": dedicated_delay}

    def _step(self, round_: Round) -> bool:
        view = round_.view
        freezes = self._freezes(view)
        if not freezes:
            head = round_.waiting[0]
            if requested_start(head) is not None and round_.fits(head):
                return round_.start([head], "a dedicated job, due")
            return super()._step(round_)
        head = round_.waiting[0]
        due = requested_start(head) is not None
        if not due and self._skips.of(head) < self.max_skips:
            return self._packed(round_, head, freezes)
        if round_.fits(head) and (due or self._respects(round_, head, freezes)):
            reason = "a dedicated job, due" if due else f"skipped {self.max_skips} times, so it starts first"
            return round_.start([head], reason)
        return self._behind(round_, head, freezes)

    def _packed(self, round_: Round, head: Job, freezes: list[Freeze]) -> bool:
        """Case 2: Reservation_DP over the whole queue under the dedicated freeze."""
        chosen = round_.best(round_.candidates(0), freezes)
        if head not in chosen:
            self._skips.skipped(head, round_.view.now)
        when = round_.view.clock(freezes[0][0])
        return bool(chosen) and round_.start(
            chosen, f"in the best-filling set that keeps room for the dedicated jobs of {when}"
        )

    def _behind(self, round_: Round, head: Job, freezes: list[Freeze]) -> bool:
        """Case 3 for a head that may not start: book it, pack the others under all freezes."""
        view = round_.view
        after = None
        if round_.fits(head):
            after = next(time for time, room in freezes if not self._respects(round_, head, [(time, room)]))
        booking = view.book(head, after)
        chosen = round_.best(round_.candidates(1), [*freezes, (booking.start, booking.extra)])
        return bool(chosen) and round_.start(
            chosen, f"packed behind job {head.id}, which is to start at {booking.when}"
        )

    @staticmethod
    def _respects(round_: Round, job: Job, freezes: list[Freeze]) -> bool:
        return all(round_.ends_by(job, time) or job.processors <= room for time, room in freezes)

    def _freezes(self, view: View) -> list[Freeze]:
        """The dedicated freezes, earliest first."""
        jobs = self._dedicated.ahead(view.pool, view.now)
        freezes: list[Freeze] = []
        taken = 0
        while jobs:
            start = requested_start(jobs[0])
            assert start is not None
            group = [job for job in jobs if requested_start(job) == start]
            jobs = jobs[len(group) :]
            taken += sum(job.processors for job in group)
            freezes.append(self._freeze(view, start, taken))
            if self.options.freeze == "first":
                break
        return [freeze for freeze in freezes if freeze[0] != _INF]

    @staticmethod
    def _freeze(view: View, start: float, need: int) -> Freeze:
        """When ``need`` processors are free, from ``start`` on, and what else is free then."""
        free = view.pool.free
        when = start
        for end, _, processors, _ in view.running:
            if end > when and free >= need:
                break
            free += processors
            when = max(when, end)
        if free < need:
            return _INF, 0
        return when, free - need

    @hookimpl
    def schedule(self, view: View) -> list[Decision]:
        return super().schedule(view)
