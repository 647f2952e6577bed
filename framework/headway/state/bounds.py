"""What a pool starts nothing beyond, although its nodes could run it (:class:`headway.model.PoolBounds`)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headway.model import JobDescription, PoolBounds, Request
from headway.state.facts import Facts
from headway.state.records import PoolState

_MIB = 2**20


def beyond_bounds(state: Facts, pool: PoolState, job: JobDescription) -> str:
    """Which of the pool's bounds the job exceeds, what it asks for and what is allowed; "" if none."""
    if pool.bounds is None:
        return ""
    bounds, request = pool.bounds.of(job.qos), job.request
    if 0 < bounds.max_walltime < request.walltime:
        return (
            f"it asks for {request.walltime:.0f} s, and pool {pool.name!r} runs jobs of at most "
            f"{bounds.max_walltime:.0f} s"
        )
    if pool.flat:
        return ""
    nodes = _nodes_of(request)
    if 0 < nodes < bounds.min_nodes:
        return f"it asks for {nodes} nodes, and pool {pool.name!r} runs jobs of at least {bounds.min_nodes}"
    least = max(nodes, _fewest(state, pool, bounds, request))
    if 0 < bounds.max_nodes < least:
        return f"it needs {least} nodes, and pool {pool.name!r} runs jobs of at most {bounds.max_nodes}"
    for part in request.parts or (request,):
        for asked, most, what in _per_node(part, bounds):
            if 0 < most < asked:
                allowed = f"pool {pool.name!r} gives at most {_amount(most, what)}"
                return f"it asks for {_amount(asked, what)}, and {allowed}"
    return ""


def _nodes_of(request: Request) -> int:
    """How many nodes it names; with several parts, the sum over the parts, each part at least one."""
    if request.parts:
        return sum(max(part.nodes, 1) for part in request.parts)
    return request.nodes


def _fewest(state: Facts, pool: PoolState, bounds: PoolBounds, request: Request) -> int:
    """The fewest nodes of the pool that have the processors of a request that names no number of nodes."""
    if request.parts or not (bounds.max_nodes or bounds.max_processors_per_node):
        return 0
    sizes = np.sort(state.nodes.total[state.nodes.pool_mask(pool.name)])[::-1]
    if bounds.max_processors_per_node:
        sizes = np.minimum(sizes, bounds.max_processors_per_node)
    fewest = int(np.searchsorted(np.cumsum(sizes), request.processors)) + 1
    return fewest if fewest <= len(sizes) else 0


def _per_node(request: Request, bounds: PoolBounds) -> Iterator[tuple[int, int, str]]:
    """``(asked, most, what)`` of what is bounded on each node."""
    a_node = request.processors_per_node or request.processors_per_chunk
    yield a_node, bounds.max_processors_per_node, "processors a node"
    yield request.memory_per_node, bounds.max_memory_per_node, "MiB a node"
    yield request.memory_per_processor, bounds.max_memory_per_processor, "MiB a processor"
    if request.memory_per_processor and a_node:
        yield request.memory_per_processor * a_node, bounds.max_memory_per_node, "MiB a node"


def _amount(amount: int, what: str) -> str:
    return f"{amount / _MIB:g} {what}" if what.startswith("MiB") else f"{amount} {what}"
