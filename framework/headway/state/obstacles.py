"""Jobs that could not run on what their pool has even if nothing else ran there.

Such a job is in no queue: it holds up no job, and nothing is booked for it. It is looked at when it
arrives or changes, and when pools, nodes or its reservation are described anew (:mod:`.capacity`);
a cycle has nothing to do with it.

Capacity is what the nodes have when they are idle. What runs on them does not count, nor their
sleep, nor other reservations, because all that ends. The request decides, not where a
placement plugin would put the job. Nodes that are down may come back, so a job that fits only with
them is told apart; :attr:`Facts.wait_for_down_nodes` says whether it keeps its place in the queue.
"""

from __future__ import annotations

import msgspec

from headway.model import Request, Reservation
from headway.resources.placing_parts import can_host
from headway.state.belonging import confining
from headway.state.bounds import beyond_bounds
from headway.state.facts import Facts
from headway.state.records import Job, Obstacle, PoolState

#: Shapes of requests whose answer a pool remembers.
REMEMBERED = 10_000
#: Nodes that an obstacle names.
_NAMED = 8


def find_obstacle(state: Facts, job: Job) -> Obstacle | None:
    """Why the job cannot run on what its pool has, or the reservation that it names; None if it can."""
    if job.request.licences and (missing := _too_few_licences(state, job.request)) is not None:
        return missing
    pool = job.pool
    inside = confining(state, job) if job.description.reservation else None
    if pool.bounds is not None and (beyond := beyond_bounds(state, pool, job.description)):
        return Obstacle(beyond)
    if pool.flat:
        return _too_large(job.processors, pool, inside)
    if inside is not None:
        return _judge(state, pool, job.request, inside)
    request = msgspec.structs.replace(job.request, walltime=0.0)
    if request not in pool.obstacles:
        if len(pool.obstacles) == REMEMBERED:
            pool.obstacles.clear()
        pool.obstacles[request] = _judge(state, pool, request, None)
    return pool.obstacles[request]


def _too_few_licences(state: Facts, request: Request) -> Obstacle | None:
    total = state.licences.total if state.licences is not None else {}
    for name, amount in request.licences:
        if amount > total.get(name, 0):
            there = f"there are {total[name]}" if name in total else "the cluster does not have it"
            return Obstacle(f"it needs {amount} of licence {name!r}, and {there}", passing=True)
    return None


def _too_large(processors: int, pool: PoolState, inside: Reservation | None) -> Obstacle | None:
    if processors > pool.total:
        return Obstacle(f"it needs {processors} processors, and pool {pool.name!r} has {pool.total}")
    if inside is not None and inside in pool.domain.reservations and processors > inside.processors:
        return Obstacle(
            f"it needs {processors} processors, and reservation {inside.id!r} has {inside.processors}"
        )
    return None


def _judge(state: Facts, pool: PoolState, request: Request, inside: Reservation | None) -> Obstacle | None:
    nodes = state.nodes
    confined = inside.nodes if inside is not None else None
    if can_host(nodes, request, pool.name, confined=confined):
        return None
    there = nodes.pool_mask(pool.name)
    if not there.any():
        why, passing = f"pool {pool.name!r} has no nodes", True
    elif can_host(nodes, request, pool.name, confined=confined, available_only=False):
        down = int((there & ~nodes.available).sum())
        why, passing = f"{down} of the {int(there.sum())} nodes of pool {pool.name!r} are down", True
    else:
        why, passing = _what_is_missing(state, pool, request, inside), False
    return None if passing and state.wait_for_down_nodes else Obstacle(why, passing)


def _what_is_missing(state: Facts, pool: PoolState, request: Request, inside: Reservation | None) -> str:
    """What the nodes, none of them down, have not got."""
    nodes = state.nodes
    where = f"pool {pool.name!r}" if inside is None else f"reservation {inside.id!r}"
    mask = nodes.eligible(Request(0, 0.0), pool.name, available_only=False)
    if inside is not None:
        mask = mask & nodes.mask_of(inside.nodes)
    total = int(nodes.total[mask].sum())
    if request.processors > total:
        return f"it needs {request.processors} processors, and {where} has {total}"
    count = int(mask.sum())
    if request.nodes > count:
        return f"it needs {request.nodes} nodes, and {where} has {count}"
    confined = inside.nodes if inside is not None else None
    for number, part in enumerate(request.parts):
        alone = msgspec.structs.replace(request, parts=(part,), processors=part.processors)
        if not can_host(nodes, alone, pool.name, confined=confined, available_only=False):
            return f"of its part {number}: {_what_is_missing(state, pool, part, inside)}"
    if request.parts:
        beside = "beside each other" if request.parts_apart else "together"
        return f"{where} has no nodes for all of its {len(request.parts)} parts {beside}"
    if missing := [name for name in request.required_nodes if not mask[nodes.mask_of((name,))].any()]:
        return f"it names {', '.join(missing)}, which {where} does not have"
    features = Request(0, 0.0, features=request.features)
    able = int((mask & nodes.eligible(features, pool.name, available_only=False)).sum())
    if request.features and not able:
        return f"no node of {where} has {' and '.join(request.features)}"
    for size in request.least_sizes:
        if not (mask & nodes.eligible(Request(0, 0.0, least_sizes=(size,)), pool.name, False)).any():
            return f"no node of {where} has {_size(*size)}"
    return f"the nodes of {where} do not have what it asks for: {_asked(request)}"


def _size(name: str, amount: int) -> str:
    """An amount of what a node has, for a person; what is large is bytes."""
    return f"{amount / 2**20:g} MiB of {name}" if amount >= 2**20 else f"{amount} {name}"


def _asked(request: Request) -> str:
    """A request's shape for a person."""
    parts = [f"{request.processors} processors"]
    if request.nodes:
        parts.append(f"{request.nodes} nodes")
    if request.processors_per_node:
        parts.append(f"{request.processors_per_node} processors a node")
    if request.processors_per_chunk:
        parts.append(f"{request.processors_per_chunk} processors together on a node")
    if request.memory_per_node:
        parts.append(f"{request.memory_per_node / 2**20:g} MiB a node")
    if request.memory_per_processor:
        parts.append(f"{request.memory_per_processor / 2**20:g} MiB a processor")
    if request.memory_per_chunk:
        parts.append(f"{request.memory_per_chunk / 2**20:g} MiB with them")
    parts.extend(f"{amount} {name} a node" for name, amount in request.gres_per_node)
    each = "with them" if request.processors_per_chunk else "a processor"
    parts.extend(f"{amount} {name} {each}" for name, amount in request.gres_per_chunk)
    if request.one_host:
        parts.append("all on one host")
    parts.extend(f"feature {name}" for name in request.features)
    if request.required_nodes:
        parts.append(f"on {_some(request.required_nodes)}")
    parts.extend(_size(*size) for size in request.least_sizes)
    if request.excluded_nodes:
        parts.append(f"not on {_some(request.excluded_nodes)}")
    if request.exclusive:
        parts.append("whole nodes")
    return ", ".join(parts)


def _some(names: tuple[str, ...]) -> str:
    """Names, of very many only the first."""
    shown = ", ".join(names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"
