"""A discrete-event cluster in virtual time.

Each running job has *work* (seconds at rate 1) and a *rate*; whenever something changes the rate,
the progress so far is booked and the completion is moved. Jobs are killed at their limit. At one
instant all completions come first, then changes, then arrivals in file order; what is started with
no work left completes in a further round at the same instant.

The cluster checks every start itself (it is the machine, the scheduler only believes to know it)
and refuses what does not fit with a :class:`~headway.events.DecisionFailed`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from headway import decisions as dec
from headway import events as ev
from headway.adapter import Check, ClusterAdapter, Outcome
from headway.errors import StateError, UserError
from headway.model import ClusterDescription, JobDescription, Placement, Reservation
from headway.nodes import NodeTable
from headway.results import Activity, CapacityChange, JobResult, NodePower
from headway.workload.jobs import TraceCommand, TraceJob
from headway_adapters.emulated import faults as _faults
from headway_adapters.emulated.physics import Physics
from headway_adapters.emulated.power import Power, activity

_INF = float("inf")
_JobSubmitted, _JobStarted, _JobEnded = ev.JobSubmitted, ev.JobStarted, ev.JobEnded
_Start = dec.Start
_ACCEPTED = Outcome(accepted=True)
#: Order of what happens at one instant: completions, then changes (arrivals come last).
_COMPLETION, _CHANGE = 0, 1
#: At most so many further rounds at one instant for what decisions changed.
_FURTHER_ROUNDS = 100


class Execution(msgspec.Struct, eq=False, gc=False):
    """One run of a job on the machine."""

    #: Position in the workload.
    index: int
    trace: TraceJob
    #: The description as it is now (limits may have been changed).
    job: JobDescription
    start: float
    #: Seconds of execution after which it is killed.
    limit: float
    #: Work left, seconds at rate 1, as of ``booked_at``.
    work: float
    booked_at: float
    placement: Placement = ()
    #: Seconds of execution (not suspended) as of ``booked_at``.
    consumed: float = 0.0
    rate: float = 1.0
    suspended: bool = False
    tier: str = "foreground"
    frequency: float | None = None
    #: Completions in the heap with another version are void.
    version: int = 0
    #: Since when it runs as it does now; None: since its start.
    active_since: float | None = None

    @classmethod
    def begin(
        cls, index: int, trace: TraceJob, job: JobDescription, start: float, placement: Placement
    ) -> Execution:
        return cls(index, trace, job, start, job.request.walltime, trace.runtime, start, placement)


class EmulatedAdapter(ClusterAdapter):
    """The emulated cluster as an adapter."""

    Faults = _faults.Faults

    capabilities = frozenset({
        dec.Start, dec.Hold, dec.Release, dec.Suspend, dec.Resume, dec.Requeue, dec.Kill, dec.Cancel,
        dec.SetTimeLimit, dec.Resize, dec.Reserve, dec.Unreserve,
    })  # fmt: skip

    @classmethod
    def capable_of(
        cls, cluster: ClusterDescription, options: Mapping[str, Any] | None = None
    ) -> frozenset[type[dec.Decision]]:
        """Frequencies and sleep need an energy profile."""
        if cluster.energy is None:
            return cls.capabilities
        return cls.capabilities | {dec.SetFrequency, dec.PowerDown, dec.PowerUp}

    def __init__(
        self,
        cluster: ClusterDescription,
        jobs: Sequence[TraceJob],
        *,
        commands: Sequence[TraceCommand] = (),
        physics: Sequence[Physics] = (),
        faults: _faults.Faults | None = None,
        rng: np.random.Generator | None = None,
        start: float | None = None,
        running: Sequence[tuple[str, float, Placement]] = (),
        power: Mapping[str, str] | None = None,
    ) -> None:
        """``jobs`` in order of submission, ``commands`` their users' elastic commands; ``rng`` draws
        the faults.

        ``running`` are jobs of the workload that run already when the emulation begins, as
        ``(job id, seconds since their start, placement)``; ``start`` is the time at which it begins
        (default: the first submission). ``power`` are the power states of nodes that are not on then;
        without an energy profile it says nothing.
        """
        self._cluster = cluster
        self._jobs: Sequence[TraceJob] = jobs
        #: The workload is a list of our own, which may be changed.
        self._own_jobs: bool = False
        self._physics = tuple(physics)
        self.capabilities = self.capable_of(cluster)
        self._power = Power(cluster) if cluster.energy is not None else None
        #: Every start has a rate of its own.
        self._uneven = self._power is not None and self._power.uneven
        #: What jobs did before they changed, where there is an energy profile.
        self.activities: list[Activity] = []
        self._faults = faults or _faults.Faults()
        self._rng = rng if rng is not None else np.random.default_rng(0)
        self._next = 0
        #: When the next job of the workload arrives.
        self._arrival = jobs[0].job.submit_time if jobs else _INF
        #: Some completion was moved, so that the heap may hold void ones.
        self._moved = False
        self._heap: list[tuple[float, int, int, Any, int]] = []
        self._seq = 0
        #: Events that are true already and are told by the next wait.
        self._news: list[ev.Event] = []
        #: Some news changes what the scheduler may do, so it is told in a further round at this instant.
        self._urgent = False
        #: How many such rounds there were at the instant of the last one.
        self._further = (-_INF, 0)
        self._submitted: dict[str, tuple[int, JobDescription]] = {}
        self._running: dict[str, Execution] = {}
        self._results: list[JobResult | None] = [None] * len(jobs)
        #: How often a job of the workload went back to the queue.
        self._restarts: dict[int, int] = {}
        #: Changes of the usable processors, for the metrics.
        self.capacity: list[CapacityChange] = []
        self._nodes = NodeTable()
        for node in cluster.nodes:
            self._nodes.put(node)
        self._free = {p.name: p.processors for p in cluster.pools if p.flat}
        self._only = cluster.pools[0].name if len(cluster.pools) == 1 else ""
        self._reservations: dict[str, Reservation] = {r.id: r for r in cluster.reservations}
        self._immediate = self._faults.latency == 0 and self._faults.failure_rate == 0
        self.now = start if start is not None else (jobs[0].job.submit_time if jobs else 0.0)
        for previous, job in pairwise(jobs):
            if job.job.submit_time < previous.job.submit_time:
                raise ValueError(f"job {job.job.id} is submitted before its predecessor in the workload")
        self._check_flat_faults()
        if self._faults.node_mtbf:
            for name in [node.name for node in cluster.nodes if node.available]:
                self._at(self.now + self._rng.exponential(self._faults.node_mtbf), _CHANGE, self._fail, name)
        #: Jobs whose limit or size was changed.
        self._altered: set[str] = set()
        #: Commands about a job's time that were told and are not answered yet, by job: (time, ET or RT).
        self._time_commands: dict[str, list[tuple[float, str]]] = {}
        for command in commands:
            self._at(command.time, _CHANGE, self._command, command)
        for reservation in self._reservations.values():
            self._plan_reservation(reservation)
        if running:
            self._begin_with(running)
        if self._power is not None:
            self._begin_asleep(power or {})

    def _check_flat_faults(self) -> None:
        if self._faults.node_mtbf and any(p.flat for p in self._cluster.pools):
            raise UserError(
                "emulation.faults.node_mtbf: node failures need pools made of nodes, found the flat pool "
                + ", ".join(repr(p.name) for p in self._cluster.pools if p.flat)
            )

    # ------------------------------------------------------------------ the interface

    def describe(self) -> ClusterDescription:
        return self._cluster

    def check(self) -> list[Check]:
        size = ", ".join(
            f"{p.name}: {p.processors or self._nodes.count(p.name)[0]} processors"
            for p in self._cluster.pools
        )
        return [Check("emulated cluster", True, f"{size}; {len(self._jobs)} jobs")]

    def wait(self, deadline: float | None) -> tuple[float, Sequence[ev.Event]] | None:
        heap = self._heap
        if self._moved:
            while heap and type(heap[0][3]) is Execution and heap[0][3].version != heap[0][4]:
                heappop(heap)
        arrival = self._arrival
        now = heap[0][0] if heap else _INF
        if arrival < now:
            now = arrival
        if self._urgent and self._further_round():
            now = self.now
        elif deadline is not None and deadline < now:
            if now == _INF and not self._submitted and not self._running:
                return self._end()
            now = deadline
        elif now == _INF or (
            arrival == _INF and not self._running and not self._news and self._over(deadline)
        ):
            return self._end()
        if now < self.now:
            now = self.now
        self.now = now
        events = self._news
        self._news = []
        while heap and heap[0][0] <= now:
            _, _, _, what, argument = heappop(heap)
            if type(what) is Execution:
                if what.version != argument:
                    continue
                if argument or self._physics:
                    self._complete(what, now, events)
                else:
                    # It ran undisturbed at rate 1.
                    what.consumed = now - what.start
                    if what.work > what.limit:
                        self._leave(what, now, "timed out", "its time limit", events)
                    else:
                        self._leave(what, now, what.trace.outcome, "", events)
            else:
                what(argument)
                if self._news:
                    events.extend(self._news)
                    self._news = []
        if arrival <= now:
            jobs, at, submitted = self._jobs, self._next, self._submitted
            job = jobs[at].job
            while arrival <= now:
                submitted[job.id] = (at, job)
                events.append(_JobSubmitted(arrival, job))
                at += 1
                if at == len(jobs):
                    arrival = _INF
                    break
                job = jobs[at].job
                arrival = job.submit_time
            self._arrival = arrival
            self._next = at
        return now, events

    def _further_round(self) -> bool:
        """Whether news is told at this same instant: a plugin that never rests must not stop the clock."""
        self._urgent = False
        instant, rounds = self._further
        self._further = (self.now, rounds + 1 if instant == self.now else 1)
        return self._further[1] <= _FURTHER_ROUNDS

    def _over(self, deadline: float | None) -> bool:
        """Nothing runs or arrives: whether nobody who waits can start any more."""
        if not self._submitted:
            return True
        # All nodes are up and nothing but their failures lies ahead.
        return deadline is None and all(entry[3] == self._fail for entry in self._heap)

    def _end(self) -> tuple[float, Sequence[ev.Event]] | None:
        if self._news and self._further_round():
            events, self._news = self._news, []
            return self.now, events
        return None

    def apply(self, now: float, decisions: Sequence[dec.Decision]) -> Sequence[Outcome]:
        outcomes = []
        if self._immediate:
            for decision in decisions:
                if type(decision) is _Start:  # the common case first
                    outcome = self._start(decision)
                    if not outcome.accepted:
                        self._urgent = True
                else:
                    told = len(self._news)
                    outcome = self._carry_out(decision)
                    if len(self._news) > told:
                        self._urgent = True
                outcomes.append(outcome)
            return outcomes
        for decision in decisions:
            if self._rng.random() < self._faults.failure_rate:
                refusal = (decision, "injected failure: the command was refused")
                self._at(now + self._faults.latency, _CHANGE, self._refuse, refusal)
            else:
                self._at(now + self._faults.latency, _CHANGE, self._carry_out, decision)
        return [_ACCEPTED] * len(decisions)

    def submit(self, job: TraceJob) -> None:
        """A further job, which nobody knew of when the emulation began.

        Raises ValueError when it is submitted in the past or before a job of the workload.
        """
        jobs = self._changed_jobs()
        earliest = max(self.now, jobs[-1].job.submit_time) if jobs else self.now
        if job.job.submit_time < earliest:
            raise ValueError(f"job {job.job.id} is submitted before its predecessor in the workload or now")
        jobs.append(job)
        self._results.append(None)
        if self._next == len(jobs) - 1:
            self._arrival = job.job.submit_time

    # ------------------------------------------------------------------ results

    @property
    def power(self) -> list[NodePower]:
        """Changes of nodes' power states so far."""
        return self._power.log if self._power is not None else []

    def results(self) -> list[JobResult]:
        """One record for each job submitted so far, in order of submission."""
        records = []
        for index in range(self._next):
            record = self._results[index]
            if record is None:
                trace = self._jobs[index]
                execution = self._running.get(trace.job.id)
                if execution is None:
                    record = JobResult(trace.job, None, None, "pending", 0.0, row=trace.row,
                                       starts=self._restarts.get(index, 0),
                                       pool=trace.job.pool or self._only)  # fmt: skip
                else:
                    record = self._record(execution, None, "running")
                    if not execution.suspended:
                        record.runtime += self.now - execution.booked_at
            records.append(record)
        return records

    def _record(self, execution: Execution, end: float | None, state: str) -> JobResult:
        job = execution.job
        return JobResult(
            job,
            execution.start,
            end,
            state,
            execution.consumed,
            execution.placement,
            job.pool or self._only,
            execution.trace.row,
            1 + self._restarts.get(execution.index, 0),
            execution.frequency,
            # While it is suspended it does nothing.
            end if execution.suspended and end is not None else execution.active_since,
        )

    # ------------------------------------------------------------------ time

    def _at(self, time: float, phase: int, what: Any, argument: Any) -> None:
        self._seq += 1
        heappush(self._heap, (time, phase, self._seq, what, argument))

    def _reschedule(self, execution: Execution) -> None:
        """Put the job's completion where its work, rate and limit say."""
        execution.version += 1
        self._moved = True
        seconds = execution.limit - execution.consumed
        if execution.suspended:
            return
        if execution.rate > 0:
            seconds = min(seconds, execution.work / execution.rate)
        self._at(execution.booked_at + max(seconds, 0.0), _COMPLETION, execution, execution.version)

    def _book(self, execution: Execution, now: float) -> None:
        """Count the progress since the last change of rate."""
        if not execution.suspended:
            elapsed = now - execution.booked_at
            execution.consumed += elapsed
            execution.work = max(execution.work - elapsed * execution.rate, 0.0)
        execution.booked_at = now

    def reconsider(self, execution: Execution, now: float) -> None:
        """Ask the physics for the job's rate again and move its completion."""
        self._book(execution, now)
        rate = 1.0
        for module in self._physics:
            rate *= module.rate(execution, now)
        if self._power is not None:
            rate *= self._power.rate(execution, execution.job.pool or self._only)
        execution.rate = rate
        self._reschedule(execution)

    # ------------------------------------------------------------------ what jobs do

    def _complete(self, execution: Execution, now: float, events: list[ev.Event]) -> None:
        self._book(execution, now)
        # A limit that leaves no more than rounding's worth of work is met, not missed.
        if execution.work > 1e-6 * max(execution.rate, 1e-9):
            self._leave(execution, now, "timed out", "its time limit", events)
        else:
            self._leave(execution, now, execution.trace.outcome, "", events)

    def _leave(
        self, execution: Execution, now: float, outcome: str, reason: str, events: list[ev.Event]
    ) -> None:
        execution.version += 1
        job = execution.job
        job_id = job.id
        if job_id in self._altered:
            # A change that nobody was told of yet is of no interest any more.
            self._altered.discard(job_id)
            events[:] = [event for event in events if not _alters(event, job_id)]
        del self._running[job_id]
        self._vacate(execution)
        self._results[execution.index] = self._record(execution, now, outcome)
        events.append(_JobEnded(now, job_id, outcome, reason))

    def _vacate(self, execution: Execution) -> None:
        pool = execution.job.pool or self._only
        if pool in self._free:
            self._free[pool] += execution.job.request.processors
        else:
            self._nodes.give_back(execution.job.request, execution.placement)

    def _start(self, decision: dec.Start) -> Outcome:
        job_id = decision.job_id
        known = self._submitted.get(job_id)
        if known is None:
            return self._refuse((decision, f"job {job_id} is not waiting"))
        index, job = known
        if job.held:
            return self._refuse((decision, f"job {job_id} is held"))
        pool = job.pool or self._only
        request = job.request
        free = self._free.get(pool)
        if free is not None:
            if request.processors > free:
                return self._refuse((decision, f"{request.processors} processors asked for, {free} free"))
            self._free[pool] = free - request.processors
        else:
            try:
                self._nodes.guard(request, decision.placement, pool)
            except StateError as error:
                return self._refuse((decision, str(error)))
            self._nodes.take(request, decision.placement)
        del self._submitted[job_id]
        now = self.now
        trace = self._jobs[index]
        limit, work = request.walltime, trace.runtime
        execution = Execution(index, trace, job, now, limit, work, now, decision.placement)
        self._running[job_id] = execution
        if self._physics or self._uneven or decision.frequency is not None or decision.tier != "foreground":
            execution.frequency = decision.frequency
            execution.tier = decision.tier
            self.reconsider(execution, now)
        else:
            self._seq += 1
            end = now + (work if work < limit else limit)
            heappush(self._heap, (end, _COMPLETION, self._seq, execution, 0))
        self._news.append(_JobStarted(now, job_id, decision.placement, decision.tier, decision.frequency))
        return _ACCEPTED

    def _begin_with(self, running: Sequence[tuple[str, float, Placement]]) -> None:
        """Submit and start what runs already."""
        ids = {entry[0] for entry in running}
        waiting = {job.job.id: at for at, job in enumerate(self._jobs) if job.job.id in ids}
        for job_id, elapsed, placement in running:
            at = waiting[job_id]
            trace = self._jobs[at]
            start = self.now - elapsed
            execution = Execution.begin(at, trace, trace.job, start, placement)
            self._running[job_id] = execution
            pool = trace.job.pool or self._only
            if pool in self._free:
                self._free[pool] -= trace.job.request.processors
            else:
                self._nodes.take(trace.job.request, placement)
            self._book(execution, self.now)
            self._reschedule(execution)
            self._news.append(ev.JobSubmitted(trace.job.submit_time, trace.job))
            self._news.append(ev.JobStarted(start, job_id, placement))
        self._jobs = [job for job in self._jobs if job.job.id in ids] + [
            job for job in self._jobs if job.job.id not in ids
        ]
        order = {job.job.id: at for at, job in enumerate(self._jobs)}
        for execution in self._running.values():
            execution.index = order[execution.job.id]
        self._next = len(ids)
        rest = self._jobs[self._next :]
        self._arrival = rest[0].job.submit_time if rest else _INF

    # ------------------------------------------------------------------ other decisions

    def _refuse(self, refusal: tuple[Any, str]) -> Outcome:
        decision, message = refusal
        self._news.append(ev.DecisionFailed(self.now, decision, message))
        return Outcome(accepted=False, message=message)

    def _carry_out(self, decision: dec.Decision) -> Outcome:
        if isinstance(decision, dec.Start):
            return self._start(decision)
        action = _ACTIONS.get(type(decision))
        if action is None:
            return self._refuse(
                (decision, f"the emulated cluster cannot carry out {type(decision).__name__}")
            )
        refusal = action(self, decision)
        return self._refuse((decision, refusal)) if refusal else _ACCEPTED

    def _hold(self, decision: dec.Hold) -> str:
        if decision.job_id not in self._submitted:
            return f"job {decision.job_id} is not waiting"
        if self._submitted[decision.job_id][1].held:
            return ""
        self._set_held(decision.job_id, True)
        self._news.append(ev.JobHeld(self.now, decision.job_id, decision.reason))
        return ""

    def _release(self, decision: dec.Release) -> str:
        if decision.job_id not in self._submitted:
            return f"job {decision.job_id} is not waiting"
        if not self._submitted[decision.job_id][1].held:
            return ""
        self._set_held(decision.job_id, False)
        self._news.append(ev.JobReleased(self.now, decision.job_id))
        return ""

    def _set_held(self, job_id: str, held: bool) -> None:
        index, job = self._submitted[job_id]
        self._submitted[job_id] = (index, msgspec.structs.replace(job, held=held))

    def _suspend(self, decision: dec.Suspend) -> str:
        execution = self._running.get(decision.job_id)
        if execution is None or execution.suspended:
            return f"job {decision.job_id} is not running"
        self._book(execution, self.now)
        self._change(execution)
        execution.suspended = True
        self._reschedule(execution)
        self._news.append(ev.JobSuspended(self.now, decision.job_id))
        return ""

    def _resume(self, decision: dec.Resume) -> str:
        execution = self._running.get(decision.job_id)
        if execution is None or not execution.suspended:
            return f"job {decision.job_id} is not suspended"
        self._book(execution, self.now)
        self._change(execution)
        execution.suspended = False
        self._reschedule(execution)
        self._news.append(ev.JobResumed(self.now, decision.job_id))
        return ""

    def _requeue(self, decision: dec.Requeue) -> str:
        execution = self._running.get(decision.job_id)
        if execution is None:
            return f"job {decision.job_id} is not running"
        self._back_to_queue(execution, decision.reason)
        return ""

    def _back_to_queue(self, execution: Execution, reason: str) -> None:
        execution.version += 1
        self._moved = True
        self._change(execution)
        job = execution.job
        del self._running[job.id]
        self._vacate(execution)
        self._submitted[job.id] = (execution.index, job)
        self._restarts[execution.index] = self._restarts.get(execution.index, 0) + 1
        self._news.append(ev.JobRequeued(self.now, job.id, reason))

    def _kill(self, decision: dec.Kill | dec.Cancel) -> str:
        execution = self._running.get(decision.job_id)
        if execution is not None:
            self._book(execution, self.now)
            self._moved = True
            # Who reduces a job's time below what it has run says that it is done.
            done = self._answered(decision.job_id, "RT")
            outcome, reason = ("completed", "reduced") if done else ("cancelled", decision.reason)
            self._leave(execution, self.now, outcome, reason, self._news)
            return ""
        known = self._submitted.pop(decision.job_id, None)
        if known is None:
            return f"job {decision.job_id} is not known"
        index, job = known
        self._results[index] = JobResult(
            job,
            None,
            self.now,
            "cancelled",
            0.0,
            (),
            job.pool or self._only,
            self._jobs[index].row,
            self._restarts.get(index, 0),
        )
        self._news.append(ev.JobEnded(self.now, job.id, "cancelled", decision.reason))
        return ""

    def _command(self, command: TraceCommand) -> None:
        """A user's command. What it says about the job's time is what the job will need."""
        if command.command in ("ET", "RT"):
            self._time_commands.setdefault(command.job_id, []).append((self.now, command.command))
        self._news.append(
            ev.ElasticCommandReceived(self.now, command.job_id, command.command, command.amount)
        )

    def _answered(self, job_id: str, kind: str) -> bool:
        """Whether a command of this kind is what a decision that is carried out now answers.

        Commands are answered in the instant in which they come; those that were not have been refused.
        """
        told = self._time_commands.get(job_id)
        if told is None:
            return False
        told[:] = [command for command in told if command[0] + self._faults.latency >= self.now]
        for at, (_, command) in enumerate(told):
            if command == kind:
                del told[at]
                return True
        return False

    def _set_time_limit(self, decision: dec.SetTimeLimit) -> str:
        job_id = decision.job_id
        execution = self._running.get(job_id)
        known = self._submitted.get(job_id)
        if execution is None and known is None:
            return f"job {job_id} is not known"
        old = execution.job if execution is not None else known[1]  # type: ignore[index]
        if decision.walltime == old.request.walltime:
            return ""
        new = _with_request(old, walltime=decision.walltime)
        # A limit changed by its user's command goes with the work (the user knows what the job needs).
        change = decision.walltime - old.request.walltime
        if not self._answered(job_id, "ET" if change > 0 else "RT"):
            change = 0.0
        if execution is not None:
            self._book(execution, self.now)
            execution.job = new
            execution.limit = decision.walltime
            execution.work = max(execution.work + change, 0.0)
            self._reschedule(execution)
        else:
            index = known[0]  # type: ignore[index]
            self._submitted[job_id] = (index, new)
            if change:
                self._change_work(index, change)
        self._tell_changed(new)
        return ""

    def _tell_changed(self, job: JobDescription) -> None:
        self._altered.add(job.id)
        self._news.append(ev.JobChanged(self.now, job))

    def _change_work(self, index: int, change: float) -> None:
        trace = self._jobs[index]
        runtime = max(trace.runtime + change, 0.0)
        self._changed_jobs()[index] = msgspec.structs.replace(trace, runtime=runtime)

    def _changed_jobs(self) -> list[TraceJob]:
        """The workload as a list of our own, so that the caller's is never changed."""
        if not self._own_jobs:
            self._jobs = list(self._jobs)
            self._own_jobs = True
        return self._jobs  # type: ignore[return-value]

    def _resize(self, decision: dec.Resize) -> str:
        job_id = decision.job_id
        if decision.processors < 1:
            return f"job {job_id} cannot have {decision.processors} processors"
        known = self._submitted.get(job_id)
        if known is not None:
            index, old = known
            if refusal := _shape_in_nodes(old):
                return refusal
            new = _with_request(old, processors=decision.processors)
            self._submitted[job_id] = (index, new)
            self._tell_changed(new)
            return ""
        execution = self._running.get(job_id)
        if execution is None:
            return f"job {job_id} is not known"
        old = execution.job
        if refusal := _shape_in_nodes(old):
            return refusal
        new = _with_request(old, processors=decision.processors)
        self._change(execution)
        pool = old.pool or self._only
        more = decision.processors - old.request.processors
        if pool in self._free:
            if more > self._free[pool]:
                return f"{more} more processors asked for, {self._free[pool]} free"
            self._free[pool] -= more
        else:
            self._nodes.give_back(old.request, execution.placement)
            try:
                self._nodes.guard(new.request, decision.placement, pool)
            except StateError as error:
                self._nodes.take(old.request, execution.placement)
                return str(error)
            self._nodes.take(new.request, decision.placement)
            execution.placement = decision.placement
        self._book(execution, self.now)
        if (old.attributes or {}).get("malleable"):
            # Perfectly parallel work: the same work takes less time on more processors.
            execution.work *= old.request.processors / decision.processors
        execution.job = new
        self._reschedule(execution)
        self._tell_changed(new)
        if execution.placement:
            self._news.append(ev.JobMigrated(self.now, job_id, execution.placement))
        return ""

    def _reserve(self, decision: dec.Reserve) -> str:
        reservation = decision.reservation
        if reservation.end <= max(reservation.start, self.now):
            return f"reservation {reservation.id} ends before it begins or in the past"
        unknown = [name for name in reservation.nodes if name not in self._nodes.index]
        if unknown:
            return f"reservation {reservation.id} names unknown nodes: {', '.join(unknown)}"
        if self._reservations.get(reservation.id) == reservation:
            return ""
        self._reservations[reservation.id] = reservation
        self._plan_reservation(reservation)
        self._news.append(ev.ReservationMade(self.now, reservation))
        return ""

    def _unreserve(self, decision: dec.Unreserve) -> str:
        if self._reservations.pop(decision.reservation_id, None) is None:
            return f"reservation {decision.reservation_id} is not known"
        self._news.append(ev.ReservationEnded(self.now, decision.reservation_id))
        return ""

    def _plan_reservation(self, reservation: Reservation) -> None:
        if reservation.start > self.now:
            self._at(reservation.start, _CHANGE, self._reservation_begins, reservation)
        self._at(reservation.end, _CHANGE, self._reservation_ends, reservation)

    def _reservation_begins(self, reservation: Reservation) -> None:
        if self._reservations.get(reservation.id) is reservation:
            self._news.append(ev.ReservationStarted(self.now, reservation.id))

    def _reservation_ends(self, reservation: Reservation) -> None:
        if self._reservations.get(reservation.id) is reservation:
            del self._reservations[reservation.id]
            self._news.append(ev.ReservationEnded(self.now, reservation.id))

    # ------------------------------------------------------------------ power and frequency

    def _change(self, execution: Execution) -> None:
        """The job will run otherwise from now on: note what it did until now."""
        if self._power is not None:
            done = activity(execution, self.now, execution.job.pool or self._only)
            if done is not None:
                self.activities.append(done)
            execution.active_since = self.now

    def _set_frequency(self, decision: dec.SetFrequency) -> str:
        if self._power is None:
            return "the emulated cluster has no energy profile, so it knows no frequencies"
        execution = self._running.get(decision.job_id)
        if execution is None:
            return f"job {decision.job_id} is not running"
        self._change(execution)
        execution.frequency = decision.frequency
        self.reconsider(execution, self.now)
        self._news.append(ev.JobFrequencyChanged(self.now, decision.job_id, decision.frequency))
        return ""

    def _power_down(self, decision: dec.PowerDown) -> str:
        power = self._power
        if power is None:
            return "the emulated cluster has no energy profile, so its nodes have no sleep state"
        for name in decision.nodes:
            at = self._nodes.index.get(name)
            if at is None:
                return f"node {name} is not known"
            if power.model.class_of(name).sleep is None:
                return f"node {name} has no sleep state"
            if self._nodes.free.processors[at] != self._nodes.total[at]:
                return f"node {name} is not idle"
        for name in decision.nodes:
            if name in power.recalled:
                power.recalled.discard(name)
            elif name not in power.states:
                self._set_power(name, "falling asleep")
                sleep = power.model.class_of(name).sleep
                self._at(self.now + (sleep.enter_time if sleep else 0.0), _CHANGE, self._asleep, name)
        return ""

    def _power_up(self, decision: dec.PowerUp) -> str:
        power = self._power
        if power is None:
            return "the emulated cluster has no energy profile, so its nodes have no sleep state"
        if unknown := [name for name in decision.nodes if name not in self._nodes.index]:
            return f"unknown nodes: {', '.join(unknown)}"
        for name in decision.nodes:
            if power.states.get(name) == "falling asleep":
                power.recalled.add(name)
            elif power.states.get(name) == "asleep":
                self._begin_to_wake(name)
        return ""

    def _set_power(self, name: str, state: str) -> None:
        assert self._power is not None
        self._power.set(self.now, name, state)
        self._nodes.set_power(name, state, self.now)
        self._news.append(ev.NodePowerChanged(self.now, name, state))

    def _begin_asleep(self, power: Mapping[str, str]) -> None:
        """Have nodes in these power states from the beginning on; one on its way is at its first second."""
        assert self._power is not None
        for name, state in power.items():
            sleep = self._power.model.class_of(name).sleep if name in self._nodes.index else None
            if sleep is None:
                continue
            self._set_power(name, state)
            if state == "falling asleep":
                self._at(self.now + sleep.enter_time, _CHANGE, self._asleep, name)
            elif state == "waking":
                self._at(self.now + sleep.leave_time, _CHANGE, self._awake, name)

    def _asleep(self, name: str) -> None:
        assert self._power is not None
        self._set_power(name, "asleep")
        if name in self._power.recalled:
            self._power.recalled.discard(name)
            self._begin_to_wake(name)

    def _begin_to_wake(self, name: str) -> None:
        assert self._power is not None
        self._set_power(name, "waking")
        sleep = self._power.model.class_of(name).sleep
        self._at(self.now + (sleep.leave_time if sleep else 0.0), _CHANGE, self._awake, name)

    def _awake(self, name: str) -> None:
        self._set_power(name, "on")
        if self._faults.wake_failure_rate and self._rng.random() < self._faults.wake_failure_rate:
            self._nodes.set_available(name, False)
            self._news.append(ev.NodeDown(self.now, name, "did not wake"))
            self._note_capacity(name)
            delay = self._rng.exponential(self._faults.node_repair)
            self._at(self.now + delay, _CHANGE, self._mended, name)

    def _mended(self, name: str) -> None:
        self._nodes.set_available(name, True)
        self._news.append(ev.NodeUp(self.now, self._nodes.descriptions[name]))
        self._note_capacity(name)

    # ------------------------------------------------------------------ what nodes do

    def _fail(self, name: str) -> None:
        self._nodes.set_available(name, False)
        for execution in list(self._running.values()):
            if any(node == name for node, _ in execution.placement):
                self._book(execution, self.now)
                self._moved = True
                if self._faults.requeue:
                    self._back_to_queue(execution, f"node {name} failed")
                else:
                    self._leave(execution, self.now, "node failure", f"node {name} failed", self._news)
        self._news.append(ev.NodeDown(self.now, name, "failed"))
        self._note_capacity(name)
        self._at(self.now + self._rng.exponential(self._faults.node_repair), _CHANGE, self._repair, name)

    def _repair(self, name: str) -> None:
        self._nodes.set_available(name, True)
        self._news.append(ev.NodeUp(self.now, self._nodes.descriptions[name]))
        self._note_capacity(name)
        self._at(self.now + self._rng.exponential(self._faults.node_mtbf), _CHANGE, self._fail, name)

    def _note_capacity(self, name: str) -> None:
        for pool in self._nodes.descriptions[name].pools:
            self.capacity.append(CapacityChange(self.now, pool, self._nodes.count(pool)[0]))


def _alters(event: ev.Event, job_id: str) -> bool:
    """Whether it is news of a change of this job."""
    if isinstance(event, ev.JobChanged):
        return event.job.id == job_id
    return isinstance(event, ev.JobMigrated) and event.job_id == job_id


def _shape_in_nodes(job: JobDescription) -> str:
    """Why a job's processors alone cannot be changed; "" if they can."""
    request = job.request
    if request.nodes or request.processors_per_node or request.processors_per_chunk or request.exclusive:
        return f"job {job.id} asks for whole nodes or a number on each: its processors do not change alone"
    return ""


def _with_request(job: JobDescription, **changes: Any) -> JobDescription:
    return msgspec.structs.replace(job, request=msgspec.structs.replace(job.request, **changes))


_ACTIONS: dict[type[dec.Decision], Callable[[Any, Any], str]] = {
    dec.Hold: EmulatedAdapter._hold,
    dec.Release: EmulatedAdapter._release,
    dec.Suspend: EmulatedAdapter._suspend,
    dec.Resume: EmulatedAdapter._resume,
    dec.Requeue: EmulatedAdapter._requeue,
    dec.Kill: EmulatedAdapter._kill,
    dec.Cancel: EmulatedAdapter._kill,
    dec.SetTimeLimit: EmulatedAdapter._set_time_limit,
    dec.Resize: EmulatedAdapter._resize,
    dec.Reserve: EmulatedAdapter._reserve,
    dec.Unreserve: EmulatedAdapter._unreserve,
    dec.SetFrequency: EmulatedAdapter._set_frequency,
    dec.PowerDown: EmulatedAdapter._power_down,
    dec.PowerUp: EmulatedAdapter._power_up,
}
