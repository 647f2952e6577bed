"""A request of several parts: which nodes of its placement belong to which part.

The parts start together or not at all. A placement has the nodes of the first part, then the nodes of the
second, and so on; each part has as many as it takes to satisfy it. Where parts may share nodes
(``Request.parts_apart`` is ""), a node comes once for each part that has some of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeVar

from headway.model import Placement, Request

NodeT = TypeVar("NodeT")


def divided(
    request: Request, nodes: Sequence[NodeT], counts: Sequence[int]
) -> Iterator[tuple[Request, Sequence[NodeT], Sequence[int]]]:
    """Each part with its nodes and the processors on them; a part for which nothing is left has none.

    The last part has all the rest.
    """
    at = 0
    for part in request.parts[:-1]:
        first, found = at, 0
        least = max(part.nodes, len(set(part.required_nodes)))
        while at < len(nodes) and (found < part.processors or at - first < least):
            found += counts[at]
            at += 1
        yield part, nodes[first:at], counts[first:at]
    if request.parts:
        yield request.parts[-1], nodes[at:], counts[at:]


def placements_of(request: Request, placement: Placement) -> list[Placement]:
    """The placement of each part."""
    names, counts = [name for name, _ in placement], [count for _, count in placement]
    return [tuple(zip(nodes, numbers, strict=True)) for _, nodes, numbers in divided(request, names, counts)]


def together(parts: Sequence[Request]) -> Request:
    """The request that has these parts; it lasts as long as the longest of them."""
    licences = Counter[str]()
    for part in parts:
        licences.update(dict(part.licences))
    return Request(
        processors=sum(part.processors for part in parts),
        walltime=max(part.walltime for part in parts),
        parts=tuple(parts),
        licences=tuple(sorted(licences.items())),
    )


def by_node(placement: Placement) -> dict[str, int]:
    """The processors on each node, of all parts."""
    found: dict[str, int] = {}
    for name, count in placement:
        found[name] = found.get(name, 0) + count
    return found
