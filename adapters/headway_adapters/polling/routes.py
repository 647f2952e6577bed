"""Pending jobs that were ordered into another pool, until a look sees them there.

A route that the batch system took is open until a look shows the job in its new pool, which is told as a
:class:`headway.events.JobRouted`. A job that is not seen there in time, or that runs where it was, is told as
a :class:`headway.events.DecisionFailed`. A job that changes its pool without an order is a
:class:`headway.events.JobChanged` as always.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from headway import decisions as d
from headway import events as ev
from headway_adapters.polling import differ
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob


@dataclass(frozen=True)
class _Open:
    """A route that was ordered and is not seen yet."""

    decision: d.Route
    #: On the monotonic clock.
    deadline: float


class Routes:
    """All open routes, by job. On the adapter's thread."""

    def __init__(self, *, timeout: float, log: Any, clock: Callable[[], float]) -> None:
        """``timeout``: seconds until a job must be seen in its new pool. ``clock``: absolute seconds."""
        self._timeout = timeout
        self._log = log
        self._clock = clock
        self._open: dict[str, _Open] = {}

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._open

    def ordered(self, decision: d.Route) -> None:
        """The batch system took the order."""
        self._open[decision.job_id] = _Open(decision, time.monotonic() + self._timeout)

    def looked(self, events: Sequence[ev.Event], old: Snapshot | None, shown: Snapshot) -> list[ev.Event]:
        """The events of a look, with what became of open routes. ``old``: what was shown before it."""
        if not self._open:
            return list(events)
        found: list[ev.Event] = []
        for event in events:
            route = self._open.get(event.job.id) if isinstance(event, ev.JobChanged) else None
            if isinstance(event, ev.JobChanged) and route and event.job.pools == (route.decision.pool,):
                found += _arrival(event, old)
            else:
                found.append(event)
        for job_id in list(self._open):
            found += self._follow(job_id, shown.jobs.get(job_id), shown.time)
        return found

    def _follow(self, job_id: str, job: SnapshotJob | None, now: float) -> Iterator[ev.Event]:
        route = self._open[job_id]
        if job is None or job.state == "ended" or job.job.pools == (route.decision.pool,):
            del self._open[job_id]
        elif job.state != "pending":
            yield self._failed(job_id, now, f"it runs in pool {job.job.pool}")
        elif time.monotonic() >= route.deadline:
            where = ", ".join(job.job.pools)
            yield self._failed(job_id, now, f"after {self._timeout:g} s it still is in {where}")

    def _failed(self, job_id: str, now: float, why: str) -> ev.DecisionFailed:
        route = self._open.pop(job_id)
        self._log.warning("a route did not happen", job=job_id, pool=route.decision.pool, why=why)
        return ev.DecisionFailed(max(now, self._clock()), route.decision, why)


def _arrival(event: ev.JobChanged, old: Snapshot | None) -> Iterator[ev.Event]:
    """The job is in its new pool, and has perhaps changed otherwise as well."""
    job = event.job
    yield ev.JobRouted(event.time, job.id, job.pool)
    known = old.jobs.get(job.id) if old is not None else None
    if known is None:
        yield event
        return
    before = msgspec.structs.replace(known.job, pool=job.pool, further_pools=())
    if not differ.alike(before, job, event.time):
        yield event
