"""A machine of a metajob: the pool of a cluster that it stands for, and its place in the plan of that pool.

K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with User-Settable Reservations. Job Scheduling Strategies
for Parallel Processing, 2005, section 3: "User-settable reservations are made only after all currently queued
jobs are scheduled". The plan is :func:`.queue_plan.plan` over the live state.

Ours:

- On a pool of nodes a job takes whole nodes, as many as it asks for or as hold its processors. On a flat pool
  processors are the nodes.
- Jobs that are planned are the jobs in the queue, in its order. A job that names a reservation is planned in
  the reservation. A job that a limit, a hold or a dependency keeps out of the queue is not planned.
- Running jobs stay until their limits, and a job that is past its limit goes in a minute.
- A machine with ``nodes_with`` has what neither its nodes' jobs and reservations nor the queue's plan take.
- A plan stands until something happens that is not a metajob's own reservation, for a minute at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf

import numpy as np
import pydantic

from headway.decisions import Decision
from headway.resources.node_sets import Bools
from headway.resources.profile import Profile
from headway.state import Job, PoolState, State
from headway_plugins.coscheduling.queue_plan import Busy, Queued, free_throughout, on_grain, place, plan

#: Seconds that a plan stands, and that a job past its limit is thought to stay.
_STANDS = 60.0


class MachineOptions(pydantic.BaseModel):
    """What a name in users' metajobs stands for."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    pool: str = pydantic.Field(min_length=1, description="the pool, in a federation as `cluster:pool`")
    nodes_with: tuple[str, ...] = pydantic.Field(
        default=(), description="features that its nodes have; default: all nodes of the pool"
    )
    grain: int = pydantic.Field(
        default=60,
        ge=1,
        le=86400,
        description="reservations start and end at multiples of so many seconds: 60 on Slurm, 600 on LSF",
    )
    slack: float = pydantic.Field(
        default=60.0,
        ge=0,
        le=3600,
        description="seconds that a reservation lasts longer than was asked for: a job starts a moment late, "
        "and Slurm starts none that may run beyond the end",
    )
    min_duration: float = pydantic.Field(
        default=60.0, ge=0, description="shortest reservation, in seconds: 60 on Slurm, 600 on LSF"
    )


class _Plan:
    """What a pool has left beside its queue."""

    def __init__(self, time: float, edition: int, profile: Profile) -> None:
        self.time, self.edition, self.profile = time, edition, profile


class Plans:
    """The plans of all pools."""

    def __init__(self) -> None:
        #: Counts what makes a plan outdated.
        self.edition = 0
        self._plans: dict[tuple[str, tuple[str, ...]], _Plan] = {}
        #: How many plans were made.
        self.made = 0

    def earliest(
        self,
        state: State,
        machine: MachineOptions,
        nodes: int,
        duration: float,
        window: tuple[float, float],
        grain: int,
    ) -> float | None:
        """The first start in the window that is a multiple of ``grain``; None: there is none."""
        profile = self._of(state, machine)
        start = window[0]
        while start + duration <= window[1]:
            found = place(profile, nodes, duration, on_grain(start, grain), window[1], machine.grain)
            if found is None or found == on_grain(found, grain):
                return found
            start = on_grain(found, grain)
        return None

    def throughout(self, state: State, machine: MachineOptions, start: float, duration: float) -> int:
        """The nodes that are free all the time."""
        return free_throughout(self._of(state, machine), start, duration, machine.grain)

    def change(self, machine: MachineOptions, start: float, end: float, nodes: int) -> None:
        """A metajob took nodes of what was left, or (negative) gave them back: no queued job moves."""
        for (pool, _), known in self._plans.items():
            if pool == machine.pool and known.edition == self.edition:
                known.profile.reserve(start, on_grain(end, machine.grain), nodes)

    def _of(self, state: State, machine: MachineOptions) -> Profile:
        key = (machine.pool, machine.nodes_with)
        known = self._plans.get(key)
        if known is None or known.edition != self.edition or not 0 <= state.now - known.time <= _STANDS:
            pool = state.pools[machine.pool]
            profile = _flat(state, pool) if pool.flat else _nodes(state, pool, machine)
            known = self._plans[key] = _Plan(state.now, self.edition, profile)
            self.made += 1
        return known.profile


def cannot(state: State, machine: MachineOptions, kind: type[Decision]) -> bool:
    """Whether it is known that the machine's cluster cannot carry out such a decision."""
    pool = state.pools.get(machine.pool)
    return pool is not None and kind.__name__ in pool.description.lacks


def size(state: State, machine: MachineOptions) -> int:
    """All nodes of the machine that can be used."""
    pool = state.pools[machine.pool]
    return pool.total if pool.flat else len(_usable(state, machine))


def most(state: State, machine: MachineOptions) -> int | None:
    """All nodes of the machine, those that are down included; None: its pool is not known yet."""
    pool = state.pools.get(machine.pool)
    if pool is None:
        return None
    return pool.total if pool.flat else len(_with_features(state, machine, state.nodes.pool_mask(pool.name)))


def free_nodes(
    state: State, machine: MachineOptions, start: float, end: float, nodes: int
) -> tuple[str, ...] | None:
    """So many nodes that no job and no reservation has in [start, end); None: there are too few."""
    busy = _busy(state)
    found = []
    for name in _usable(state, machine):
        if all(end <= begin or over <= start for begin, over in busy.get(name, ())):
            found.append(name)
            if len(found) == nodes:
                return tuple(found)
    return None


# ---------------------------------------------------------------------- plans


def _until(state: State, job: Job) -> float:
    """When a running job is over at the latest."""
    begun = job.start_time if job.start_time is not None else state.now
    limit = begun + job.paused + job.estimate
    return limit if limit > state.now else state.now + _STANDS


def _flat(state: State, pool: PoolState) -> Profile:
    now = state.now
    kept = {one.id: one for one in pool.domain.reservations if one.end > now}
    busy = [Busy(max(one.start, now), one.end, one.processors) for one in kept.values()]
    for _, _, processors, job in pool.domain.running:
        until = _until(state, job)
        busy.append(Busy(now, until, processors))
        own = kept.get(job.description.reservation)
        if own is not None and own.start < until:
            # It runs on what is reserved.
            busy.append(Busy(max(own.start, now), min(until, own.end), -processors))
    return plan(pool.total, now, busy, _queue(state, pool, 1))[0]


def _nodes(state: State, pool: PoolState, machine: MachineOptions) -> Profile:
    """The least of what the queue of the domain leaves and of what the machine's nodes have."""
    table, busy = state.nodes, _busy(state)
    mask = np.logical_or.reduce([table.pool_mask(one.name) for one in pool.domain.pools]) & table.available
    names = [table.names[at] for at in np.flatnonzero(mask)]
    largest = max((table.descriptions[name].processors for name in names), default=1)
    left, _ = plan(len(names), state.now, _spans(busy, names, state.now), _queue(state, pool, largest))
    mine = _usable(state, machine)
    if len(mine) == len(names):
        return left
    own = Profile(state.now, len(mine))
    own.reserve_all((one.start, one.end, one.nodes) for one in _spans(busy, mine, state.now))
    return _least(left, own)


def _queue(state: State, pool: PoolState, largest: int) -> list[Queued]:
    """The jobs of the queue in its order, each with its nodes; ``largest``: processors of a node."""
    reserved = state.reservations
    found = []
    for job in pool.domain.queue:
        if job.description.reservation in reserved or state.kept_for(job) is not None:
            continue
        nodes = job.processors if pool.flat else job.request.nodes or -(-job.processors // largest)
        found.append(Queued(job.id, nodes, job.estimate, job.submit_time))
    return found


def _usable(state: State, machine: MachineOptions) -> list[str]:
    table = state.nodes
    return _with_features(state, machine, table.pool_mask(machine.pool) & table.available)


def _with_features(state: State, machine: MachineOptions, mask: Bools) -> list[str]:
    """The nodes of a mask that have what the machine's nodes have."""
    table, wanted = state.nodes, set(machine.nodes_with)
    names = [table.names[at] for at in np.flatnonzero(mask)]
    if not wanted:
        return names
    return [name for name in names if wanted <= set(table.descriptions[name].features)]


def _busy(state: State) -> dict[str, list[tuple[float, float]]]:
    """When each node is taken, by a job or a reservation."""
    found: dict[str, list[tuple[float, float]]] = {}
    for job in state.running_jobs():
        span = (state.now, _until(state, job))
        for name, _ in job.placement:
            found.setdefault(name, []).append(span)
    for one in state.reservations.values():
        if one.end > state.now:
            span = (max(one.start, state.now), one.end)
            for name in one.nodes:
                found.setdefault(name, []).append(span)
    return found


def _spans(busy: dict[str, list[tuple[float, float]]], names: Sequence[str], now: float) -> Iterable[Busy]:
    """The times at which the nodes are taken, without counting a node twice."""
    for name in names:
        begin, over = inf, -inf
        for start, end in sorted(busy.get(name, ())):
            if start > over:
                if over > now:
                    yield Busy(begin, over, 1)
                begin = start
            over = max(over, end)
        if over > now:
            yield Busy(begin, over, 1)


def _least(one: Profile, other: Profile) -> Profile:
    """What both have."""
    both = Profile(one.times[0], 0)
    both.times = sorted({*one.times, *other.times})
    both.free = [min(one.free_at(time), other.free_at(time)) for time in both.times]
    return both
