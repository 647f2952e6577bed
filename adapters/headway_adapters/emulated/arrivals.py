"""The workload: which job arrives when."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec

from headway.workload.jobs import Follows, TraceJob

INFINITY = float("inf")


class Arrivals:
    """The jobs of a workload, in order of submission."""

    #: Some of them come when others have ended: see :mod:`.chains`.
    chained = False

    def __init__(self, jobs: Sequence[TraceJob]) -> None:
        """Raises ValueError when the jobs are not in order of submission."""
        for previous, job in pairwise(jobs):
            if job.job.submit_time < previous.job.submit_time:
                raise ValueError(f"job {job.job.id} is submitted before its predecessor in the workload")
        self.jobs: Sequence[TraceJob] = jobs
        #: The workload is a list of our own, which may be changed.
        self._own = False
        #: Position of the job that arrives next.
        self.next = 0
        #: Jobs that have not come because the jobs that they follow have not ended.
        self.held_back: dict[str, Follows] = {}
        #: When it arrives; infinity when all have arrived.
        self.time = jobs[0].job.submit_time if jobs else INFINITY

    def add(self, job: TraceJob, now: float) -> None:
        """A further job, which was unknown before.

        Raises ValueError when it is submitted in the past or before a job of the workload.
        """
        jobs = self._changed()
        earliest = max(now, jobs[-1].job.submit_time) if jobs else now
        if job.job.submit_time < earliest:
            raise ValueError(f"job {job.job.id} is submitted before its predecessor in the workload or now")
        jobs.append(job)
        if self.next == len(jobs) - 1:
            self.time = job.job.submit_time

    def change_work(self, index: int, change: float) -> None:
        """The job at this position needs so many seconds more than it did."""
        trace = self.jobs[index]
        runtime = max(trace.runtime + change, 0.0)
        self._changed()[index] = msgspec.structs.replace(trace, runtime=runtime)

    def begin_with(self, ids: Iterable[str]) -> dict[str, int]:
        """Jobs that are there from the beginning: they come first. Returns every job's position."""
        first = set(ids)
        self.jobs = [job for job in self.jobs if job.job.id in first] + [
            job for job in self.jobs if job.job.id not in first
        ]
        self._own = True
        self.next = len(first)
        rest = self.jobs[self.next :]
        self.time = rest[0].job.submit_time if rest else INFINITY
        return {job.job.id: at for at, job in enumerate(self.jobs)}

    def arrived(self, count: int) -> None:
        """The first ``count`` jobs have come."""
        self.next = count
        self.time = self.jobs[count].job.submit_time if count < len(self.jobs) else INFINITY

    def ended(self, job_id: str, now: float) -> None:
        """A job has ended: no submission waits for that."""

    def due(self, until: float) -> None:
        """What is submitted until then is in :attr:`jobs`: it is there already."""

    def taken(self) -> None:
        """The jobs up to :attr:`next` were told: the others are behind them."""

    def _changed(self) -> list[TraceJob]:
        """The workload as a list of our own, so that the caller's is never changed."""
        if not self._own:
            self.jobs = list(self.jobs)
            self._own = True
        return self.jobs  # type: ignore[return-value]
