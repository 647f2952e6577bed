"""Where the parts of a request find room that may have nodes, or hosts, in common with one another.

A part is what a batch system places as it is: chunks of one kind, or one chunk that may lie on several nodes
of one host. Each part takes what it gets before the next one looks, as batch systems with such requests do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations

import numpy as np

from headway.model import Placement, Request
from headway.resources.free import Free
from headway.resources.node_sets import Bools, Ints
from headway.resources.nodes import NodeTable
from headway.resources.offer import Offer

#: Up to so many parts, every order of them is tried.
_ALL_ORDERS = 4

#: Chooses a placement for one part.
Place = Callable[[Offer], Placement | None]


def place_shared(
    table: NodeTable, request: Request, pool: str, eligible: Bools, free: Free, place: Place, time: float
) -> list[Placement] | None:
    """A placement of each part, on nodes of ``eligible`` that have ``free`` left at ``time``; None if none of
    the orders that are tried leads to one."""
    masks: dict[int, Bools] = {}
    for part in request.parts:
        # Chunks of one kind are one and the same request.
        if id(part) not in masks:
            masks[id(part)] = eligible & table.eligible(part, pool, available_only=False)
    by_host = request.parts_apart == "hosts" or any(part.one_host for part in request.parts)
    hosts = _Hosts(table) if by_host else None
    for order in _orders(request.parts):
        found = _in_turn(table, request, order, masks, free.copy(), place, time, hosts)
        if found is not None:
            return found
    return None


def _orders(parts: tuple[Request, ...]) -> Iterator[tuple[int, ...]]:
    """As they were asked for, then the largest first, then all others of a few."""
    given = tuple(range(len(parts)))
    yield given
    chunk = [part.processors if part.one_host else part.processors_per_chunk or 1 for part in parts]
    largest = tuple(sorted(given, key=lambda at: (-chunk[at], -parts[at].processors, at)))
    if largest != given:
        yield largest
    if 1 < len(parts) <= _ALL_ORDERS:
        yield from (order for order in permutations(given) if order not in (given, largest))


def _in_turn(
    table: NodeTable,
    request: Request,
    order: tuple[int, ...],
    masks: dict[int, Bools],
    left: Free,
    place: Place,
    time: float,
    hosts: _Hosts | None,
) -> list[Placement] | None:
    """A placement of each part, one after the other; ``left``: what nodes have, which is used up."""
    found: dict[int, Placement] = {}
    barred = np.zeros(len(table.total), np.bool_)
    for at in order:
        part = request.parts[at]
        mask = masks[id(part)] & ~barred
        if not part.processors:
            placement = _without_processors(table, part, mask, left)
        else:
            slots = table.slots(part, mask, left)
            spans = hosts is not None and part.one_host
            placement = None
            for room in hosts.each(slots, part.processors) if hosts is not None and spans else [slots]:
                if int(room.sum()) >= part.processors:
                    placement = place(Offer(table, part, room, left, time))
                if placement:
                    break
        if not placement:
            return None
        found[at] = placement
        nodes = [table.index[name] for name, _ in placement]
        left.take(part, nodes, [count for _, count in placement])
        if request.parts_apart == "hosts" and hosts is not None:
            barred |= hosts.of(nodes)
        elif request.parts_apart:
            barred[nodes] = True
    return [found[at] for at in range(len(request.parts))]


def _without_processors(table: NodeTable, part: Request, mask: Bools, left: Free) -> Placement | None:
    """The first node that has what a part without processors takes."""
    for node in mask.nonzero()[0].tolist():
        if left.has(part, (node,), (0,)):
            return ((table.names[node], 0),)
    return None


class _Hosts:
    """Which nodes are parts of one machine."""

    def __init__(self, table: NodeTable) -> None:
        numbers: dict[str, int] = {}
        of = [
            numbers.setdefault(table.descriptions[name].host or f" {name}", len(numbers))
            for name in table.names
        ]
        #: The number of each node's host; what is no node has none.
        self._host: Ints = np.full(len(table.total), -1, np.int64)
        self._host[: len(of)] = of

    def each(self, slots: Ints, processors: int) -> Iterator[Ints]:
        """``slots`` of the nodes of one host alone, for each host that has so many, first the hosts that have
        a node with so many."""
        known = self._host >= 0
        sums = np.bincount(self._host[known], weights=np.maximum(slots, 0)[known]).astype(np.int64)
        largest = np.zeros(len(sums), np.int64)
        np.maximum.at(largest, self._host[known], slots[known])
        able = (sums >= processors).nonzero()[0]
        for host in sorted(able.tolist(), key=lambda one: bool(largest[one] < processors)):
            room = np.where(self._host == host, slots, 0)
            if largest[host] >= processors:
                # One node is enough.
                room = np.where(room >= processors, room, 0)
            yield room

    def of(self, nodes: list[int]) -> Bools:
        """All nodes of these nodes' hosts."""
        found: Bools = np.isin(self._host, self._host[nodes])
        return found
