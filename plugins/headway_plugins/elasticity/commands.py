"""Elastic control commands: a job's time and size changed by its user while it waits or runs.

R. Kumar, Z. Shae, H. Jamjoom: Scheduling Batch and Heterogeneous Jobs with Runtime Elasticity in a
Parallel Processing Environment. 2012, section 3.3: ET and RT extend and reduce a job's time, EP and
RP (the paper's future work) its processors. With this plugin a policy becomes its -E variant.

Commands are served first come, first served, before the policy is asked in the same instant. Each
gets an :class:`Answer` with its reason:

====  ==================================  =====================================================
      queued job                          running job
====  ==================================  =====================================================
ET    estimate += amount                  the same, its limit moves; refused if a dedicated job
                                          or a reservation would be delayed
RT    estimate -= amount, 1 s at least    the same; if it has run longer, it ends now
EP    processors += amount, at most the   granted if that many are free and are kept for nobody
      pool's                              during the job's remaining time
RP    processors -= amount, 1 at least    given back now, if the job is malleable
====  ==================================  =====================================================

Decisions on what the paper leaves open:

- A command that asks for more than is possible but for something possible is carried out as far as
  it goes, and its answer says "in part": a reduction below 1 second or 1 processor, a growth beyond
  the pool.
- A running job without a speed-up model is rigid: it may not be shrunk, and growing it leaves its
  remaining time as it is. The attribute ``malleable`` marks jobs whose work divides by their
  processors.
- With ``priority: jobs`` an extension is granted even if a dedicated job is delayed by it.
- With ``wait`` an EP that cannot be granted now stays in the command queue until it can or the job
  ends.
- A command for a job that is unknown, not submitted yet or over is refused. One job has at most
  ``max_per_job`` commands.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import Any, Literal

import msgspec
import pydantic

from headway.decisions import Decision, Kill, Resize, SetTimeLimit
from headway.events import ElasticCommandReceived, Event
from headway.hookspecs import Plugin, hookimpl
from headway.model import Placement
from headway.results import RunResult
from headway.state import Job, State, Status

#: What each command is called in sentences.
NAMES = {"ET": "extend time", "RT": "reduce time", "EP": "grow", "RP": "shrink"}


class Answer(msgspec.Struct, frozen=True):
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

    max_per_job: int = pydantic.Field(default=0, ge=0, description="commands that one job may have; 0: any number")
    priority: Literal["reservations", "jobs"] = pydantic.Field(
        default="reservations", description="whether an extension may delay dedicated jobs and reservations"
    )
    wait: bool = pydantic.Field(default=False, description="keep a growth that cannot be granted until it can")
    keep_answers: int = pydantic.Field(default=10_000, ge=1, description="how many answers are remembered")


class Elastic(Plugin):
    """Elastic commands (suffix -E): users extend, reduce, grow and shrink their jobs."""

    Options = ElasticOptions
    needs = (SetTimeLimit,)
    paper = (
        "R. Kumar, Z. Shae, H. Jamjoom: Scheduling Batch and Heterogeneous Jobs with Runtime Elasticity "
        "in a Parallel Processing Environment, 2012"
    )

    def __init__(self, options: ElasticOptions) -> None:
        super().__init__(options)
        self._queue: deque[ElasticCommandReceived] = deque()
        self._served: Counter[str] = Counter()
        #: What became of the latest commands, oldest first.
        self.answers: deque[Answer] = deque(maxlen=options.keep_answers)
        self._capabilities: frozenset[type] = frozenset()
        self._outcomes: Counter[str] = Counter()

    @hookimpl
    def startup(self, capabilities: frozenset[type]) -> None:
        self._capabilities = capabilities

    @hookimpl
    def observe(self, event: Event) -> None:
        if isinstance(event, ElasticCommandReceived):
            self._queue.append(event)

    @hookimpl
    def react(self, state: State) -> list[Decision]:
        decisions: list[Decision] = []
        for _ in range(len(self._queue)):
            command = self._queue.popleft()
            outcome, reason, decision = self._serve(command, state)
            if outcome == "waiting":
                self._queue.append(command)
                continue
            self._answer(command, state.now, outcome, reason)
            if decision is not None:
                decisions.append(decision)
        return decisions

    def _answer(self, command: ElasticCommandReceived, now: float, outcome: str, reason: str) -> None:
        self._outcomes[f"{command.command} {outcome}"] += 1
        if outcome != "refused":
            self._served[command.job_id] += 1
        self.answers.append(
            Answer(now, command.job_id, command.command, command.amount, command.user, outcome, reason)
        )

    def _serve(self, command: ElasticCommandReceived, state: State) -> tuple[str, str, Decision | None]:
        job = state.jobs.get(command.job_id)
        if job is None:
            return "refused", f"job {command.job_id} is unknown, not submitted yet or over", None
        if command.command not in NAMES:
            return "refused", f"expected one of {', '.join(NAMES)}, found {command.command!r}", None
        if not command.amount > 0:
            return "refused", f"expected an amount above 0, found {command.amount:g}", None
        limit = self.options.max_per_job
        if limit and self._served[job.id] >= limit:
            return "refused", f"job {job.id} has had its {limit} commands", None
        if job.status is Status.STARTING:
            return "refused", f"job {job.id} is being started just now; try again", None
        if command.command in ("ET", "RT"):
            return self._time(job, command, state)
        if Resize not in self._capabilities:
            return "refused", "the cluster cannot change a job's size", None
        return self._size(job, command, state)

    # ------------------------------------------------------------------ time

    def _time(self, job: Job, command: ElasticCommandReceived, state: State) -> tuple[str, str, Decision | None]:
        change = command.amount if command.command == "ET" else -command.amount
        wanted = job.estimate + change
        running = job.entries is not None and job.start_time is not None
        outcome = "accepted"
        least = 1.0
        if command.command == "RT" and running:
            ran = state.now - (job.start_time or 0.0) - job.paused
            if wanted <= ran:
                reason = f"it has run {ran:.0f} s already, so it ends now (reduced)"
                return "accepted", reason, Kill(job.id, f"reduced by its user: {reason}")
        if wanted < least:
            outcome, wanted = "in part", least
        longest = job.pool.description.max_walltime
        if longest and wanted > longest:
            if job.estimate >= longest:
                return "refused", f"the limit of pool {job.pool.name!r} is {longest:.0f} s", None
            outcome, wanted = "in part", longest
        if command.command == "ET" and running:
            late = self._delays(job, job.expected_end + wanted - job.estimate, state)
            if late and self.options.priority == "reservations":
                return "refused", f"it would delay {late}", None
        reason = f"its time is {wanted:.0f} s now, was {job.estimate:.0f} s"
        return outcome, reason, SetTimeLimit(job.id, wanted, f"{NAMES[command.command]}: {reason}")

    @staticmethod
    def _delays(job: Job, end: float, state: State) -> str:
        """Whom it would delay if a running job ended at ``end``; "" if nobody."""
        pool = job.pool
        before = job.expected_end
        if not pool.flat:
            broken = state.nodes.broken(job.placement, state.now, end, job.description.reservation)
            if broken is not None:
                return f"reservation {broken.id}"
        elif pool.reservations:
            profile = state.profile(pool)
            if profile.minimum(before, end) < job.processors:
                return "reservation " + ", ".join(r.id for r in pool.reservations if r.start < end)
        dedicated = sorted(
            (float(start), other)
            for other in state.jobs.values()
            if other.pool is pool
            and other.status is Status.WAITING
            and (start := other.attribute("requested_start")) is not None
            and before <= float(start) < end
        ) if end > before else []
        if dedicated:
            profile = state.profile(pool)
            needed = 0
            for start, other in dedicated:
                needed += other.processors
                if profile.free_at(start) - job.processors < needed:
                    return f"dedicated job {other.id}, which must start at {start:.0f}"
        return ""

    # ------------------------------------------------------------------ size

    def _size(self, job: Job, command: ElasticCommandReceived, state: State) -> tuple[str, str, Decision | None]:
        amount = int(command.amount)
        if amount < 1:
            return "refused", f"expected whole processors, found {command.amount:g}", None
        change = amount if command.command == "EP" else -amount
        wanted = job.processors + change
        outcome = "accepted"
        if wanted < 1:
            outcome, wanted = "in part", 1
        if wanted > job.pool.total:
            outcome, wanted = "in part", job.pool.total
        if wanted == job.processors:
            return "refused", f"it has {job.processors} processors, and no more or fewer are possible", None
        reason = f"it has {wanted} processors now, had {job.processors}"
        if job.entries is None:
            return outcome, reason, Resize(job.id, wanted, (), f"{NAMES[command.command]}: {reason}")
        if command.command == "RP":
            if not job.attribute("malleable"):
                return "refused", "a running job that is not marked malleable cannot give processors back", None
            placement = _shrunk(job.placement, job.processors - wanted)
            return outcome, reason, Resize(job.id, wanted, placement, f"shrink: {reason}")
        more = wanted - job.processors
        refusal = self._no_room(job, more, state)
        if refusal:
            return ("waiting" if self.options.wait else "refused"), refusal, None
        grown = _grown(job, more, state)
        if grown is None:
            return ("waiting" if self.options.wait else "refused"), "its nodes have no room for more", None
        return outcome, reason, Resize(job.id, wanted, grown, f"grow: {reason}")

    @staticmethod
    def _no_room(job: Job, more: int, state: State) -> str:
        """Why a running job cannot have ``more`` processors now; "" if it can."""
        pool = job.pool
        if more > pool.free:
            return f"{more} more processors asked for, {pool.free} free"
        profile = state.profile(pool)
        head = pool.queue[0] if pool.queue else None
        if head is not None and head.processors > pool.free:
            start = profile.earliest(head.processors, head.expected_runtime, state.now)
            if start < job.expected_end:
                profile.reserve(start, start + head.expected_runtime, head.processors)
        for other in state.jobs.values():
            start_at = other.attribute("requested_start") if other.status is Status.WAITING else None
            if start_at is not None and other.pool is pool:
                begin = max(float(start_at), state.now)
                profile.reserve(begin, begin + other.expected_runtime, other.processors)
        if profile.minimum(state.now, max(job.expected_end, state.now)) < more:
            return "the processors that are free now are kept for others during its remaining time"
        return ""

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
