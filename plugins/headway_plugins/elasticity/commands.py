"""Elastic control commands: a job's time and size changed by its user while it waits or runs.

R. Kumar, Z. Shae, H. Jamjoom: Scheduling Batch and Heterogeneous Jobs with Runtime Elasticity in a
Parallel Processing Environment. 2012, section 3.3: ET and RT extend and reduce a job's time, EP and
RP (the paper's future work) its processors. With this plugin a policy becomes its -E variant.

Commands are served first come, first served, before the policy is asked in the same instant; each sees
what the commands before it have changed. Each gets a :class:`CommandOutcome` with its reason:

====  ==================================  =====================================================
      queued job                          running job
====  ==================================  =====================================================
ET    estimate += amount                  the same, its limit moves; refused if a dedicated job
                                          or a reservation would be delayed
RT    estimate -= amount, 1 s at least    the same; if it has run longer, it ends now
EP    processors += amount, at most the   granted if that many are free and neither the head of
      pool's                              the queue nor a dedicated job or reservation is delayed
RP    processors -= amount, 1 at least    given back now, if the job is malleable
====  ==================================  =====================================================

Decisions on what the paper leaves open:

- A command that asks for more than is possible but for something possible is carried out as far as
  it goes, and its outcome is "in part": a reduction below 1 second or 1 processor, a growth beyond
  the pool, an extension beyond the pool's limit.
- A job without a speed-up model is rigid: while it runs it may not be shrunk, and growing it leaves its
  remaining time as it is. The attribute ``malleable`` marks jobs whose work divides by their
  processors: their remaining time is scaled by old/new, and so is what is left of their limit. A
  waiting job's size changes without its estimate.
- Whether a job is delayed is judged by plan: dedicated jobs (by requested start) at their
  earliest starts, and for a growth the head of the queue behind them, with and without the change. On
  nodes this is by count, and reservations by their nodes.
- With ``priority: jobs`` an extension is granted even if a dedicated job or a reservation is delayed
  by it; so is a shrinking job's longer time.
- With ``wait`` an EP that cannot be granted now stays in the command queue until it can or the job
  ends. It does not hold up the commands behind it.
- A command for a job that is unknown, not submitted yet or over is refused. So is a command for another
  user's job unless an operator gives it. Commands of a workload are the job's user's own. A job has
  at most ``max_per_job`` commands that are not refused.
- A change that the cluster does not carry out is refused after all, with what the cluster says.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Literal

import msgspec
import pydantic

from headway.decisions import Answer, Decision, Kill, Resize, SetTimeLimit
from headway.events import DecisionFailed, ElasticCommandReceived, Event, JobEnded
from headway.hookspecs import Plugin, hookimpl
from headway.model import Placement, Reservation
from headway.plugins import Traits
from headway.resources.profile import Profile, next_after
from headway.results import RunResult
from headway.state import Domain, Job, PoolState, State, Status
from headway_plugins.policies.dedicated import requested_start

_INF = float("inf")

#: What each command is called in sentences.
NAMES = {"ET": "extend time", "RT": "reduce time", "EP": "grow", "RP": "shrink"}

#: An outcome, its reason, and what is to be done.
Verdict = tuple[str, str, list[Decision]]


class CommandOutcome(msgspec.Struct, frozen=True):
    """What became of a command."""

    time: float
    job_id: str
    command: str
    amount: float
    user: str
    #: "accepted", "in part", "refused" or "waiting".
    outcome: str
    reason: str


class ElasticOptions(pydantic.BaseModel):
    """Options of the command processor."""

    model_config = pydantic.ConfigDict(extra="forbid")

    max_per_job: int = pydantic.Field(default=0, ge=0, description="most commands for a job; 0: any number")
    priority: Literal["reservations", "jobs"] = pydantic.Field(
        default="reservations", description="whether an extension may delay dedicated jobs and reservations"
    )
    wait: bool = pydantic.Field(default=False, description="keep a request to grow until it can be granted")
    keep_answers: int = pydantic.Field(
        default=10_000, ge=1, description="number of outcomes that are remembered"
    )


class Elastic(Plugin):
    """Elastic commands (suffix -E): users extend, reduce, grow and shrink their jobs."""

    Options = ElasticOptions
    traits = Traits(
        needs=(SetTimeLimit,),
        observes=(ElasticCommandReceived, JobEnded, DecisionFailed),
        paper=(
            "R. Kumar, Z. Shae, H. Jamjoom: Scheduling Batch and Heterogeneous Jobs with Runtime "
            "Elasticity in a Parallel Processing Environment, 2012"
        ),
    )

    def __init__(self, options: ElasticOptions) -> None:
        super().__init__(options)
        self._queue: deque[ElasticCommandReceived] = deque()
        self._served: Counter[str] = Counter()
        #: What became of the latest commands, oldest first.
        self.answers: deque[CommandOutcome] = deque(maxlen=options.keep_answers)
        self._capabilities: frozenset[type] = frozenset()
        self._outcomes: Counter[str] = Counter()
        #: The last granted command of a job and its decisions, until the job ends.
        self._granted: dict[str, tuple[ElasticCommandReceived, list[Decision]]] = {}
        #: The limit of a job before the command that changed its size and time, seconds.
        self._limits: dict[str, float] = {}
        self._undo: list[Decision] = []
        #: Answers to the requests of this step.
        self._answers: dict[str, Answer] = {}

    @hookimpl
    def startup(self, capabilities: frozenset[type]) -> None:
        self._capabilities = capabilities

    @hookimpl
    def observe(self, event: Event) -> None:
        if isinstance(event, ElasticCommandReceived):
            self._queue.append(event)
        elif isinstance(event, JobEnded):
            self._served.pop(event.job_id, None)
            self._granted.pop(event.job_id, None)
            self._limits.pop(event.job_id, None)
        elif isinstance(event, DecisionFailed):
            command, decisions = self._granted.get(getattr(event.decision, "job_id", ""), (None, []))
            if command is not None and event.decision in decisions:
                del self._granted[command.job_id]
                self._served[command.job_id] -= 1
                self._note(command, event.time, "refused", f"by the cluster: {event.message}")
                # A size and its time go together: if the size is refused, the time is as it was.
                before = self._limits.pop(command.job_id, None)
                if before is not None and isinstance(event.decision, Resize) and len(decisions) > 1:
                    why = "its size could not be changed, so its time is what it was"
                    self._undo.append(SetTimeLimit(command.job_id, before, why))

    @hookimpl
    def react(self, state: State) -> Iterator[Decision]:
        self._answers.clear()
        undo, self._undo = self._undo, []
        yield from undo
        for _ in range(len(self._queue)):
            command = self._queue.popleft()
            outcome, reason, decisions = self._serve(command, state)
            if command.request:
                self._answers[command.request] = Answer(outcome, reason, tuple(decisions))
            if len(decisions) > 1:
                self._limits[command.job_id] = state.jobs[command.job_id].estimate
            if outcome == "waiting":
                # The user that asked for it is told so; the later outcome is in the journal.
                self._queue.append(msgspec.structs.replace(command, request=""))
                continue
            if outcome != "refused":
                self._served[command.job_id] += 1
                self._granted[command.job_id] = (command, decisions)
            self._note(command, state.now, outcome, reason)
            yield from decisions

    @hookimpl
    def answer(self, request: str) -> Answer | None:
        return self._answers.pop(request, None)

    def _note(self, command: ElasticCommandReceived, now: float, outcome: str, reason: str) -> None:
        self._outcomes[f"{command.command} {outcome}"] += 1
        self.answers.append(
            CommandOutcome(
                now, command.job_id, command.command, command.amount, command.user, outcome, reason
            )
        )

    def _serve(self, command: ElasticCommandReceived, state: State) -> Verdict:
        job = state.jobs.get(command.job_id)
        if job is None:
            return _refused(f"job {command.job_id} is unknown, not submitted yet or over")
        if command.command not in NAMES:
            return _refused(f"expected one of {', '.join(NAMES)}, found {command.command!r}")
        if not 0 < command.amount < _INF:
            return _refused(f"expected an amount above 0, found {command.amount:g}")
        if command.user and command.user != job.user and not command.operator:
            return _refused(f"job {job.id} belongs to {job.user or 'another user'}, not to {command.user}")
        limit = self.options.max_per_job
        if limit and self._served[job.id] >= limit:
            return _refused(f"job {job.id} has used all of its {limit} commands")
        if job.status is Status.STARTING:
            return _refused(f"job {job.id} is being started now; try again")
        if command.command in ("ET", "RT"):
            return self._time(job, command, state)
        if Resize not in self._capabilities:
            return _refused("the cluster cannot change a job's size")
        return self._size(job, command, state)

    # ------------------------------------------------------------------ time

    def _time(self, job: Job, command: ElasticCommandReceived, state: State) -> Verdict:
        wanted = job.estimate + (command.amount if command.command == "ET" else -command.amount)
        running = job.entries is not None
        outcome = "accepted"
        if command.command == "RT" and running and wanted <= (ran := _ran(job, state.now)):
            reason = f"it has run {ran:.0f} s already, so the job ends now (reduced)"
            if Kill not in self._capabilities:
                return _refused(f"it has run {ran:.0f} s already, and the cluster cannot end it")
            return outcome, reason, [Kill(job.id, f"reduced by its user: {reason}")]
        if wanted < 1.0:
            if job.estimate <= 1.0:
                return _refused(
                    f"its time limit is {job.estimate:.0f} s, and a shorter limit is not possible"
                )
            outcome, wanted = "in part", 1.0
        longest = job.pool.description.max_walltime
        if longest and command.command == "ET" and wanted > longest:
            if job.estimate >= longest:
                return _refused(f"the limit of pool {job.pool.name!r} is {longest:.0f} s")
            outcome, wanted = "in part", longest
        if command.command == "ET" and running and self.options.priority == "reservations":
            late = delayed(job, job.expected_end + wanted - job.estimate, job.processors, state)
            if late:
                return _refused(f"it would delay {late}")
        reason = f"its time is {wanted:.0f} s now, was {job.estimate:.0f} s"
        return outcome, reason, [
            SetTimeLimit(job.id, wanted, f"{NAMES[command.command]}: {reason}", asked=True)
        ]  # fmt: skip

    # ------------------------------------------------------------------ size

    def _size(self, job: Job, command: ElasticCommandReceived, state: State) -> Verdict:
        amount = int(command.amount)
        if amount < 1:
            return _refused(f"expected whole processors, found {command.amount:g}")
        wanted = job.processors + (amount if command.command == "EP" else -amount)
        possible = min(max(wanted, 1), max(job.pool.total, job.processors))
        if possible == job.processors:
            return _refused(f"it has {job.processors} processors, and more or fewer are not possible")
        outcome = "accepted" if possible == wanted else "in part"
        reason = f"it has {possible} processors now, had {job.processors}"
        if job.entries is None:
            return outcome, reason, [Resize(job.id, possible, (), f"{NAMES[command.command]}: {reason}")]
        if command.command == "RP":
            return self._shrink(job, possible, outcome, reason, state)
        return self._grow(job, possible, outcome, reason, state)

    def _shrink(self, job: Job, wanted: int, outcome: str, reason: str, state: State) -> Verdict:
        if not job.attribute("malleable"):
            return _refused("a running job that is not marked malleable cannot give processors back")
        estimate, end = _rescaled(job, wanted, state.now)
        if self.options.priority == "reservations" and (late := delayed(job, end, wanted, state)):
            return _refused(f"it would run longer on fewer processors and delay {late}")
        placement = _shrunk(job.placement, job.processors - wanted)
        reason += f"; its time is {estimate:.0f} s now, was {job.estimate:.0f} s"
        return outcome, reason, [
            SetTimeLimit(job.id, estimate, f"shrink: {reason}"),
            Resize(job.id, wanted, placement, f"shrink: {reason}"),
        ]  # fmt: skip

    def _grow(self, job: Job, wanted: int, outcome: str, reason: str, state: State) -> Verdict:
        refusal = "waiting" if self.options.wait else "refused"
        more = wanted - job.processors
        free = state.free_in(job.pool)
        if more > free:
            return refusal, f"{more} more processors asked for, {free} free", []
        late = delayed(job, job.expected_end, wanted, state, head=True)
        if late:
            return refusal, f"the processors that are free now are reserved: the job would delay {late}", []
        placement = _grown(job, more, state)
        if placement is None:
            return refusal, "the nodes of the job have no room for more", []
        decisions: list[Decision] = [Resize(job.id, wanted, placement, f"grow: {reason}")]
        if job.attribute("malleable"):
            estimate, _ = _rescaled(job, wanted, state.now)
            reason += f"; its time is {estimate:.0f} s now, was {job.estimate:.0f} s"
            decisions.append(SetTimeLimit(job.id, estimate, f"grow: {reason}"))
        return outcome, reason, decisions

    @hookimpl
    def checkpoint(self) -> dict[str, Any]:
        return {"queue": [msgspec.to_builtins(c) for c in self._queue], "served": dict(self._served)}

    @hookimpl
    def restore(self, saved: dict[str, Any]) -> None:
        self._queue = deque(msgspec.convert(c, ElasticCommandReceived) for c in saved["queue"])
        self._served = Counter(saved["served"])

    @hookimpl
    def register_metrics(self) -> dict[str, Callable[[RunResult], Any]]:
        return {"elastic commands": lambda result: dict(sorted(self._outcomes.items()))}


def _refused(reason: str) -> Verdict:
    return "refused", reason, []


def _ran(job: Job, now: float) -> float:
    """Seconds that a job has run."""
    since = job.suspended_since if job.suspended_since is not None else now
    return since - (job.start_time if job.start_time is not None else now) - job.paused


def _rescaled(job: Job, processors: int, now: float) -> tuple[float, float]:
    """A malleable job's estimate and expected end on another number of processors."""
    ran, scale = _ran(job, now), job.processors / processors
    left = max(job.estimate - ran, 0.0)
    return ran + left * scale, now + max(job.expected_end - now, 0.0) * scale


def delayed(job: Job, end: float, processors: int, state: State, *, head: bool = False) -> str:
    """What it delays if the running ``job`` has ``processors`` from now to ``end``; "" if nothing.

    It can delay a dedicated job or a reservation; with ``head`` also the head of the queue.
    """
    domain = job.domain
    jobs = _planned(domain, state, head)
    if not domain.flat:
        broken = state.nodes.broken(job.placement, state.now, end, state.inside(job))
        if broken is not None and end > job.expected_end:
            return _whose(broken, state)
    # What is reserved for dedicated jobs is booked below, by count.
    own = {kept.id for other in (job, *jobs) if (kept := state.kept_for(other)) is not None}
    for pool in dict.fromkeys((job.pool, *(other.pool for other in jobs))):
        there = [other for other in jobs if other.pool is pool]
        if late := _delayed_in(pool, there, job, end, processors, state, own):
            return late
    return ""


def _delayed_in(
    pool: PoolState, jobs: list[Job], job: Job, end: float, processors: int, state: State, own: set[str]
) -> str:
    """As :func:`delayed`, of these jobs of a pool of the domain, by the processors of that pool."""
    has = state.held_in(pool, job)
    if not has:
        return ""
    # Which of its nodes it grows on, or leaves, is not known here: it has as many of other pools as it can.
    gets = processors if pool is job.pool else has + max(processors - job.processors, 0)
    before = state.pool_profile(pool, without=own)
    after = before.copy()
    after.release(state.now, max(job.expected_end, next_after(state.now)), has)
    after.reserve(state.now, max(end, next_after(state.now)), min(gets, processors))
    reservations = pool.domain.reservations
    if reservations and after.minimum(state.now, end) < min(0, before.minimum(state.now, end)):
        return "reservation " + ", ".join(r.id for r in reservations if r.start < end and r.id not in own)
    for other, planned, changed in zip(
        jobs, _starts(jobs, before, state.now), _starts(jobs, after, state.now), strict=True
    ):
        if changed > planned:
            return _called(other)
    return ""


def _called(job: Job) -> str:
    """A waiting job that would be delayed, for a person."""
    start = requested_start(job)
    if start is None:
        return f"job {job.id}, which is first in the queue"
    return f"dedicated job {job.id}, which must start at {start:.0f}"


def _whose(reservation: Reservation, state: State) -> str:
    """A reservation that would be broken, for a person."""
    job = state.jobs.get(reservation.job_id)
    return f"reservation {reservation.id}" if job is None else _called(job)


def _planned(domain: Domain, state: State, head: bool) -> list[Job]:
    """Dedicated jobs by requested start, then the first other job of the queue if asked for.

    Jobs that arrive in this instant come after its commands.
    """
    jobs = [
        job
        for job in state.jobs.values()
        if job.domain is domain
        and job.submit_time < state.now
        and job.status in (Status.WAITING, Status.PENDING)
        and not job.barred
        and requested_start(job) is not None
    ]
    jobs.sort(key=lambda job: (requested_start(job), job.seq))
    if head:
        there = (job for job in domain.queue if requested_start(job) is None and job.submit_time < state.now)
        jobs.extend(islice(there, 1))
    return jobs


def _starts(jobs: list[Job], profile: Profile, now: float) -> list[float]:
    """The earliest start of each job after the jobs before it; books them in ``profile``."""
    starts = []
    for job in jobs:
        start = profile.earliest(job.processors, job.expected_runtime, max(requested_start(job) or now, now))
        if start != _INF:
            profile.reserve(start, start + job.expected_runtime, job.processors)
        starts.append(start)
    return starts


def _shrunk(placement: Placement, fewer: int) -> Placement:
    """The placement with ``fewer`` processors, taken from its last nodes."""
    kept = []
    for name, count in reversed(placement):
        gone = min(count, fewer)
        fewer -= gone
        if count > gone:
            kept.append((name, count - gone))
    return tuple(reversed(kept))


def _grown(job: Job, more: int, state: State) -> Placement | None:
    """The placement with ``more`` processors on the nodes that it has; () on a flat pool; None: no room."""
    if job.pool.flat:
        return ()
    nodes = state.nodes
    grown = []
    for name, count in job.placement:
        at = nodes.index[name]
        extra = min(more, int(nodes.free.processors[at])) if nodes.available[at] else 0
        more -= extra
        grown.append((name, count + extra))
    return tuple(grown) if not more else None
