"""Starts that were asked for and are not confirmed.

A start that was accepted is a :class:`Flight` until a look shows that the job runs (or ended, or is
gone). A job that stays pending for ``start_timeout`` seconds has its start taken back, which is told as a
:class:`headway.events.DecisionFailed`: nothing ever starts later than it was decided.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol

from headway import decisions as d
from headway import events as ev
from headway_adapters.polling.look import DetailT, Look, PayloadT
from headway_adapters.polling.moves import Moves
from headway_adapters.polling.notes import Notes
from headway_adapters.polling.snapshot import SnapshotJob


@dataclass
class Flight(Generic[PayloadT]):
    """A start that was asked for and is not confirmed."""

    decision: d.Start
    payload: PayloadT
    #: How often the job had gone back to the queue when it was asked for.
    restarts: int
    #: On the monotonic clock.
    deadline: float
    #: The seconds for which the job is planned to run at most; None: an earlier run's plan, not known.
    limit: float | None = None


class _Ground(Protocol):
    """What the flights ask of the batch system (:class:`headway_adapters.polling.system.BatchSystem`)."""

    def given_up(self, job: SnapshotJob, detail: Any) -> str: ...

    def take_back(self, flight: Any, *, late: bool) -> bool: ...

    def extra_patience(self, start: d.Start) -> float: ...


class Flights(Mapping[str, Flight[PayloadT]]):
    """All starts on their way, by job."""

    def __init__(
        self, ground: _Ground, moves: Moves, notes: Notes, told: list[ev.Event], *,
        start_timeout: float, log: Any, clock: Callable[[], float],
    ) -> None:  # fmt: skip
        """``told``: events that the next answer of the adapter has. ``clock``: absolute seconds."""
        self._ground = ground
        self._moves = moves
        self._notes = notes
        self._told = told
        self._start_timeout = start_timeout
        self._log = log
        self._clock = clock
        self._open: dict[str, Flight[PayloadT]] = {}

    def __getitem__(self, job_id: str) -> Flight[PayloadT]:
        return self._open[job_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._open)

    def __len__(self) -> int:
        return len(self._open)

    def fly(
        self, start: d.Start, payload: PayloadT, restarts: int, asked: float | None = None,
        limit: float | None = None,
    ) -> None:  # fmt: skip
        """A start was accepted. ``asked``: when, if that was before this run. ``limit``: the job's, in
        seconds, as the start was decided with."""
        left = self.patience(start)
        if asked is not None:
            # By the clock, which may have been set since: never more than the whole time.
            left = min(left, left - (self._clock() - asked))
        self._open[start.job_id] = Flight(start, payload, restarts, time.monotonic() + left, limit)

    def patience(self, start: d.Start) -> float:
        """How long a job that is started may stay pending, seconds; then the start is taken back."""
        return self._start_timeout + self._ground.extra_patience(start)

    def begin_anew(self, jobs: Collection[str] | None = None) -> None:
        """Starts may take their time anew: the starts of ``jobs``, or all after an outage."""
        for key, flight in self._open.items():
            if jobs is None or key in jobs:
                flight.deadline = time.monotonic() + self.patience(flight.decision)

    def confirm(self, look: Look[DetailT], seen: set[str]) -> list[tuple[Flight[PayloadT], SnapshotJob]]:
        """See which of the starts ``seen`` happened, and take back the starts that do not. Answers the starts
        that happened, each with its job."""
        happened = []
        for key, flight in list(self._open.items()):
            if key not in seen:
                continue
            with self._notes.unforeseen("whether a start happened", job=key):
                job = look.snapshot.jobs.get(key)
                if job is None or job.state == "ended":
                    del self._open[key]
                elif job.state != "pending":
                    del self._open[key]
                    if job.restarts == flight.restarts:
                        self._compare_nodes(flight, job)
                        happened.append((flight, job))
                else:
                    self._still_pending(flight, job, look)
        return happened

    def _compare_nodes(self, flight: Flight[PayloadT], job: SnapshotJob) -> None:
        wanted = {node for node, _ in flight.decision.placement}
        if {node for node, _ in job.placement} != wanted:
            got = sorted(node for node, _ in job.placement)
            said = "a job runs on other nodes than it was sent to"
            self._log.warning(said, job=job.job.id, wanted=sorted(wanted), got=got)

    def _still_pending(self, flight: Flight[PayloadT], job: SnapshotJob, look: Look[DetailT]) -> None:
        key = flight.decision.job_id
        why = self._ground.given_up(job, look.details.get(key))
        if why:
            self._end(flight, why, late=False)
        elif job.restarts != flight.restarts:
            # No look saw it run, so no event told that it did.
            self.failed(key, "it started and went back to the queue at once")
        elif time.monotonic() >= flight.deadline:
            seconds = self.patience(flight.decision)
            why = f" ({job.reason})" if job.reason and job.reason != "None" else ""
            self._end(flight, f"it did not start within {seconds:g} s{why}", late=True)

    def _end(self, flight: Flight[PayloadT], why: str, *, late: bool) -> None:
        if self._ground.take_back(flight, late=late):
            self.failed(flight.decision.job_id, why)

    def failed(self, job_id: str, why: str) -> None:
        """A start did not happen: it is over, and told."""
        flight = self._open.pop(job_id)
        self._log.warning("a start did not happen", job=job_id, why=why)
        if not self._moves.answered(flight.decision, False, why):
            told = ev.DecisionFailed(time=self._clock(), decision=flight.decision, message=why)
            self._told.append(told)
