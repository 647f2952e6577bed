"""A workload that reacts: jobs that are submitted once others have ended.

A job that follows another one comes so many seconds (its user's think time) after the other has left the
cluster, in whatever way, also without having run. All others come at their own times. At one instant jobs
come in the order of the workload.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush

import msgspec

from headway.workload.jobs import Follows, TraceJob
from headway_adapters.emulated.arrivals import INFINITY, Arrivals


class ChainedArrivals(Arrivals):
    """Jobs, some of which follow other jobs. :attr:`jobs` have come, in order of submission."""

    chained = True

    def __init__(self, jobs: Sequence[TraceJob], chains: Mapping[str, Follows]) -> None:
        """``chains``: the job that each job follows, by id.

        Raises ValueError when the jobs are not in order of submission, or one follows another that is not
        before it in the workload.
        """
        super().__init__(jobs)
        #: ``(time, position in the workload, job)`` of jobs whose time is known, as a heap.
        self._coming: list[tuple[float, int, TraceJob]] = []
        #: The jobs that follow a job, by its id: (position, job, think time).
        self._followers: dict[str, list[tuple[int, TraceJob, float]]] = {}
        before: set[str] = set()
        for at, job in enumerate(jobs):
            job_id = job.job.id
            link = chains.get(job_id)
            if link is None:
                self._coming.append((job.job.submit_time, at, job))
            elif link.job_id not in before:
                raise ValueError(f"job {job_id} follows {link.job_id}, which is not before it")
            else:
                self.held_back[job_id] = link
                self._followers.setdefault(link.job_id, []).append((at, job, link.think))
            before.add(job_id)
        heapify(self._coming)
        self._count = len(jobs)
        self.jobs = []
        self._own = True
        self.taken()

    def ended(self, job_id: str, now: float) -> None:
        """The jobs that follow this job come after their think times."""
        for at, job, think in self._followers.pop(job_id, ()):
            time = now + think
            del self.held_back[job.job.id]
            moved = msgspec.structs.replace(job, job=msgspec.structs.replace(job.job, submit_time=time))
            heappush(self._coming, (time, at, moved))
        self.taken()

    def due(self, until: float) -> None:
        """Have :attr:`jobs` end with the jobs that are submitted until then."""
        jobs = self.jobs
        assert isinstance(jobs, list)
        while self._coming and self._coming[0][0] <= until:
            jobs.append(heappop(self._coming)[2])
        if self.next < len(jobs):
            self.time = jobs[self.next].job.submit_time

    def taken(self) -> None:
        self.time = self._coming[0][0] if self._coming else INFINITY

    def add(self, job: TraceJob, now: float) -> None:
        if job.job.submit_time < now:
            raise ValueError(f"job {job.job.id} is submitted before now")
        heappush(self._coming, (job.job.submit_time, self._count, job))
        self._count += 1
        self.taken()

    def begin_with(self, ids: Iterable[str]) -> dict[str, int]:
        raise ValueError("a workload with chains of jobs begins with nothing that runs")
