"""Pools and nodes: what there is, what of it is usable, and what changes about that."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from headway import events as ev
from headway.errors import nearest
from headway.model import PoolDescription
from headway.state.choices import choose, may_run_in, pools_of
from headway.state.domains import regroup
from headway.state.facts import Facts
from headway.state.lending import lend
from headway.state.occupation import describe_under, described
from headway.state.queues import give_order, leave_queue
from headway.state.records import ON_NODES, PoolState, Status
from headway.state.reservations import keep_from
from headway.state.waiting import judge_again, judge_dependants, queue_or_wait

#: Jobs that one notice names.
_NAMED = 5

_WAITING = Status.WAITING
_WAITS = (Status.PENDING, Status.WAITING)


def tell_unknown_tiers(state: Facts) -> None:
    """Tell which tiers the configuration gives to pools that there are not."""
    for name in state.tiers:
        if name not in state.pools:
            hint = nearest(name, state.pools)
            state.notices.append(f"pools.{name}: no pool is called {name!r}; its tier does nothing.{hint}")


def pool_changed(state: Facts, event: ev.PoolChanged) -> None:
    """A pool appeared, changed its size, or was opened or closed."""
    description = event.pool
    pool = state.pools.get(description.name)
    if pool is None:
        pool = _new_pool(state, description)
    elif pool.flat is not description.flat:
        kind = "flat" if description.flat else "a pool of nodes"
        state.anomalies.append(f"pool {pool.name!r} cannot become {kind}; ignored")
        return
    else:
        _describe_pool(state, pool, description)
    recount(state, (pool.name,))
    pool.domain.touch()


def _new_pool(state: Facts, description: PoolDescription) -> PoolState:
    pool = state.pools[description.name] = PoolState(description, state.tiers.get(description.name))
    state.domains[pool.domain.name] = pool.domain
    if state.domains_made is not None:
        state.domains_made()
    for reservation in state.reservations.values():
        keep_from(state, pool.domain, reservation)
    state.regrouped = True
    _offer(state, pool)
    return pool


def _describe_pool(state: Facts, pool: PoolState, description: PoolDescription) -> None:
    """A pool that is known has another size or tier, or was opened or closed."""
    if pool.flat:
        more = description.processors - pool.description.processors
        pool.total += more
        pool.domain.total += more
        pool.domain.free += more
        described_anew(state, pool)
    tier = state.tiers.get(pool.name, description.priority_tier)
    ranked_otherwise = tier != pool.tier
    opened = pool.open is not description.open
    waiting = []
    if ranked_otherwise or opened:
        waiting = [job for job in state.jobs.values() if may_run_in(job, pool) and job.status in _WAITS]
    for job in waiting:
        leave_queue(state, job)
    pool.description, pool.bounds = description, description.bounds
    pool.open, pool.tier = description.open, tier
    if ranked_otherwise:
        for job in state.jobs.values():
            if job.choices and may_run_in(job, pool):
                choose(state, job)
    for job in waiting:
        if ranked_otherwise:
            give_order(state, job)
        job.status = _WAITING
        queue_or_wait(state, job)


def _offer(state: Facts, pool: PoolState) -> None:
    """A pool that appears is one more choice of the jobs that were sent to it and to other pools."""
    for job in state.jobs.values():
        if job.description.further_pools and pool.name in job.description.pools:
            waits = job.status not in ON_NODES
            if waits:
                leave_queue(state, job)
            choose(state, job)
            if waits:
                queue_or_wait(state, job)


def node_up(state: Facts, event: ev.NodeUp) -> None:
    """A node is usable, new, or described anew."""
    node, old = event.node, state.nodes.descriptions.get(event.node.name)
    if old is not None:
        # These the configuration said; a batch system that describes the node anew does not know them.
        kind, wake = node.node_class or old.node_class, node.wake_time or old.wake_time
        node = msgspec.structs.replace(node, node_class=kind, wake_time=wake)
    if state.energy is not None:
        node = state.energy.learned(node)
    if old is None and node.name in state.on_unknown:
        for job in described(state, node.name, lambda: state.nodes.put(node)):
            lend(state, job)
    elif old is not None and old.pools != node.pools:
        # A job on the node gives its processors back to the pools that the node is in from now on.
        for job in describe_under(state, node.name, list(state.jobs.values()), lambda: state.nodes.put(node)):
            lend(state, job)
    else:
        state.nodes.put(node)
    recount(state, (*node.pools, *(old.pools if old is not None else ())))
    if old is None or old.pools != node.pools:
        state.regrouped = True
    # The table may have grown, so no domain may keep arrays of the old size.
    for domain in state.domains.values():
        if not domain.flat:
            domain.touch()


def node_down(state: Facts, event: ev.NodeDown) -> None:
    """A node takes no new jobs."""
    description = state.nodes.descriptions.get(event.node)
    if description is None:
        state.anomalies.append(f"node {event.node} went down but is not known; ignored")
        return
    state.nodes.set_available(event.node, False)
    recount(state, description.pools)


def power_changed(state: Facts, event: ev.NodePowerChanged) -> None:
    """A node went to sleep, or wakes."""
    description = state.nodes.descriptions.get(event.node)
    if description is None:
        state.anomalies.append(f"node {event.node} is {event.power} but is not known; ignored")
        return
    state.nodes.set_power(event.node, event.power, event.time)
    for name in description.pools:
        if name in state.pools:
            state.pools[name].domain.touch()


def recount(state: Facts, pools: Iterable[str]) -> None:
    """Count the usable and the free processors of these pools of nodes anew."""
    for name in pools:
        pool = state.pools.get(name)
        if pool is not None and not pool.flat:
            pool.total, free = state.nodes.count(name)
            domain = pool.domain
            several = len(domain.pools) > 1
            domain.total, domain.free = (
                state.nodes.count(*domain.pool_names) if several else (pool.total, free)
            )
            domain.touch()
            described_anew(state, pool)


def described_anew(state: Facts, pool: PoolState) -> None:
    """A pool's capacity has changed: :func:`conclude` looks at its jobs again."""
    pool.obstacles.clear()
    state.described.add(pool.name)


def conclude(state: Facts) -> None:
    """All events of a step are in: look again at the jobs of pools that are described anew and at jobs that
    depend on other jobs, and tell which jobs cannot run. Costs nothing unless something of that happened."""
    if state.regrouped:
        regroup(state)
    if state.described:
        pools, state.described = state.described, set()
        for job in list(state.jobs.values()):
            if not pools.isdisjoint([pool.name for pool in pools_of(job)]):
                judge_again(state, job)
    if state.depending:
        judge_dependants(state)
    if state.new_obstacles:
        jobs, state.new_obstacles = state.new_obstacles, []
        told_now: dict[str, list[str]] = {}
        for job in jobs:
            obstacle = job.obstacle
            told = job.told
            # Once, not each time that a node goes down or comes back.
            if obstacle is None or told == obstacle or job.status is not _WAITING:
                continue
            if told is not None and told.passing == obstacle.passing and job.told_of == job.request:
                continue
            job.told, job.told_of = obstacle, job.request
            told_now.setdefault(str(obstacle), []).append(job.id)
        for why, names in told_now.items():
            state.notices.append(f"{_named(names)} left out of the queue: {why}")


def _named(names: list[str]) -> str:
    """``job 7 is``, or ``312 jobs (7, 8, ...) are``: after an outage all nodes may be down for a moment."""
    if len(names) == 1:
        return f"job {names[0]} is"
    return f"{len(names)} jobs ({', '.join(names[:_NAMED])}{', ...' if len(names) > _NAMED else ''}) are"
