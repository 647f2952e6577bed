"""SAREG on a cluster: jobs are accepted if they meet their deadlines, and slack becomes security.

T. Xie, X. Qin, A. Sung: Enhancing Security of Real-Time Applications on Grids Through Dynamic Scheduling.
JSSPP 2005, Figure 3, on one site: see ``grid.py`` for the algorithm and ``levels.py`` for the levels.
``ns-edf`` is the same with levels that are drawn once and never raised.

A job says what it needs in its attributes ``deadline`` (absolute seconds) and ``security``
(:func:`headway_plugins.security.levels.need_of`). When it arrives it is promised a time [start, end) and
levels, or refused with what is missing; the promise is kept whatever comes later. Decisions:

- Execution is the user's estimate: a job that may run so long must not make the next one late. What ends
  early gives the rest of its time back, and promised jobs move to earlier times, in order of their starts,
  never to later ones; their levels stay.
- A job without a deadline is promised the first time at which it fits, at the levels that fit before the
  next promise; one without ``security`` is not protected and costs nothing.
- A pool is a site. A job stays in its own: nothing moves waiting jobs between sites. Where pools share nodes
  no job is promised what may be taken from a job of another pool that waits for it (``pool_sites.py``). One
  of several pools is promised a time in the first of them that can keep its deadline.
- When a job starts, its limit is lengthened by what its protection takes, where limits can be changed;
  elsewhere (volclava, OpenLava) the user's own has to hold both. In emulation the run takes that much longer.
- On nodes a promise is one of processors, and a job that says how it lies on nodes (their number, processors,
memory or anything else
  on each) is promised whole nodes, as many as it may need: then jobs of these kinds never wait for each
  other's corners. Jobs that were there before, or that somebody else starts, count until their limits.
- Where jobs can be told (:class:`Annotate`), each is told its levels before it starts
(``protection/label.py``), and how fast
  the options are is learnt from what jobs tell (:class:`Speeds`). The tables of 2005 protect nothing there,
  so a measured profile is needed.
- Nothing starts without a promise, whoever asks for it.
- Protection makes a limit longer than its user may ask for, so it adds at most ``longest`` seconds, and never
  more than the pool's limit leaves.
- What breaks promises (a pool that shrinks) is said in the log, and the job starts as soon as it fits.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

import msgspec
import pydantic
import structlog

from headway.decisions import Annotate, Decision, SetTimeLimit, Start
from headway.errors import UserError
from headway.events import Event, JobChanged, JobEnded, JobRequeued, JobStarted, NodeUp, PoolChanged
from headway.hookspecs import Plugin, hookimpl
from headway.inputs import text_of
from headway.model import Request
from headway.plugins import Traits
from headway.report.quantities import duration
from headway.results import RunResult
from headway.state import Job, PoolState, State
from headway.state.choices import facing_pool
from headway.state.records import ON_NODES
from headway.view import View
from headway.workload import WorkloadModel
from headway_plugins.security.deadlines import DeadlinesModel
from headway_plugins.security.grid import Shortfall
from headway_plugins.security.learnt import Speeds
from headway_plugins.security.levels import (
    ROUNDING,
    SERVICES,
    Need,
    Option,
    Profile,
    Steps,
    need_of,
    parse_profile,
    profile_2005,
    raise_exactly,
    raise_in_turn,
)
from headway_plugins.security.pool_sites import PoolSites
from headway_plugins.security.protection.label import NOTE, TOOK, label_text

log = structlog.get_logger(__name__)

_INF = float("inf")
#: Attributes of a job: absolute seconds; what :func:`need_of` reads.
DEADLINE = "deadline"
SECURITY = "security"
#: Why the cluster can note nothing at it.
CANNOT_BE_TOLD = "cannot_be_told"
#: Words for headway in its comment that nothing reads.
UNREAD = "unread"
#: Of a job that asks for none: one option a service that does nothing.
_NONE = (Option(0.0, "none"),)
NOTHING = Need(0.0, (_NONE, _NONE, _NONE), (0.0, 0.0, 0.0))
_PAPER = (
    "T. Xie, X. Qin, A. Sung: Enhancing Security of Real-Time Applications on Grids Through Dynamic "
    "Scheduling, JSSPP 2005"
)


class SaregOptions(pydantic.BaseModel):
    """Which levels there are and how they are chosen."""

    model_config = pydantic.ConfigDict(extra="forbid")

    profile: Path | None = pydantic.Field(
        default=None,
        description="what each level costs: a file of `headway security measure`; None: the paper's "
        "tables of 2005",
    )
    levels: Literal["in-turn", "exact"] = pydantic.Field(
        default="in-turn",
        description="in-turn: the service with the largest weight is raised first, as in the paper; exact: "
        "the largest weighted sum of levels that fits",
    )

    margin: float = pydantic.Field(
        default=0.0,
        ge=0,
        le=86400,
        description="seconds that are planned for each job beside its own: on a batch system what it takes "
        "to start it and to learn of its end",
    )

    longest: float = pydantic.Field(
        default=86400.0,
        gt=0,
        le=3660 * 86400,
        description="seconds that the protection of a job may add to its limit; who asks for more is refused",
    )

    best_effort: bool = pydantic.Field(
        default=False,
        description="who cannot be promised its deadline is started at the lowest levels once nobody who "
        "was promised something needs the processors; else it is refused",
    )

    _read: Profile = pydantic.PrivateAttr()

    @pydantic.model_validator(mode="after")
    def _profile(self, info: pydantic.ValidationInfo) -> SaregOptions:
        if self.profile is None:
            self._read = profile_2005()
            return self
        try:
            text = text_of(self.profile, info.context)
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"profile: {self.profile} cannot be read: {error}") from error
        try:
            self._read = parse_profile(text, str(self.profile))
        except UserError as error:
            raise ValueError(str(error)) from error
        return self

    @property
    def read(self) -> Profile:
        """The profile."""
        return self._read


class _Promise(msgspec.Struct):
    """A time of a pool and levels that were promised to a job; absolute seconds."""

    pool: str
    processors: int
    start: float
    end: float
    steps: Steps
    #: Seconds that the job may run without its protection.
    execution: float
    #: Its limit once it has started.
    limit: float
    deadline: float
    #: Its deadline could not be promised.
    late: bool = False
    running: bool = False
    #: It was never promised anything, and only occupies.
    stranger: bool = False
    #: Where pools share nodes: what the job has of each pool, once it runs.
    held: dict[str, int] = {}
    #: Service -> the name of what was promised; empty: the job is not protected.
    options: dict[str, str] = {}
    at_upper_ends: bool = False
    #: SL of a task.
    level: float = 0.0


class _Figures(msgspec.Struct):
    """What became of one account's jobs."""

    submitted: int = 0
    met: int = 0
    missed: int = 0
    at_upper_ends: int = 0
    levels: float = 0.0
    value: float = 0.0

    def told(self) -> dict[str, Any]:
        ratio = self.met / self.submitted if self.submitted else None
        return {
            "submitted": self.submitted,
            "met": self.met,
            "missed": self.missed,
            "guarantee_ratio": ratio,
            "security_value": self.value,
            "overall": self.value * ratio if ratio is not None else None,
            "mean_level": self.levels / self.met if self.met else None,
            "at_upper_ends": self.at_upper_ends / self.met if self.met else None,
        }


class Sareg(Plugin):
    """Accept jobs that meet their deadlines, and spend their slack on security levels."""

    Options = SaregOptions
    traits = Traits(checkpoint="promises", paper=_PAPER)

    def __init__(self, options: SaregOptions | None = None) -> None:
        super().__init__(options or SaregOptions())
        self._profile: Profile = self.options.read
        self._seed = 0
        self._state: State | None = None
        #: What was promised, by pool; there from the startup on.
        self._sites: PoolSites
        self._grouped: tuple[str, ...] = ()
        self._promises: dict[str, _Promise] = {}
        #: How often something of the checkpoint has changed.
        self._promised = 0
        self._needs: dict[str, Need] = {}
        #: Pools in which something gave time back.
        self._dirty: set[str] = set()
        self._woken: dict[str, float] = {}
        self._by_account: dict[str, _Figures] = {}
        self._accounts: dict[str, str] = {}
        self._refused: dict[str, str] = {}
        #: Of those that are still there: why, and what they had asked for; and those of the run before, until
        #: they are told again.
        self._away: dict[str, list[Any]] = {}
        self._were_away: dict[str, list[Any]] = {}
        #: Processors of the largest node, the two largest, and so on, by pool.
        self._largest: dict[str, list[int]] = {}
        self._asked: dict[str, Any] = {}
        self._tells = False
        self._lengthens = True
        self._speeds = Speeds()

    # ------------------------------------------------------------------ what differs between the schedulers

    def _acceptable(self, job_id: str, need: Need) -> Need:
        """What the job may be given."""
        return need

    def _raised(self, need: Need, slack: float) -> Steps | None:
        raising = raise_exactly if self.options.levels == "exact" else raise_in_turn
        return raising(need, slack)

    # ------------------------------------------------------------------ hooks

    @hookimpl
    def promised(self) -> int:
        return self._promised

    @hookimpl
    def startup(self, state: State, capabilities: frozenset[type]) -> None:
        self._seed, self._state = state.seed, state
        self._sites = PoolSites(state, lambda: self._promises.values())
        self._grouped = tuple(state.domains)
        self._tells, self._lengthens = Annotate in capabilities, SetTimeLimit in capabilities
        nodes = [pool.name for pool in state.pools.values() if not pool.flat]
        if nodes and not self._tells:
            raise UserError(
                "sareg: expected a batch system whose jobs can be told their levels, or pools that are "
                f"counted in processors; found nodes in pool {nodes[0]!r}"
            )
        if self._tells and not self._profile.protects:
            raise UserError(
                f"sareg: the profile {self._profile.name!r} protects nothing, it is for experiments; "
                "expected option `profile`: a file of `headway security measure`"
            )

    @hookimpl
    def checkpoint(self) -> dict[str, Any]:
        return {
            "promises": msgspec.to_builtins(self._promises),
            "speeds": {option: list(runs) for option, runs in self._speeds.runs.items()},
            "refused": {**self._were_away, **self._away},
        }

    @hookimpl
    def restore(self, saved: Mapping[str, Any]) -> None:
        # JSON has no infinity: it comes back as nothing.
        promises = {
            name: {**kept, "deadline": _INF if kept["deadline"] is None else kept["deadline"]}
            for name, kept in saved["promises"].items()
        }
        self._promises = msgspec.convert(promises, dict[str, _Promise])
        self._speeds = Speeds({name: list(runs) for name, runs in saved.get("speeds", {}).items()})
        self._were_away = {name: list(kept) for name, kept in saved.get("refused", {}).items()}

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        if isinstance(event, NodeUp):
            self._largest.clear()
            grouped = tuple(state.domains)
            if grouped != self._grouped or any(len(domain.pools) > 1 for domain in state.domains.values()):
                # Other pools share nodes, or others than before.
                self._grouped = grouped
                self._sites.clear()
        elif isinstance(event, PoolChanged):
            self._sites.clear()
        elif isinstance(event, JobStarted):
            promise = self._promises.get(event.job_id)
            if promise is not None:
                self._promised += not promise.running
                self._runs(promise, state.jobs.get(event.job_id), state)
            elif event.job_id in state.jobs:
                self._occupied(state.jobs[event.job_id], state.now)
        elif isinstance(event, JobChanged):
            notes = (event.job.attributes or {}).get("notes")
            took = notes.get(TOOK) if isinstance(notes, Mapping) else None
            if isinstance(took, str):
                self._promised += self._speeds.learn(event.job.id, took)
        elif isinstance(event, JobEnded | JobRequeued):
            promise = self._promises.pop(event.job_id, None)
            if promise is not None:
                self._promised += 1
                self._give_back(promise, event.time)
                if isinstance(event, JobEnded) and not promise.stranger:
                    self._count(event, promise)
            if isinstance(event, JobEnded):
                self._needs.pop(event.job_id, None)
                self._asked.pop(event.job_id, None)
                self._promised += event.job_id in self._away or event.job_id in self._were_away
                self._away.pop(event.job_id, None)
                self._were_away.pop(event.job_id, None)
                self._speeds.forget(event.job_id)

    @hookimpl
    def admit_job(self, job: Job, state: State) -> str | None:
        if job.status in ON_NODES:
            return None
        now, old = state.now, self._promises.get(job.id)
        try:
            deadline = _deadline(job)
            need = self._need_of(job)
            _check_words(job)
        except UserError as error:
            return str(error)
        if old is not None:
            if old.pool != job.pool.name and old.pool in job.description.pools and not old.late:
                width = self._width_in(job, state.pools.get(old.pool))
                if (width, old.deadline, old.execution) == (old.processors, deadline, job.estimate):
                    return f"it was promised a time in pool {old.pool!r}"
            same = (old.pool, old.processors, old.deadline) == (job.pool.name, self._width(job), deadline)
            # A batch system rounds limits up to whole minutes.
            more = job.estimate - old.limit
            same = same and (job.estimate == old.execution or more == 0 or 0 < more < 60 * self._tells)
            asked = job.attribute(SECURITY)
            kept = self._needs.get(job.id) or self._kept(job, old)
            if same and kept is not None and asked == self._asked.get(job.id, asked):
                # Told again, by a cluster after a restart for example; speeds that were learnt since change
                # nothing.
                if job.id not in self._needs and kept is not NOTHING:
                    self._promised += old.steps != kept.lowest
                    old.steps = kept.lowest
                self._needs[job.id], self._asked[job.id] = kept, asked
                self._figures(job)
                return None
            self._promised += 1
            self._give_back(self._promises.pop(job.id), now)
        else:
            self._figures(job).submitted += job.id not in self._refused
        self._needs[job.id], self._asked[job.id] = need, job.attribute(SECURITY)
        untold = job.attribute(CANNOT_BE_TOLD) if self._tells and need is not NOTHING else None
        if untold:
            return self._answered(job, deadline, f"it cannot be told its security levels: {untold}")
        self._promised += job.id in self._were_away
        reason, asks = self._were_away.pop(job.id, (None, None))
        if reason is not None and asks == self._asks(job, deadline):
            # What was refused before a restart stays refused.
            return self._answered(job, deadline, reason)
        if impossible := self._impossible(job):
            return self._answered(job, deadline, impossible)
        if self._is_short(job):
            return self._answered(job, deadline, None)
        if job.held or job.description.dependencies or job.description.reservation:
            # Nobody knows when, or whether, it can start: it is promised a time once it can. What is too late
            # already is never in time.
            end = now + job.estimate + need.cost(need.lowest)
            late = _too_late(end - deadline, now, deadline)
        else:
            begin = job.description.begin_time
            late = self._promise(job, state, deadline, now if begin is None else max(begin, now))
        return self._answered(job, deadline, None if self.options.best_effort else late)

    def _answered(self, job: Job, deadline: float, refused: str | None) -> str | None:
        if refused is not None:
            self._promised += 1
            self._refused[job.id] = refused
            self._away[job.id] = [refused, self._asks(job, deadline)]
        else:
            self._promised += job.id in self._away
            self._refused.pop(job.id, None)
            self._away.pop(job.id, None)
        return refused

    def _asks(self, job: Job, deadline: float) -> list[Any]:
        """What its refusal goes by, as JSON values."""
        due = None if deadline == _INF else deadline
        asked: Any = msgspec.json.decode(msgspec.json.encode(job.attribute(SECURITY)))
        return [job.pool.name, self._width(job), job.estimate, due, asked]

    @hookimpl
    def schedule(self, view: View) -> Sequence[Decision]:
        now, domain, state = view.now, view.domain, self._state
        assert state is not None
        for job in view.queue:
            if job.id not in self._promises:
                self._late(job, state)
        waiting = self._in_turn(view.queue)
        if not self._dirty.isdisjoint(domain.pool_names):
            self._dirty.difference_update(domain.pool_names)
            self._earlier([job for _, _, job in waiting], now)
            waiting = self._in_turn(view.queue)
        first = _INF
        for start, _, job in waiting:
            if start > now + ROUNDING:
                first = min(first, start)
            elif self._begun(view, job) is None:
                self._again(job, now)
        if now < first < _INF and self._woken.get(domain.name) != first:
            self._woken[domain.name] = first
            state.wake_at(first, domain)
        return view.made

    def _begun(self, view: View, job: Job) -> Start | None:
        said = self._said(job)
        return view.start_on(job, (), reason=said) if view.domain.flat else view.start(job, said)

    def _in_turn(self, jobs: Iterable[Job]) -> list[tuple[float, int, Job]]:
        """By promised start (which comes first in each entry), then as they came."""
        jobs = [job for job in jobs if job.id in self._promises]
        starts = ((self._promises[job.id].start, job.seq, job) for job in jobs)
        return sorted(starts, key=lambda entry: entry[:2])

    @hookimpl
    def revise(self, decisions: list[Decision], state: State) -> list[Decision] | None:
        # What a job is told is there before it runs.
        revised: list[Decision] = [*self._labels(decisions, state)]
        for decision in decisions:
            revised.append(decision)
            if isinstance(decision, Start) and self._lengthens:
                promise, job = self._promises.get(decision.job_id), state.jobs.get(decision.job_id)
                if promise is not None and job is not None and promise.limit != job.request.walltime:
                    more = promise.limit - promise.execution
                    revised.append(
                        SetTimeLimit(decision.job_id, promise.limit, f"{more:.3f} s for its protection")
                    )
        return revised if len(revised) > len(decisions) else None

    def _labels(self, decisions: list[Decision], state: State) -> Iterable[Annotate]:
        for decision in decisions if self._tells else ():
            if isinstance(decision, Start) and decision.job_id in self._promises:
                label = label_text(self._promises[decision.job_id].options)
                notes = state.jobs[decision.job_id].attribute("notes")
                told = notes.get(NOTE, "") if isinstance(notes, Mapping) else ""
                if told != label and label:
                    yield Annotate(decision.job_id, NOTE, label, "its security levels")

    @hookimpl
    def veto(self, decision: Decision) -> str | None:
        if isinstance(decision, Start) and decision.job_id not in self._promises:
            return "it was promised neither a time nor security levels"
        return None

    @hookimpl
    def register_physics(self) -> Sareg:
        return self

    def rate(self, execution: Any, now: float) -> float:
        """Physics of the emulated cluster: protection makes a run longer by its seconds."""
        job_id = execution.job.id
        need, promise = self._needs.get(job_id), self._promises.get(job_id)
        work = execution.trace.runtime
        if need is None or promise is None or work <= 0:
            return 1.0
        return float(work / (work + need.cost(promise.steps)))

    @hookimpl
    def register_workloads(self) -> dict[str, WorkloadModel]:
        return {"deadlines": DeadlinesModel()}

    @hookimpl
    def register_metrics(self) -> dict[str, Callable[[RunResult], Any]]:
        return {"security": self._told}

    # ------------------------------------------------------------------ promises

    def _need_of(self, job: Job) -> Need:
        asked = job.attribute(SECURITY)
        if asked is None:
            return NOTHING
        where = f"job {job.id}: attribute {SECURITY}"
        if not isinstance(asked, Mapping):
            raise UserError(f"{where}: expected a mapping, found {asked!r}")
        return self._acceptable(job.id, need_of(asked, self._speeds.applied(self._profile), where))

    def _runs(self, promise: _Promise, job: Job | None, state: State) -> None:
        """A job has what it was promised, or as much in another of its pools."""
        if job is None or (len(job.domain.pools) == 1 and promise.pool == job.pool.name):
            promise.running = True
            return
        self._sites.release(promise)
        promise.running, promise.pool = True, job.pool.name
        promise.held = _held_of(job, state)
        self._sites.reserve(promise)

    def _width_in(self, job: Job, pool: PoolState | None) -> int:
        """As :meth:`_width`, in another of its pools; 0: there is no such pool."""
        if pool is None:
            return 0
        with facing_pool(job, pool):
            return self._width(job)

    def _width(self, job: Job) -> int:
        """Processors that it is promised."""
        request, state = job.request, self._state
        if job.pool.flat or state is None or not _lies(request):
            return job.processors
        pool = job.pool.name
        if pool not in self._largest:
            # Those that are down, too: they come back.
            sizes = (n.processors for n in state.nodes.descriptions.values() if pool in n.pools)
            self._largest[pool] = list(accumulate(sorted(sizes, reverse=True))) or [1]
        together = self._largest[pool]
        nodes = request.nodes or -(-job.processors // (request.processors_per_node or together[0]))
        # As many as it can take at most, where nodes differ.
        width, total = max(job.processors, together[min(max(nodes, 1), len(together)) - 1]), job.pool.total
        if width > total >= job.processors:
            # A large node is down. Where enough others are up it takes no more than all of these.
            up = int((state.nodes.pool_mask(pool) & state.nodes.available).sum())
            return total if nodes <= up else width
        return width

    def _is_short(self, job: Job) -> bool:
        """Whether its pool has less just now than it would be promised: until it has as much again, nothing
        can be said of the job."""
        return self._width(job) > job.pool.total

    def _kept(self, job: Job, promise: _Promise) -> Need | None:
        """What a job was promised before a restart: those options and no others."""
        need = self._need_of(job)
        found = []
        for service, ladder in zip(SERVICES, self._profile.ladders, strict=True):
            named = tuple(option for option in ladder if option.name == promise.options.get(service))
            if not named:
                return NOTHING if not promise.options else None
            found.append(named)
        one, two, three = found
        return Need(need.volume, (one, two, three), need.weights, need.speed)

    def _occupied(self, job: Job, now: float) -> None:
        """Somebody else started it, or it ran before."""
        self._promised += 1
        end = max(now, (job.start_time if job.start_time is not None else now) + job.estimate)
        self._needs[job.id] = NOTHING
        promise = _Promise(
            job.pool.name, job.processors, now, end, NOTHING.lowest, end - now, end - now, _INF,
            running=True, stranger=True,
        )  # fmt: skip
        if self._state is not None:
            promise.held = _held_of(job, self._state)
        self._sites.reserve(promise)
        self._promises[job.id] = promise

    def _impossible(self, job: Job) -> str | None:
        """Why it can be promised nothing, at whatever time; None: it can."""
        need = self._needs[job.id]
        least, most = need.cost(need.lowest), self._most_protection(job)
        if least > most + ROUNDING:
            return (
                f"its protection would take {duration(least)} at the lowest security levels; expected at "
                f"most {duration(most)}, by `longest` of sareg and the limit of pool {job.pool.name!r}"
            )
        return None

    def _most_protection(self, job: Job) -> float:
        """Seconds that its protection may take: it lengthens the job's limit, beyond what its user may ask
        for."""
        limit = job.pool.description.max_walltime
        return min(self.options.longest, max(0.0, limit - job.estimate) if limit else _INF)

    def _promise(
        self, job: Job, state: State, deadline: float, after: float, late: bool = False
    ) -> str | None:
        """Promise it a time; or why not."""
        need, execution = self._needs[job.id], job.estimate
        site, most = self._sites.find(job.pool, self._width(job)), self._most_protection(job)
        found = site.find(
            need,
            lambda need, slack: self._raised(need, min(slack, most)),
            processors=self._width(job),
            length=execution + self.options.margin,
            deadline=_INF if late else deadline,
            after=after,
        )
        if isinstance(found, Shortfall):
            if found.seconds == _INF:
                return f"it asks for {self._width(job)} processors of {site.processors}"
            return _too_late(found.seconds, state.now, deadline)
        self._promised += 1
        promise = _Promise(
            job.pool.name,
            self._width(job),
            found.start,
            found.end,
            found.steps,
            execution,
            execution + need.cost(found.steps),
            deadline,
            late,
            options={} if need is NOTHING else {s: o.name for s, o in need.options(found.steps).items()},
            at_upper_ends=found.steps == need.highest,
            level=need.level(found.steps),
        )
        self._sites.reserve(promise)
        self._promises[job.id] = promise
        return None

    def _late(self, job: Job, state: State) -> None:
        """A job that can start and has no promise: it was held, or waited for another, or came back."""
        if job.id not in self._needs:
            self._needs[job.id] = self._need_of(job)
        if self._is_short(job):
            return
        deadline = _deadline(job)
        refused = self._promise(job, state, deadline, state.now)
        if refused is None or (self.options.best_effort and not self._fits(job, state.now)):
            return
        log.warning("a deadline is missed", job=job.id, why=refused)
        self._needs[job.id] = self._needs[job.id].only(self._needs[job.id].lowest)
        self._promise(job, state, deadline, state.now, late=True)

    def _fits(self, job: Job, now: float) -> bool:
        """Whether it could run now at the lowest levels beside all that was promised."""
        need, profile = self._needs[job.id], self._sites.find(job.pool, self._width(job)).profile
        length = job.estimate + self.options.margin + need.cost(need.lowest)
        return profile.earliest(self._width(job), length, now) <= now + ROUNDING

    def _give_back(self, promise: _Promise, now: float) -> None:
        if promise.end > now:
            self._sites.release(promise)
            self._dirty.add(promise.pool)

    def _earlier(self, jobs: Sequence[Job], now: float) -> None:
        """Move what is promised to earlier times, in order of the starts."""
        assert self._state is not None
        for job in jobs:
            promise = self._promises[job.id]
            length = promise.end - promise.start
            pool = self._state.pools[promise.pool]
            self._sites.find(pool, promise.processors)
            self._sites.release(promise)
            profile = self._sites.find(pool, promise.processors, promise).profile
            after = max(now, job.description.begin_time or now)
            start = min(profile.earliest(promise.processors, length, after), max(promise.start, now))
            self._promised += (promise.start, promise.end) != (start, start + length)
            promise.start, promise.end = start, start + length
            self._sites.reserve(promise)

    def _again(self, job: Job, now: float) -> None:
        """What was due could not start: somebody ran longer than was promised, or the pool has less than it
        had.
        """
        promise = self._promises[job.id]
        length = promise.end - promise.start
        self._sites.find(job.pool, promise.processors)
        self._sites.release(promise)
        if now > promise.start + 1.0:
            log.warning("a promise is not kept", job=job.id, late=now - promise.start)
        self._promised += 1
        promise.start, promise.end = now, now + length
        self._sites.reserve(promise)

    @hookimpl
    def explain(self, job: Job, question: str, view: View) -> str | None:
        """What a waiting job was promised."""
        if question != "waiting":
            return None
        promise = self._promises.get(job.id)
        if promise is None:
            return "nothing was promised to it, and it is in the way of others who were promised something"
        levels = f" with {label_text(promise.options).replace(',', ', ')}" if promise.options else ""
        missed = ", too late for its deadline" if promise.late else ""
        return f"it was promised a start in {duration(max(0.0, promise.start - view.now))}{levels}{missed}"

    def _said(self, job: Job) -> str:
        need, promise = self._needs[job.id], self._promises[job.id]
        if need is NOTHING:
            return "its time has come"
        chosen = ", ".join(
            f"{service} {option.name} ({option.level:g})"
            for service, option in need.options(promise.steps).items()
        )
        return f"its time has come; {chosen}"

    # ------------------------------------------------------------------ figures

    def _figures(self, job: Job) -> _Figures:
        self._accounts[job.id] = job.account
        return self._by_account.setdefault(job.account, _Figures())

    def _count(self, event: JobEnded, promise: _Promise) -> None:
        figures = self._by_account.setdefault(self._accounts.pop(event.job_id, ""), _Figures())
        # A program that fails by itself had all that was promised.
        if event.outcome not in ("completed", "failed") or event.time > promise.deadline + 1e-3:
            figures.missed += 1
            return
        figures.met += 1
        figures.levels += promise.level
        figures.value += promise.processors * promise.level
        figures.at_upper_ends += promise.at_upper_ends

    def _told(self, result: RunResult) -> dict[str, Any]:
        total = _Figures()
        for figures in self._by_account.values():
            for name in total.__struct_fields__:
                setattr(total, name, getattr(total, name) + getattr(figures, name))
        return {
            **total.told(),
            "refused": len(self._refused),
            "accounts": {name: figures.told() for name, figures in sorted(self._by_account.items())},
        }


class NsEdf(Sareg):
    """Accept jobs that meet their deadlines at security levels that are drawn once and never raised."""

    def _acceptable(self, job_id: str, need: Need) -> Need:
        return need.only(drawn_steps(need, self._seed, job_id))


def _too_late(seconds: float, now: float, deadline: float) -> str | None:
    """What is said of a job that would end so long after its deadline; None: it would not."""
    if seconds <= ROUNDING:
        return None
    if deadline < now:
        return f"its deadline cannot be met: it was {duration(now - deadline)} in the past already"
    after = duration(seconds)
    return f"its deadline cannot be met: at the lowest security levels it would end {after} after it"


def _held_of(job: Job, state: State) -> dict[str, int]:
    """Where pools share nodes, what a running job has of each pool."""
    pools = job.domain.pools
    return {pool.name: state.held_in(pool, job) for pool in pools} if len(pools) > 1 else {}


def _check_words(job: Job) -> None:
    """Raises :class:`UserError` for words in its comment that may have meant ours: it would not be
    protected."""
    for word in job.attribute(UNREAD, ()):
        raise UserError(
            f"job {job.id}: its comment: among the words for headway expected such as {DEADLINE}=, bytes=, "
            f"{'=, '.join(SERVICES)}=; found {word!r}"
        )


def _lies(request: Request) -> bool:
    """Whether it says more than how many processors it needs."""
    per_node = request.processors_per_node or request.memory_per_node or request.gres_per_node
    together = request.processors_per_chunk or request.memory_per_processor or request.exclusive
    per_chunk = request.memory_per_chunk or request.gres_per_chunk
    return bool(per_chunk or request.nodes or request.required_nodes or request.parts or per_node or together)


def drawn_steps(need: Need, seed: int, job_id: str) -> Steps:
    """Uniform over the options of each service; the same for the same seed and id."""
    source = random.Random(f"{seed}/{job_id}")
    one, two, three = (source.randrange(len(ladder)) for ladder in need.ladders)
    return one, two, three


def _deadline(job: Job) -> float:
    """Absolute seconds; infinite where the job has none."""
    given = job.attribute(DEADLINE)
    if given is None:
        return _INF
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
        raise UserError(f"job {job.id}: attribute {DEADLINE}: expected absolute seconds, found {given!r}")
    return float(given)
