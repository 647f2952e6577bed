"""Bundles: the applications that run over several subjobs at once (:mod:`headway.model.bundles`).

A member has no work of its own, only a limit. The application has one work, its job's. It goes at the rate
that its *active* processors allow, and stands still while it is moved; members that the processes left end
when the move is over. When the work is done all members end, and the job with them, whether it waits or is a
member itself.

What it has done is safe whenever it was moved. If a member ends on which it runs, it falls back to that and
stands still until it is sent elsewhere; if no member is left, its job waits, and goes on from that on the
members that start next, be it its own request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headway import decisions as dec
from headway import events as ev
from headway.model import JobDescription
from headway.model.bundles import Oversubscription, on_tick, parent_of
from headway.results import Activity, JobResult, Occupation
from headway.workload.jobs import TraceJob
from headway_adapters.emulated.arrivals import INFINITY
from headway_adapters.emulated.execution import Execution
from headway_adapters.emulated.machine import Machine

#: Seconds of work: what is less when the members' time is over is rounding.
_NOTHING = 1e-5
_Leave = Callable[[Execution, float, str, str, list[ev.Event]], None]


class Bundle:
    """One application, and where it runs."""

    __slots__ = (
        "active", "application", "gathers", "index", "job", "leaving", "members", "migrations", "moving",
        "past", "restarts", "safe", "since", "start", "until",
    )  # fmt: skip

    def __init__(self, index: int, job: JobDescription) -> None:
        self.index = index
        self.job = job
        #: When the first member started; None: none has yet.
        self.start: float | None = None
        #: The work; None: it is not launched.
        self.application: Execution | None = None
        #: What runs, by id, in the order of the starts; of these where the application is, with processors.
        self.members: dict[str, Execution] = {}
        self.active: dict[str, int] = {}
        #: What the processes leave with the move; a subjob that starts meanwhile waits for the next move.
        self.leaving: list[str] = []
        #: It is being moved since ... until; a number that tells one move from the next.
        self.since = self.until = -INFINITY
        self.moving = 0
        #: It was launched and not sent anywhere since: a subjob that starts at that instant belongs to it.
        self.gathers = False
        #: Work left, seconds, if a member is lost, or all are.
        self.safe = 0.0
        self.migrations = self.restarts = 0
        #: What members had that have ended.
        self.past: list[Occupation] = []


class Bundles:
    """Submits subjobs, and runs applications on them."""

    def __init__(self, machine: Machine, costs: Oversubscription) -> None:
        self._machine = machine
        self._costs = costs
        self._bundles: dict[str, Bundle] = {}
        #: There was a subjob.
        self.used = False
        #: Bundles that are being ended: what their members do is no news for them.
        self._ending: set[str] = set()

    def ends_with(self, leave: _Leave) -> None:
        """How a member is ended: (execution, now, outcome, reason, events)."""
        self._leave = leave

    def __contains__(self, job_id: str) -> bool:
        """Whether a job runs as a bundle."""
        bundle = self._bundles.get(job_id)
        return bundle is not None and bool(bundle.members)

    # ------------------------------------------------------------------ members come

    def submit(self, decision: dec.SubmitSubjob) -> str:
        """A further job, behind all others. Returns why not, or ""."""
        machine, job, parent = self._machine, decision.job, decision.parent_id
        if parent_of(job) != parent:
            return f"job {job.id} does not say that it is a subjob of job {parent}"
        if job.id in machine.submitted or job.id in machine.running:
            return f"job {job.id} exists"
        if parent not in self._bundles:
            known = machine.submitted.get(parent)
            if known is None:
                return f"job {parent} is not waiting"
            self._bundles[parent] = Bundle(*known)
        self.used = True
        machine.bundled = self.record
        machine.further.append(TraceJob(job, INFINITY))
        machine.submitted[job.id] = (-len(machine.further), job)
        machine.news.append(ev.JobSubmitted(machine.now, job))
        return ""

    def joins(self, execution: Execution) -> bool:
        """Whether an execution that begins is a member of a bundle."""
        execution.bundle = parent_of(execution.job) or execution.job.id
        bundle = self._bundles.get(execution.bundle)
        if bundle is not None and (bundle.start is not None or execution.index < 0):
            return True
        execution.bundle = ""
        return False

    def enter(self, execution: Execution) -> None:
        """A member has started. The application is launched on the members that start together."""
        bundle, now = self._bundles[execution.bundle], self._machine.now
        bundle.members[execution.job.id] = execution
        if bundle.start is None:
            bundle.start, bundle.safe = now, self._work(bundle)
        application = bundle.application
        if application is None:
            trace = self._machine.trace(bundle.index)
            application = Execution(
                bundle.index, trace, bundle.job, now, INFINITY, bundle.safe, now, bundle=execution.bundle,
                pool=bundle.job.pool,
            )  # fmt: skip
            bundle.application, bundle.gathers = application, True
        if application.start == now and bundle.gathers:
            bundle.active[execution.job.id] = execution.job.request.processors
            self._go_on(bundle)

    def _work(self, bundle: Bundle) -> float:
        """Seconds of the whole application with a processor for each process."""
        return min(self._machine.trace(bundle.index).runtime, bundle.job.request.walltime)

    # ------------------------------------------------------------------ the application

    def _go_on(self, bundle: Bundle) -> None:
        """Count what was done, and go on as the active members allow."""
        application, now = bundle.application, self._machine.now
        if application is None:
            return
        application.book(now)
        application.rate = self._rate(bundle)
        self._machine.agenda.void(application)
        if application.rate > 0:
            # Not before now: rounding must not bring time back.
            end = max(now, on_tick(now + application.work / application.rate))
            self._machine.agenda.complete(end, application)

    def _rate(self, bundle: Bundle) -> float:
        if not bundle.active or self._machine.now < bundle.until:
            return 0.0
        processes = bundle.job.request.processors
        processors = min(processes, sum(bundle.active.values()))
        slowest = min(bundle.members[name].rate for name in bundle.active)
        return self._costs.rate(processes, processors) * slowest

    def migrate(self, decision: dec.Migrate) -> str:
        """Send the application to other members. Returns why not, or ""."""
        bundle, now = self._bundles[decision.job_id], self._machine.now
        for name, processors in decision.placement:
            member = bundle.members.get(name)
            if member is None:
                return f"job {name} is not a running member of the bundle of job {decision.job_id}"
            if not 0 < processors <= member.job.request.processors:
                return f"job {name} has {member.job.request.processors} processors, not {processors}"
        if not decision.placement or bundle.application is None:
            return f"job {decision.job_id}: expected the members that the bundle is to use, found none"
        application = bundle.application
        application.book(now)
        self._stop_moving(bundle)
        bundle.active = dict(decision.placement)
        bundle.leaving = [name for name in bundle.members if name not in bundle.active]
        bundle.moving += 1
        bundle.gathers = False
        if decision.restart:
            bundle.restarts += 1
            application.work = bundle.safe = self._work(bundle)
            self._arrived(bundle, restarted=True)
            return ""
        bundle.safe = application.work
        bundle.since, bundle.until = now, on_tick(now + self._costs.moving(bundle.job.request.processors))
        self._go_on(bundle)
        self._machine.agenda.at(bundle.until, self._over, (bundle, bundle.moving))
        return ""

    def _over(self, which: tuple[Bundle, int]) -> None:
        """A move is over, unless another one has begun."""
        bundle, moving = which
        if bundle.moving == moving and bundle.members:
            seconds = bundle.until - bundle.since
            self._stop_moving(bundle)
            self._arrived(bundle, seconds)

    def _stop_moving(self, bundle: Bundle) -> None:
        """A move counts if some of its time has passed."""
        if bundle.since < self._machine.now and bundle.since > -INFINITY:
            bundle.migrations += 1
        bundle.since = bundle.until = -INFINITY

    def _arrived(self, bundle: Bundle, seconds: float = 0.0, *, restarted: bool = False) -> None:
        """All processes are where they were sent."""
        machine = self._machine
        now, active = machine.now, tuple(bundle.active.items())
        for name in bundle.leaving:
            member = bundle.members.get(name)
            if member is not None:
                self._leave(member, now, "completed", "the processes of the bundle have left", machine.news)
        bundle.leaving = []
        machine.agenda.moved = True
        self._go_on(bundle)
        machine.news.append(ev.JobMigrated(now, bundle.job.id, active, restarted=restarted, seconds=seconds))

    # ------------------------------------------------------------------ ends

    def complete(self, execution: Execution, events: list[ev.Event]) -> None:
        """The application has done its work, or a member has reached its limit."""
        bundle, now = self._bundles[execution.bundle], self._machine.now
        application = bundle.application
        if execution is not application:
            assert application is not None
            application.book(now)
            if execution.job.id not in bundle.active:
                self._leave(execution, now, "completed", "the processes of the bundle have left", events)
                return
            if application.work > _NOTHING:
                self._leave(execution, now, "timed out", "its time limit", events)
                return
        trace = application.trace
        late = trace.runtime > bundle.job.request.walltime
        outcome, reason = ("timed out", "its time limit") if late else (trace.outcome, "")
        self.end(execution.bundle, outcome, reason, events)

    def end(self, job_id: str, outcome: str, reason: str, events: list[ev.Event]) -> None:
        """The application is over: all members end, and the job with them."""
        machine, bundle = self._machine, self._bundles[job_id]
        now = machine.now
        self._stop_moving(bundle)
        self._ending.add(job_id)
        for name, member in list(bundle.members.items()):
            own = name == job_id
            self._leave(member, now, outcome if own else "completed", reason if own else "", events)
        self._ending.discard(job_id)
        if job_id not in machine.running and bundle.index not in machine.ended:
            machine.submitted.pop(job_id, None)
            events.append(ev.JobEnded(now, job_id, outcome, reason))
        self._void(bundle)
        machine.end(bundle.index, self._record(bundle, now, outcome))
        del self._bundles[job_id]

    def left(self, member: Execution, outcome: str, events: list[ev.Event]) -> None:
        """A member is gone; ``outcome`` "": back to the queue."""
        bundle, machine = self._bundles[member.bundle], self._machine
        name = member.job.id
        del bundle.members[name]
        self._occupied(bundle, member, machine.now)
        if member.bundle in self._ending:
            return
        if name == bundle.job.id and outcome:
            self.end(name, outcome, "", events)
            return
        application = bundle.application
        if bundle.active.pop(name, None) is not None and application is not None:
            application.book(machine.now)
            application.work = bundle.safe
            self._stop_moving(bundle)
            bundle.active.clear()
            bundle.moving += 1
            bundle.gathers = False
            self._go_on(bundle)
        if not bundle.members:
            self._void(bundle)
            bundle.application = None
            if bundle.safe >= self._work(bundle):
                bundle.restarts += 1

    def _void(self, bundle: Bundle) -> None:
        if bundle.application is not None:
            self._machine.agenda.void(bundle.application)

    # ------------------------------------------------------------------ results

    def _occupied(self, bundle: Bundle, member: Execution, end: float) -> None:
        machine = self._machine
        processors = member.job.request.processors
        bundle.past.append(Occupation(member.start, end, processors, member.placement))
        if machine.power is not None:
            machine.activities.append(
                Activity(
                    bundle.job.id, member.start, end, machine.pool_of(member), processors,
                    member.placement, member.frequency,
                )
            )  # fmt: skip

    def record(self, job_id: str) -> JobResult | None:
        """The record of a job that runs as a bundle; None: it does not."""
        bundle = self._bundles.get(job_id)
        return self._record(bundle, None, "running") if bundle is not None and bundle.members else None

    def _record(self, bundle: Bundle, end: float | None, state: str) -> JobResult:
        machine = self._machine
        running = [
            Occupation(e.start, None, e.job.request.processors, e.placement) for e in bundle.members.values()
        ]
        until = machine.now if end is None else end
        more: dict[str, Any] = {"active_since": end} if machine.power is not None else {}
        return JobResult(
            bundle.job,
            bundle.start,
            end,
            state,
            until - (bundle.start if bundle.start is not None else until),
            pool=machine.pool_of(bundle.job),
            row=machine.trace(bundle.index).row,
            starts=1 + machine.restarts.get(bundle.index, 0),
            migrations=bundle.migrations,
            restarts=bundle.restarts,
            members=tuple(sorted([*bundle.past, *running], key=lambda member: member.start)),
            **more,
        )
