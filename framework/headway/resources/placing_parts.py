"""Where the parts of a request find their nodes: all of them, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, permutations

import numpy as np

from headway.model import Placement, Request
from headway.model.parts import placements_of
from headway.resources.free import Free
from headway.resources.node_sets import Bools
from headway.resources.nodes import NodeTable
from headway.resources.offer import Offer
from headway.resources.placing_shared import place_shared

#: Up to so many parts, every order of them is tried.
_ALL_ORDERS = 4


def place_parts(
    table: NodeTable,
    request: Request,
    pool: str,
    eligible: Bools,
    free: Free,
    place: Callable[[Offer], Placement | None],
    time: float = float("inf"),
) -> Placement | None:
    """A placement of all parts on nodes of ``eligible`` that have ``free`` left at ``time``; None if there is
    none.

    ``place`` chooses for one part. Parts that the fewest nodes could host choose first; where that leads
    nowhere, other orders are tried: all of a few parts, of many each of them first. Parts that may share
    nodes, or must not share hosts, have their own way (:mod:`headway.resources.placing_shared`).
    """
    parts = request.parts
    if request.parts_apart != "nodes" or any(part.one_host or not part.processors for part in parts):
        whole = place_shared(table, request, pool, eligible, free, place, time)
        return tuple(chain.from_iterable(whole)) if whole is not None else None
    named = [table.mask_of(part.required_nodes) for part in parts]
    slots = []
    for at, part in enumerate(parts):
        mask = eligible & table.eligible(part, pool, available_only=False)
        for other, theirs in enumerate(named):
            if other != at:
                mask &= ~theirs
        slots.append(table.slots(part, mask, free))
    scarce_first = sorted(range(len(parts)), key=lambda at: (int(np.count_nonzero(slots[at])), at))
    for order in _orders(scarce_first):
        left = eligible.copy()
        found: dict[int, Placement] = {}
        for at in order:
            room = np.where(left, slots[at], 0)
            if int(room.sum()) < parts[at].processors:
                break
            placement = place(Offer(table, parts[at], room, free, time))
            if placement is None:
                break
            found[at] = placement
            left[[table.index[name] for name, _ in placement if name in table.index]] = False
        if len(found) == len(parts):
            whole = [found[at] for at in range(len(parts))]
            placed = tuple(chain.from_iterable(whole))
            if placements_of(request, placed) == whole:
                return placed
    return None


def _orders(first: list[int]) -> Iterator[Iterable[int]]:
    if len(first) <= _ALL_ORDERS:
        yield from permutations(first)
        return
    yield first
    for at in first[1:]:
        yield [at, *(other for other in first if other != at)]


def can_host(
    table: NodeTable,
    request: Request,
    pool: str,
    *,
    confined: Iterable[str] | None = None,
    available_only: bool = True,
) -> bool:
    """Whether a request finds its nodes in an idle pool, or among the nodes it is ``confined`` to."""
    if not request.parts:
        return table.can_host(request, pool, confined=confined, available_only=available_only)
    eligible = table.eligible(request, pool, available_only)
    if confined is not None:
        eligible = eligible & table.mask_of(confined)

    def first_fit(offer: Offer) -> Placement | None:
        return offer.take(offer.feasible)

    return place_parts(table, request, pool, eligible, table.whole, first_fit) is not None
