"""What one pool of a domain has: processors that are free, jobs that run, reservations.

In a domain of one pool that is what the domain has; in a domain of several pools it is what is on the pool's
nodes, whichever of the domain's pools a job is of.
"""

from __future__ import annotations

from headway.model import Placement
from headway.resources import Bools, NodeTable
from headway.state.facts import Facts
from headway.state.records import Job, PoolState, RunningEntry


def free_in(state: Facts, pool: PoolState) -> int:
    """The processors of a pool that are free, whichever pools it shares nodes with."""
    if len(pool.domain.pools) == 1:
        return pool.domain.free
    return state.nodes.count(pool.name)[1]


def entries_in(state: Facts, pool: PoolState) -> list[RunningEntry]:
    """The jobs that have processors of a pool, or are to have them, by expected end, each with as many as it
    has of the pool's."""
    entries = pool.domain.running
    if len(pool.domain.pools) == 1:
        return entries
    mask = state.nodes.pool_mask(pool.name)
    counted = [(entry, count_on(state.nodes, mask, entry[3].placement)) for entry in entries]
    return [(end, seq, held, job) for (end, seq, _, job), held in counted if held]


def running_in(state: Facts, pool: PoolState) -> list[Job]:
    """The jobs of :func:`entries_in`."""
    return [entry[3] for entry in entries_in(state, pool)]


def held_in(state: Facts, pool: PoolState, job: Job) -> int:
    """How many of the pool's processors a job has that runs in its domain."""
    if len(pool.domain.pools) == 1:
        return job.processors
    return count_on(state.nodes, state.nodes.pool_mask(pool.name), job.placement)


def most_in(state: Facts, pool: PoolState, job: Job) -> int:
    """How many of the pool's processors a job may come to have that runs nowhere yet, in the pool that it
    faces."""
    return most_of(state, pool, job.pool, job.processors)


def most_of(state: Facts, pool: PoolState, other: PoolState, processors: int) -> int:
    """How many of the pool's processors a job with so many processors of ``other`` may have at most. Nodes
    that are down count: what was taken is given back whatever has become of them."""
    if pool is other:
        return processors
    if pool.domain is not other.domain:
        return 0
    nodes = state.nodes
    common = nodes.pool_mask(pool.name) & nodes.pool_mask(other.name)
    return min(processors, int(nodes.total[common].sum()))


def count_on(table: NodeTable, mask: Bools, placement: Placement) -> int:
    """How many processors of a placement are on the nodes of a mask."""
    place = table.locate(placement, passing=True)
    if place.arrays is not None:
        nodes, counts = place.arrays
        return int(counts[mask[nodes]].sum())
    return sum(count for node, count in zip(place.nodes, place.counts, strict=True) if mask[node])
