"""Jobs that depend on other jobs, as the machine sees them.

It knows what became of every job of the workload. So a dependency that is met when its job arrives falls
away, as batch systems have it, and only what is still waited for is told: the scheduler may never have heard
of the other job, or may have forgotten it.
"""

from __future__ import annotations

import msgspec

from headway.model import Dependency, JobDescription
from headway_adapters.emulated.machine import Machine

_FAILURES = ("failed", "timed out", "node failure")


class Dependencies:
    """Judges dependencies."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        #: Positions in the workload by job id, as far as somebody has asked.
        self._positions: dict[str, int] = {}
        self._searched = 0

    def left(self, job: JobDescription) -> JobDescription:
        """The job with the dependencies that are not met yet."""
        unmet = self.unmet(job)
        if len(unmet) == len(job.dependencies):
            return job
        return msgspec.structs.replace(job, dependencies=unmet)

    def unmet(self, job: JobDescription) -> tuple[Dependency, ...]:
        """What the job waits for; nothing if any one is enough and met."""
        unmet = tuple(each for each in job.dependencies if not self._met(job, each))
        return () if job.any_dependency and len(unmet) < len(job.dependencies) else unmet

    def _met(self, job: JobDescription, dependency: Dependency) -> bool:
        machine, kind, other = self._machine, dependency.kind, dependency.job_id
        if kind == "singleton":
            return not self._has_namesake(job, other)
        if other in machine.running:
            return kind == "started"
        if other in machine.submitted:
            return False
        outcome = self._outcome(other)
        if kind == "completed":
            return outcome == "completed"
        if kind == "failed":
            return outcome in _FAILURES
        # Of a job that nobody knows only this can be called met, that it is not there.
        return kind in ("ended", "started")

    def _has_namesake(self, job: JobDescription, among: str) -> bool:
        """Whether a job of its name and user, whose id begins with ``among``, runs or waits before it."""

        def alike(other: JobDescription) -> bool:
            same = other.name == job.name and other.user == job.user
            return same and other.id != job.id and other.id.startswith(among)

        machine = self._machine
        if any(alike(execution.job) for execution in machine.running.values()):
            return True
        before = machine.submitted[job.id][0]
        return any(index < before and alike(other) for index, other in machine.submitted.values())

    def _outcome(self, job_id: str) -> str:
        """What became of a job that is not there any more; "" if nobody knows it."""
        jobs = self._machine.arrivals.jobs
        for index in range(self._searched, len(jobs)):
            self._positions[jobs[index].job.id] = index
        self._searched = len(jobs)
        index = self._positions.get(job_id, -1)
        record = self._machine.ended.get(index) if index >= 0 else None
        return record.state if record is not None else ""
