"""Which times and levels jobs are promised, and what becomes of promises (:mod:`.sareg`)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import msgspec

from headway.decisions import Start
from headway.errors import UserError
from headway.hookspecs import Plugin
from headway.inputs.log import logger
from headway.model import Request
from headway.report.quantities import duration
from headway.state import Job, PoolState, State
from headway.state.choices import facing_pool
from headway.view import View
from headway_plugins.security.account_figures import Figures
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
    raise_exactly,
    raise_in_turn,
)
from headway_plugins.security.pool_sites import PoolSites
from headway_plugins.security.sareg_options import SaregOptions

_INF = float("inf")
log = logger(__name__)
#: Attributes of a job: absolute seconds; what :func:`need_of` reads.
DEADLINE = "deadline"
SECURITY = "security"
#: Of a job that asks for none: a single option a service that does nothing.
_NONE = (Option(0.0, "none"),)
NOTHING = Need(0.0, (_NONE, _NONE, _NONE), (0.0, 0.0, 0.0))


class Promise(msgspec.Struct):
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


class Promising(Plugin):
    """Jobs that are promised a time of a pool and security levels."""

    options: SaregOptions

    def __init__(self, options: SaregOptions | None = None) -> None:
        super().__init__(options or SaregOptions())
        self._profile: Profile = self.options.read
        self._seed = 0
        self._state: State | None = None
        #: What was promised, by pool; there from the startup on.
        self._sites: PoolSites
        self._grouped: tuple[str, ...] = ()
        self._promises: dict[str, Promise] = {}
        #: How often something of the checkpoint has changed.
        self._promised = 0
        self._needs: dict[str, Need] = {}
        #: Pools in which something gave time back.
        self._dirty: set[str] = set()
        self._woken: dict[str, float] = {}
        self._by_account: dict[str, Figures] = {}
        self._accounts: dict[str, str] = {}
        self._refused: dict[str, str] = {}
        #: Of refused jobs that are still there: why, and what they had asked for; and the refused jobs of the
        #: run before, until they are told again.
        self._away: dict[str, list[Any]] = {}
        self._were_away: dict[str, list[Any]] = {}
        #: Processors of the largest node, the two largest, and so on, by pool.
        self._largest: dict[str, list[int]] = {}
        self._asked: dict[str, Any] = {}
        self._tells = False
        self._lengthens = True
        self._speeds = Speeds()

    def _acceptable(self, job_id: str, need: Need) -> Need:
        """What the job may be given."""
        return need

    def _raised(self, need: Need, slack: float) -> Steps | None:
        raising = raise_exactly if self.options.levels == "exact" else raise_in_turn
        return raising(need, slack)

    def _begun(self, view: View, job: Job) -> Start | None:
        said = self._said(job)
        return view.start_on(job, (), reason=said) if view.domain.flat else view.start(job, said)

    def _in_turn(self, jobs: Iterable[Job]) -> list[tuple[float, int, Job]]:
        """By promised start (which comes first in each entry), then as they came."""
        jobs = [job for job in jobs if job.id in self._promises]
        starts = ((self._promises[job.id].start, job.seq, job) for job in jobs)
        return sorted(starts, key=lambda entry: entry[:2])

    def _need_of(self, job: Job) -> Need:
        asked = job.attribute(SECURITY)
        if asked is None:
            return NOTHING
        where = f"job {job.id}: attribute {SECURITY}"
        if not isinstance(asked, Mapping):
            raise UserError(f"{where}: expected a mapping, found {asked!r}")
        return self._acceptable(job.id, need_of(asked, self._speeds.applied(self._profile), where))

    def _runs(self, promise: Promise, job: Job | None, state: State) -> None:
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
            # Nodes that are down, too: they come back.
            sizes = (n.processors for n in state.nodes.descriptions.values() if pool in n.pools)
            self._largest[pool] = list(accumulate(sorted(sizes, reverse=True))) or [1]
        together = self._largest[pool]
        nodes = request.nodes or -(-job.processors // (request.processors_per_node or together[0]))
        # As many as it can take at most, where nodes differ.
        width, total = max(job.processors, together[min(max(nodes, 1), len(together)) - 1]), job.pool.total
        if width > total >= job.processors:
            # A large node is down. Where enough other nodes are up it takes no more than all of these.
            up = int((state.nodes.pool_mask(pool) & state.nodes.available).sum())
            return total if nodes <= up else width
        return width

    def _is_short(self, job: Job) -> bool:
        """Whether its pool has less just now than it would be promised: until it has as much again, nothing
        can be said of the job."""
        return self._width(job) > job.pool.total

    def _kept(self, job: Job, promise: Promise) -> Need | None:
        """What a job was promised before a restart: these options and no other options."""
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
        """The job started without headway, or it ran before."""
        self._promised += 1
        end = max(now, (job.start_time if job.start_time is not None else now) + job.estimate)
        self._needs[job.id] = NOTHING
        promise = Promise(
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
            return too_late(found.seconds, state.now, deadline)
        self._promised += 1
        promise = Promise(
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
        deadline = deadline_of(job)
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

    def _give_back(self, promise: Promise, now: float) -> None:
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
        """What was due could not start: a job ran longer than promised, or the pool has less than it had."""
        promise = self._promises[job.id]
        length = promise.end - promise.start
        self._sites.find(job.pool, promise.processors)
        self._sites.release(promise)
        if now > promise.start + 1.0:
            log.warning("a promise is not kept", job=job.id, late=now - promise.start)
        self._promised += 1
        promise.start, promise.end = now, now + length
        self._sites.reserve(promise)

    def _said(self, job: Job) -> str:
        need, promise = self._needs[job.id], self._promises[job.id]
        if need is NOTHING:
            return "its time has come"
        chosen = ", ".join(
            f"{service} {option.name} ({option.level:g})"
            for service, option in need.options(promise.steps).items()
        )
        return f"its time has come; {chosen}"


def too_late(seconds: float, now: float, deadline: float) -> str | None:
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


def _lies(request: Request) -> bool:
    """Whether it says more than how many processors it needs."""
    per_node = request.processors_per_node or request.memory_per_node or request.gres_per_node
    together = request.processors_per_chunk or request.memory_per_processor or request.exclusive
    per_chunk = request.memory_per_chunk or request.gres_per_chunk
    return bool(per_chunk or request.nodes or request.required_nodes or request.parts or per_node or together)


def deadline_of(job: Job) -> float:
    """Absolute seconds; infinite where the job has none."""
    given = job.attribute(DEADLINE)
    if given is None:
        return _INF
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
        raise UserError(f"job {job.id}: attribute {DEADLINE}: expected absolute seconds, found {given!r}")
    return float(given)
