"""A batch system in virtual time beside a site's book: jobs arrive, start as planned, and end.

It is the scheduler Catalina of K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with User-Settable
Reservations, Job Scheduling Strategies for Parallel Processing, 2005, for experiments on emulated sites: each
event plans the queue anew (:mod:`.queue_plan`), and a job whose planned start has come starts. A reservation
keeps its nodes until its end, whether or not its job uses them.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

import msgspec
import numpy as np

from headway.workload import Workload
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
        self.book = book
        self.now = 0.0
        #: When each job started.
        self.started: dict[str, float] = {}
        self._arrivals = sorted(arrivals, key=lambda one: one.job.submit)
        self._next = 0
        self._runtimes = {one.job.id: one.runtime for one in self._arrivals}
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

    def _next_event(self) -> float:
        times = [end for end, _ in self._running]
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
            self.book.arrive(self._arrivals[self._next].job)
            self._next += 1

    def _start(self) -> None:
        starts = self.book.starts(self.now)
        for job in [job for job in self.book.queue if starts.get(job.id, inf) <= self.now]:
            self.started[job.id] = self.now
            busy = self.book.start(job, self.now)
            self._running.append((self.now + self._runtimes[job.id], busy))


def arrivals_of(
    rng: np.random.Generator, workload: Workload, nodes: int, per_node: int = 1, *, exact: bool = False
) -> list[Arrival]:
    """The jobs of a workload, on nodes of ``per_node`` processors.

    Limits are those of the workload where they are longer than the runtimes; otherwise they are drawn by the
    model `tsafrir05`. ``exact``: the runtimes are the limits.
    """
    jobs = [one for one in workload.jobs if one.runtime > 0]
    runtime = np.array([one.runtime for one in jobs])
    limit = np.array([one.job.request.walltime or one.runtime for one in jobs])
    if np.all(limit <= runtime):
        known = RunJobs(
            runtime, np.full(len(jobs), np.nan), np.array([one.job.submit_time for one in jobs]),
            np.full(len(jobs), -1),
        )  # fmt: skip
        limit = Tsafrir05Model().estimates(rng, known, Tsafrir05Options()).seconds
    limit = np.maximum(np.rint(np.maximum(limit, runtime)), 1.0)
    return [
        Arrival(
            Queued(
                one.job.id, min(-(-one.job.request.processors // per_node), nodes), seconds,
                one.job.submit_time,
            ),
            seconds if exact else one.runtime,
        )
        for one, seconds in zip(jobs, limit.tolist(), strict=True)
    ]  # fmt: skip
