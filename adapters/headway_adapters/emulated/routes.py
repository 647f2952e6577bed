"""Pending jobs that go to another pool, of this cluster or of another."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import msgspec

from headway import decisions as dec
from headway import events as ev
from headway.model import JobDescription
from headway.workload.jobs import TraceJob
from headway_adapters.emulated.machine import Machine


@dataclass(frozen=True)
class Traveller:
    """A pending job between two clusters."""

    trace: TraceJob
    #: As it is now.
    job: JobDescription
    #: How often it went back to the queue.
    restarts: int = 0
    #: Seconds of its work that are left, if it had saved itself.
    left_over: float | None = None


class Routes:
    """Takes pending jobs out of a queue and puts them into another."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._sizes = machine.cluster.pool_sizes()

    @cached_property
    def _awaited(self) -> frozenset[str]:
        """The jobs that jobs of the workload depend on."""
        jobs = self._machine.arrivals.jobs
        return frozenset(each.job_id for one in jobs for each in one.job.dependencies)

    def route(self, decision: dec.Route) -> str:
        """Send a job to another pool of this cluster. Returns why not, or ""."""
        machine = self._machine
        if why := self.why_not_out(decision.job_id) or self.why_not_in(decision.job_id, decision.pool):
            return why
        index, job = machine.submitted[decision.job_id]
        described = msgspec.structs.replace(job, pool=decision.pool, further_pools=())
        machine.submitted[job.id] = (index, described)
        machine.news.append(ev.JobRouted(machine.now, job.id, decision.pool))
        return ""

    def why_not_out(self, job_id: str) -> str:
        """Why the job cannot leave its queue; "" if it can."""
        known = self._machine.submitted.get(job_id)
        if known is None:
            return f"job {job_id} is not waiting"
        if known[1].dependencies:
            return f"job {job_id} waits for other jobs"
        if job_id in self._awaited:
            return f"other jobs wait for job {job_id}"
        return f"job {job_id} is an element of an array" if known[1].array_id else ""

    def why_not_in(self, job_id: str, pool: str) -> str:
        """Why the job cannot come into a pool of this cluster; "" if it can."""
        known = self._machine.submitted.get(job_id)
        return "" if known is None else self.too_large(known[1], pool)

    def too_large(self, job: JobDescription, pool: str) -> str:
        """Why the pool can never hold the job; "" if it can."""
        size = self._sizes.get(pool)
        if size is None:
            return f"there is no pool {pool!r}"
        if job.request.processors > size:
            return f"job {job.id} needs {job.request.processors} processors, pool {pool!r} has {size}"
        return ""

    def waiting(self, job_id: str) -> JobDescription:
        """A pending job as it is now."""
        return self._machine.submitted[job_id][1]

    def leave(self, job_id: str) -> Traveller:
        """Take a pending job out of the cluster, for which :meth:`why_not_out` has no objection."""
        machine = self._machine
        index, job = machine.submitted.pop(job_id)
        machine.gone.add(index)
        return Traveller(
            machine.trace(index), job, machine.restarts.get(index, 0), machine.left_over.get(index)
        )

    def arrive(self, one: Traveller, pool: str) -> None:
        """Put a job into a pool. It keeps its id and the time of its submission."""
        machine = self._machine
        job = msgspec.structs.replace(one.job, pool=pool, further_pools=())
        machine.further.append(msgspec.structs.replace(one.trace, job=job))
        index = -len(machine.further)
        machine.guests.append(index)
        machine.submitted[job.id] = (index, job)
        if one.restarts:
            machine.restarts[index] = one.restarts
        if one.left_over is not None:
            machine.left_over[index] = one.left_over
