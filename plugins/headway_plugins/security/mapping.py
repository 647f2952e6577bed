"""Min-Min and Sufferage: jobs go where they end first, on a cluster whose nodes differ in speed.

M. Maheswaran and others: Dynamic Matching and Scheduling of a Class of Independent Tasks onto Heterogeneous
Computing Systems. HCW 1999; as compared with SAREG by T. Xie, X. Qin and A. Sung, JSSPP 2005.

At a mapping event each waiting job's completion time is computed on each kind of nodes. Min-Min assigns the
job that ends first, Sufferage the job that would lose most if it had to take its second choice. Then the
times of that kind are computed again, until no processor is free (``mapping`` of ``grid.py``). Jobs whose
start is now begin, other jobs wait for the next event. Decisions:

- What the paper calls a site is a kind of nodes of a pool: the nodes that an entry of ``speeds`` names, by
  their class or by a pattern of their names; all other nodes are of speed 1. A job runs on a single kind.
- Where pools share nodes, the nodes of a kind of each pool are a site. Pools that have the same nodes of the
  kind share a site. What two sites have in common is taken to go first when jobs are mapped; after the jobs
  that could start have started, the other jobs are mapped anew.
- A job takes its estimate divided by the speed of its nodes, or what its attribute ``seconds_on`` (kind ->
  seconds) says. Limits stay, so no speed is below 1. In emulation jobs run that much faster.
- Completion times count processors, and holes are not filled. A job that finds no place by its shape (nodes,
  memory), or by a reservation, waits for the next event.
- Mapping events are at each event of the cluster, or at multiples of ``interval``. Ties: in queue order.
- A job wider than each kind is refused. Wide jobs may wait for ever behind narrow ones: the papers' batch
  schedulers promise nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any, ClassVar

import numpy as np
import pydantic

from headway.decisions import Decision
from headway.errors import UserError
from headway.hookspecs import Plugin, hookimpl
from headway.model import NodeDescription, Placement
from headway.plugins import Traits
from headway.resources import Offer
from headway.state import Job, State, Status
from headway.state.choices import ways
from headway.view import View
from headway_plugins.security.grid import Rule, mapping

#: Of a job: kind of nodes -> seconds that it takes there.
SECONDS_ON = "seconds_on"
_INF = float("inf")
#: A kind of nodes, and the pools that have the same nodes of it.
_Site = tuple[str, tuple[str, ...]]


class MappingOptions(pydantic.BaseModel):
    """How fast which nodes are, and when jobs are mapped."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    speeds: dict[
        Annotated[str, pydantic.Field(min_length=1)],
        Annotated[float, pydantic.Field(ge=1, le=1e6, allow_inf_nan=False)],
    ] = pydantic.Field(
        default_factory=dict,
        description="class of nodes, or pattern of node names -> speed relative to users' estimates; the "
        "first pattern that fits counts; other nodes: 1",
    )
    interval: float = pydantic.Field(
        default=0.0, ge=0, le=86400,
        description="seconds between mapping events; 0: at every event",
    )  # fmt: skip


class MinMin(Plugin):
    """At each mapping event, start the job that would end first, where it ends first; and so on."""

    Options = MappingOptions
    traits = Traits(
        paper=(
            "M. Maheswaran and others: Dynamic Matching and Scheduling of a Class of Independent "
            "Tasks onto Heterogeneous Computing Systems, HCW 1999"
        ),
    )
    rule: ClassVar[Rule] = "minmin"

    def __init__(self, options: MappingOptions | None = None) -> None:
        self.options: MappingOptions = options or MappingOptions()
        self._state: State | None = None
        #: Where the job that is being started goes.
        self._to: str | None = None
        #: Pool -> its next mapping event.
        self._next: dict[str, float] = {}
        self._kinds: tuple[int, list[str]] = (-1, [])

    # ------------------------------------------------------------------ hooks

    @hookimpl
    def startup(self, state: State) -> None:
        self._state = state
        if self.options.speeds and state.energy is not None:
            uneven = any(kind.speed != 1 for kind in state.energy.profile.classes)
            if uneven:
                raise UserError(
                    f"plugin {self.rule!r}: speeds: expected none beside an energy profile whose classes "
                    f"have speeds of their own, found {self.options.speeds}"
                )

    @hookimpl
    def admit_job(self, job: Job, state: State) -> str | None:
        if job.pool.flat:
            return None
        room: dict[str, int] = {}
        for name, kind in zip(state.nodes.names, self._kind_of_each(state), strict=True):
            node = state.nodes.descriptions[name]
            if job.pool.name in node.pools:
                room[kind] = room.get(kind, 0) + node.processors
        most = max(room.values(), default=0)
        if not room or job.processors <= most:
            return None
        return f"it asks for {job.processors} processors; no kind of nodes has more than {most}"

    @hookimpl
    def schedule(self, view: View) -> Sequence[Decision]:
        waiting = list(view.queue)
        if not waiting or not self._is_time(view):
            return view.made
        started = self._map(view, waiting)
        while started and len(view.domain.pools) > 1:
            waiting = [job for job in waiting if job.status is Status.PENDING]
            started = bool(waiting) and self._map(view, waiting)
        return view.made

    def _map(self, view: View, waiting: Sequence[Job]) -> bool:
        """A mapping event: whether a job was started."""
        sites, free = self._free(view)
        seconds = [[self._seconds_at(job, site, view) for site in sites] for job in waiting]
        widths = np.array([job.processors for job in waiting], np.int64)
        durations = np.array(seconds, np.float64).reshape(len(waiting), len(sites))
        durations[widths[:, None] > np.array([len(times) for times in free])[None, :]] = _INF
        common = self._common(sites) if len(view.domain.pools) > 1 else None
        before = len(view.started)
        for index, site, start in mapping(view.now, free, widths, durations, self.rule, common=common):
            if start <= view.now:
                self._to, _ = sites[site]
                view.start(waiting[index], f"the job ends first {_where(self._to)}")
                self._to = None
        return len(view.started) > before

    @hookimpl
    def control(self, state: State) -> None:
        # No policy is asked where no job waits: the job that comes next waits for a mapping event of its own.
        queued = {name for name, domain in state.domains.items() if domain.queue}
        self._next = {name: due for name, due in self._next.items() if name in queued}

    @hookimpl
    def place(self, offer: Offer) -> Placement | None:
        if self._to is None or self._state is None:
            return None
        kinds = self._kind_of_each(self._state)
        return offer.take([int(i) for i in offer.feasible if kinds[i] == self._to]) or ()

    @hookimpl
    def register_physics(self) -> MinMin:
        return self

    def rate(self, execution: Any, now: float) -> float:
        """Physics of the emulated cluster."""
        described, state = execution.job, self._state
        if state is None or not execution.placement:
            return 1.0
        kinds = {self._kind_named(state, name) for name, _ in execution.placement}
        estimate = described.request.walltime
        if estimate <= 0.0:
            # Nothing says how long the job takes, so nothing says that it takes longer anywhere.
            return min(self._speed(kind) for kind in kinds)
        slowest = max(_seconds_on(described.attributes, estimate, kind, self._speed(kind)) for kind in kinds)
        return float(estimate / slowest)

    # ------------------------------------------------------------------ kinds of nodes

    def _kind(self, node: NodeDescription) -> str:
        return next(
            (key for key in self.options.speeds if key == node.node_class or fnmatchcase(node.name, key)), ""
        )

    def _kind_of_each(self, state: State) -> list[str]:
        """By the nodes' indices."""
        table = state.nodes
        if self._kinds[0] != table.told:
            self._kinds = table.told, [self._kind(table.descriptions[name]) for name in table.names]
        return self._kinds[1]

    def _kind_named(self, state: State, name: str) -> str:
        index = state.nodes.index.get(name)
        return "" if index is None else self._kind_of_each(state)[index]

    def _speed(self, kind: str) -> float:
        return self.options.speeds.get(kind, 1.0)

    def _seconds_at(self, job: Job, site: _Site, view: View) -> float:
        """How long the job takes there; infinity if that is no pool of its own."""
        kind, pools = site
        if len(view.domain.pools) > 1 and all(one.name not in pools for one in ways(job, view.domain)):
            return _INF
        return self._seconds(job, kind)

    def _common(self, sites: Sequence[_Site]) -> np.ndarray[Any, Any]:
        """How many processors two sites have in common."""
        assert self._state is not None
        table = self._state.nodes
        kinds = np.array(self._kind_of_each(self._state), object)
        size = len(kinds)
        masks = np.array(
            [table.pool_mask(pools[0])[:size] & (kinds == kind) for kind, pools in sites], np.int64
        )
        found: np.ndarray[Any, Any] = (masks * table.total[:size]) @ masks.T
        return found

    def _seconds(self, job: Job, kind: str) -> float:
        return _seconds_on(job.description.attributes, job.estimate, kind, self._speed(kind))

    # ------------------------------------------------------------------ time

    def _is_time(self, view: View) -> bool:
        """Whether a mapping event is due; if not, the domain is woken at the next."""
        interval, domain = self.options.interval, view.domain.name
        if not interval:
            return True
        assert self._state is not None
        due = self._next.get(domain, math.ceil(view.now / interval - 1e-9) * interval)
        now = due <= view.now
        if now:
            # A job that waits longer than this event is woken for the next; it is not known beforehand.
            due = (math.floor(view.now / interval + 1e-9) + 1) * interval
        self._next[domain] = due
        self._state.wake_at(due, view.domain)
        return now

    def _free(self, view: View) -> tuple[list[_Site], list[np.ndarray[Any, Any]]]:
        """The domain's sites, and of each when its processors are free, rising."""
        state, now = self._state, view.now
        assert state is not None
        times: dict[_Site, list[float]] = {}
        used: dict[str, int] = {}
        ours = view.domain.pool_names
        sites_at = self._sites_at(ours)
        for expected, _, processors, job in view.running:
            placement = job.placement or (("", processors),)
            for name, count in placement:
                kind = self._kind_named(state, name)
                begun = (job.start_time if job.start_time is not None else now) + job.paused
                end = begun + self._seconds(job, kind)
                for site in sites_at.get(name, [(kind, ours)]):
                    ends = times.setdefault(site, [])
                    ends.extend([end if end > now else max(expected, now)] * count)
                used[name] = used.get(name, 0) + count
        if view.domain.flat:
            times.setdefault(("", ours), []).extend([now] * view.free)
        else:
            table, names = state.nodes, set(ours)
            for name, kind in zip(table.names, self._kind_of_each(state), strict=True):
                node = table.descriptions[name]
                if not names.isdisjoint(node.pools) and node.available and name not in table.power:
                    idle = max(node.processors - used.get(name, 0), 0)
                    for site in sites_at.get(name, [(kind, ours)]):
                        times.setdefault(site, []).extend([now] * idle)
        # In the order of the options: of two that are as good the first counts.
        order = {key: number for number, key in enumerate(self.options.speeds)}
        sites = sorted(times, key=lambda site: (order.get(site[0], len(order)), ours.index(site[1][0])))
        return sites, [np.sort(np.array(times[site], np.float64)) for site in sites]

    def _sites_at(self, pools: Sequence[str]) -> dict[str, list[_Site]]:
        """Where there are several pools: of each node the sites that it is part of."""
        if len(pools) == 1:
            return {}
        assert self._state is not None
        descriptions = self._state.nodes.descriptions
        members: dict[tuple[str, str], list[str]] = {}
        for name, kind in zip(self._state.nodes.names, self._kind_of_each(self._state), strict=True):
            for pool in descriptions[name].pools:
                if pool in pools:
                    members.setdefault((kind, pool), []).append(name)
        alike: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for (kind, pool), names in members.items():
            alike.setdefault((kind, tuple(names)), []).append(pool)
        found: dict[str, list[_Site]] = {}
        for (kind, together), same in alike.items():
            site = kind, tuple(sorted(same, key=pools.index))
            for name in together:
                found.setdefault(name, []).append(site)
        return found


class Sufferage(MinMin):
    """At each mapping event, start the job that would lose most elsewhere, where it ends first; and so on."""

    rule: ClassVar[Rule] = "sufferage"


def _seconds_on(attributes: Mapping[str, Any] | None, estimate: float, kind: str, speed: float) -> float:
    stated = (attributes or {}).get(SECONDS_ON)
    seconds = stated.get(kind) if isinstance(stated, Mapping) else None
    if isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 < seconds < _INF:
        return float(seconds)
    return estimate / speed


def _where(kind: str) -> str:
    return f"on nodes {kind!r}" if kind else "there"
