"""A job starts: its execution begins."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from headway import decisions as dec
from headway import events as ev
from headway.emulation.direct import Course
from headway.model import JobDescription
from headway.workload.jobs import Begun
from headway_adapters.emulated.agenda import nothing
from headway_adapters.emulated.arrivals import INFINITY
from headway_adapters.emulated.bundles import Bundles
from headway_adapters.emulated.execution import FOREGROUND, Execution
from headway_adapters.emulated.guard import Guard
from headway_adapters.emulated.machine import Machine
from headway_adapters.emulated.rates import Rates
from headway_adapters.emulated.tiers import Tiers

_JobStarted = ev.JobStarted


class Starts:
    """Begins executions that the machine's guard lets begin: the scheduler only believes to know it."""

    def __init__(self, machine: Machine, guard: Guard, rates: Rates, tiers: Tiers, bundles: Bundles) -> None:
        self._machine = machine
        self._guard = guard
        self._rates = rates
        self._tiers = tiers
        self._bundles = bundles

    def start(self, decision: dec.Start) -> str:
        """Begin an execution. Returns why not, or ""."""
        submitted = self._machine.submitted
        known = submitted.get(decision.job_id)
        if known is None:
            return f"job {decision.job_id} is not waiting"
        index, job = known
        refusal = self._guard.refusal(job, decision.placement, decision.tier, decision.pool)
        if refusal:
            return refusal
        del submitted[job.id]
        self.begin(index, job, decision)
        awaited = self._guard.awaited
        if awaited and not awaited.isdisjoint((job.id, job.array_id)):
            # Told at once, and not with whatever happens next.
            self._machine.agenda.at(self._machine.now, nothing, None)
        return ""

    def begin(self, index: int, job: JobDescription, decision: dec.Start, *, has_nodes: bool = False) -> None:
        """Begin the execution of a job that may start and no longer waits; ``has_nodes``: they were taken for
        it before."""
        machine = self._machine
        job_id, tier, request = job.id, decision.tier, job.request
        now = machine.now
        trace = machine.trace(index)
        limit, work = request.walltime, trace.runtime
        if machine.left_over:
            work = machine.left_over.get(index, work)
        execution = Execution(
            index, trace, job, now, limit, work, now, decision.placement,
            tier=tier, bounded=self._tiers.told, pool=decision.pool or job.pool,
        )  # fmt: skip
        machine.running[job_id] = execution
        if not has_nodes:
            machine.occupy(execution)
        if self._tiers.used:
            self._tiers.enter(execution)
        elif tier != FOREGROUND:
            self._tiers.watch()
        bundled = self._bundles.used and self._bundles.joins(execution)
        if bundled:
            work = execution.work = INFINITY
        if self._rates.uneven or decision.frequency is not None:
            execution.frequency = decision.frequency
            self._rates.reconsider(execution)
        else:
            machine.agenda.complete(now + (work if work < limit else limit), execution)
        pool = decision.pool
        machine.news.append(_JobStarted(now, job_id, decision.placement, tier, decision.frequency, pool))
        if bundled:
            self._bundles.enter(execution)

    def begin_with(self, running: Sequence[Begun]) -> None:
        """Submit and start what runs already."""
        machine = self._machine
        positions = machine.arrivals.begin_with(begun.job_id for begun in running)
        for begun in running:
            index = positions[begun.job_id]
            trace = machine.arrivals.jobs[index]
            machine.news.append(ev.JobSubmitted(trace.job.submit_time, trace.job))
            execution = Execution.begun(index, trace, begun, machine.now, bounded=self._tiers.told)
            self._go_on(execution, begun.pool)

    def take_over(self, course: Course) -> None:
        """Have what waits and runs by now in a run that began elsewhere."""
        machine = self._machine
        machine.arrivals.arrived(course.arrived)
        for job_id, index in course.waiting.items():
            machine.submitted[job_id] = (index, machine.trace(index).job)
        machine.ended = course.ended
        for end, _, index, job in sorted(course.running, key=itemgetter(1)):
            start, limit = job.start_time, job.estimate
            assert start is not None
            trace = machine.trace(index)
            machine.running[job.id] = execution = Execution(
                index, trace, trace.job, start, limit, trace.runtime, start, pool=trace.job.pool
            )
            machine.occupy(execution)
            machine.agenda.complete(end, execution)
        machine.news.extend(_JobStarted(machine.now, job.id) for job in course.begun)

    def _go_on(self, execution: Execution, pool: str = "") -> None:
        """An execution that is under way has its processors, and is told of (``pool``: as JobStarted)."""
        machine, job_id, start = self._machine, execution.job.id, execution.start
        machine.running[job_id] = execution
        machine.occupy(execution)
        if self._tiers.used:
            self._tiers.enter(execution)
        elif execution.tier != FOREGROUND:
            self._tiers.watch()
        if self._rates.uneven or execution.frequency is not None:
            self._rates.reconsider(execution)
        else:
            machine.agenda.reschedule(execution)
        machine.news.append(
            _JobStarted(start, job_id, execution.placement, execution.tier, execution.frequency, pool)
        )
        if start + execution.consumed < machine.now:
            # It stood still for the rest.
            machine.news.append(ev.JobSuspended(start + execution.consumed, job_id))
            machine.news.append(ev.JobResumed(machine.now, job_id))
