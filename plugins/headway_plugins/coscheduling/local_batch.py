"""A batch system in virtual time beside a site's book: jobs arrive, start as planned, and end.

It is the scheduler Catalina of K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with User-Settable
Reservations, Job Scheduling Strategies for Parallel Processing, 2005, for experiments on emulated sites: each
event plans the queue anew (:mod:`.queue_plan`), and a job whose planned start has come starts. A reservation
keeps its nodes until its end, whether or not its job uses them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf

import msgspec
import numpy as np

from headway.workload import TraceJob
from headway.workload.estimate_models import RunJobs
from headway_plugins.coscheduling.queue_plan import Busy, Queued
from headway_plugins.coscheduling.site_book import SiteBook
from headway_plugins.estimates.tsafrir05 import Tsafrir05Model, Tsafrir05Options


class Arrival(msgspec.Struct, frozen=True):
    """A job of the batch system, and how long it runs in truth."""

    job: Queued
    runtime: float


class LocalBatch:
    """One site; time only goes forward."""

    def __init__(self, book: SiteBook, arrivals: Iterable[Arrival]) -> None:
        """Jobs that are in the book's queue already run until their limits."""
        self.book = book
        self.now = 0.0
        #: When each job started.
        self.started: dict[str, float] = {}
        self._arrivals = sorted(arrivals, key=lambda one: one.job.submit)
        self._next = 0
        self._runtimes = {job.id: job.limit for job in book.queue}
        self._runtimes.update((one.job.id, one.runtime) for one in self._arrivals)
        #: End and what the book has, of each running job.
        self._running: list[tuple[float, Busy]] = []

    def advance(self, until: float) -> None:
        """Everything that happens up to ``until``, that moment included."""
        while (time := self._next_event()) <= until:
            self.now = max(self.now, time)
            self._end()
            self._arrive()
            self._start()
        self.now = max(self.now, until)

    def submits(self) -> dict[str, float]:
        """When each job arrives."""
        return {one.job.id: one.job.submit for one in self._arrivals}

    def _next_event(self) -> float:
        times = [end for end, _ in self._running]
        times += [one.end for one in self.book.busy if one.end > self.now]
        if self._next < len(self._arrivals):
            times.append(self._arrivals[self._next].job.submit)
        if self.book.queue:
            times += self.book.starts(self.now).values()
        return min(times, default=inf)

    def _end(self) -> None:
        over = [one for one in self._running if one[0] <= self.now]
        for one in over:
            self._running.remove(one)
            self.book.release(one[1])

    def _arrive(self) -> None:
        while self._next < len(self._arrivals) and self._arrivals[self._next].job.submit <= self.now:
            self.book.enqueue(self._arrivals[self._next].job)
            self._next += 1

    def _start(self) -> None:
        starts = self.book.starts(self.now)
        for job in [job for job in self.book.queue if starts.get(job.id, inf) <= self.now]:
            self.started[job.id] = self.now
            busy = self.book.start(job, self.now)
            self._running.append((self.now + self._runtimes[job.id], busy))


def arrivals_of(
    rng: np.random.Generator, jobs: Sequence[TraceJob], nodes: int, per_node: int = 1, *, exact: bool = False
) -> list[Arrival]:
    """Jobs of a workload on nodes of ``per_node`` processors.

    Limits are the estimates of the jobs. Where no estimate is longer than its runtime they are drawn by the
    model `tsafrir05`. ``exact``: the jobs run until their limits.
    """
    jobs = [one for one in jobs if one.runtime > 0]
    runtime = np.array([one.runtime for one in jobs])
    limit = np.array([one.job.request.walltime or one.runtime for one in jobs])
    if np.all(limit <= runtime):
        submit = np.array([one.job.submit_time for one in jobs])
        unknown = np.full(len(jobs), np.nan)
        known = RunJobs(runtime, unknown, submit, np.full(len(jobs), -1))
        limit = (
            Tsafrir05Model()
            .estimates(rng, known, Tsafrir05Options.model_validate({"too_short": "raise"}))
            .seconds
        )
    limit = np.maximum(np.rint(np.maximum(limit, runtime)), 1.0)
    found = []
    for one, seconds in zip(jobs, limit.tolist(), strict=True):
        width = min(-(-one.job.request.processors // per_node), nodes)
        job = Queued(one.job.id, width, seconds, one.job.submit_time)
        found.append(Arrival(job, seconds if exact else one.runtime))
    return found
