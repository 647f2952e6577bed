"""Jobs that depend on other jobs, as the machine sees them.

It knows what became of every job of the workload. So a dependency that is met when its job arrives falls
away, as batch systems have it, and only what is still waited for is told: the scheduler may never have heard
of the other job, or may have forgotten it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from headway.model import Dependency, JobDescription
from headway.results import JobResult
from headway_adapters.emulated.machine import Machine


class Dependencies:
    """Judges dependencies."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        #: Positions in the workload by job id, as far as they were needed.
        self._positions: dict[str, int] = {}
        self._arrays: dict[str, list[str]] = {}
        self._searched = 0
        #: Jobs and arrays for whose starts others wait.
        self.awaited: set[str] = set()

    def left(self, job: JobDescription) -> JobDescription:
        """The job with the dependencies that are not met yet."""
        unmet = self.unmet(job)
        self.awaited.update(each.job_id for each in unmet if each.kind == "started")
        if len(unmet) == len(job.dependencies):
            return job
        return msgspec.structs.replace(job, dependencies=unmet)

    def unmet(self, job: JobDescription) -> tuple[Dependency, ...]:
        """What the job waits for; nothing if any one is enough and met."""
        unmet = tuple(each for each in job.dependencies if not self._met(job, each))
        return () if job.any_dependency and len(unmet) < len(job.dependencies) else unmet

    def _met(self, job: JobDescription, dependency: Dependency) -> bool:
        kind, other = dependency.kind, dependency.job_id
        if kind == "singleton":
            return not self._has_namesake(job, other)
        return self._met_by(self._elements(other) or (other,), kind, dependency.delay)

    def _met_by(self, others: Sequence[str], kind: str, delay: float) -> bool:
        """Whether a job, or the elements of an array, satisfy a condition."""
        machine = self._machine
        if kind == "started":
            starts = [self._start(other) for other in others]
            return all(start is not None and start + delay <= machine.now for start in starts)
        if any(other in machine.running or other in machine.submitted for other in others):
            return False
        outcomes = [self._outcome(other) for other in others]
        if kind == "completed":
            return all(outcome == "completed" for outcome in outcomes)
        if kind == "failed":
            return any(outcome not in ("", "completed") for outcome in outcomes)
        # Of an unknown job only this can be called met, that it is not there.
        return kind == "ended"

    def _start(self, other: str) -> float | None:
        """When a job started, or ended without a start; None: it waits. An unknown job started at
        any time."""
        machine = self._machine
        if other in machine.running:
            return machine.running[other].start
        if other in machine.submitted:
            return None
        record = self._record(other)
        if record is None:
            return float("-inf")
        return record.end_time if record.start_time is None else record.start_time

    def _has_namesake(self, job: JobDescription, among: str) -> bool:
        """Whether a job of its name and user, whose id begins with ``among``, runs or waits before it."""

        def alike(other: JobDescription) -> bool:
            same = other.name == job.name and other.user == job.user
            apart = other.id != job.id and not (job.array_id and job.array_id == other.array_id)
            return same and apart and other.id.startswith(among)

        machine = self._machine
        if any(alike(execution.job) for execution in machine.running.values()):
            return True
        before = machine.submitted[job.id][0]
        return any(index < before and alike(other) for index, other in machine.submitted.values())

    def _outcome(self, job_id: str) -> str:
        """What became of a job that is not there any more; "" if the job is unknown."""
        record = self._record(job_id)
        return record.state if record is not None else ""

    def _record(self, job_id: str) -> JobResult | None:
        self._search()
        index = self._positions.get(job_id, -1)
        return self._machine.ended.get(index) if index >= 0 else None

    def _elements(self, array_id: str) -> Sequence[str]:
        """The elements of an array; none for what is no array."""
        self._search()
        return self._arrays.get(array_id, ())

    def _search(self) -> None:
        jobs = self._machine.arrivals.jobs
        for index in range(self._searched, len(jobs)):
            job = jobs[index].job
            self._positions[job.id] = index
            if job.array_id:
                self._arrays.setdefault(job.array_id, []).append(job.id)
        self._searched = len(jobs)
