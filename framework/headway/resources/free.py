"""What each node has free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from headway.model import Placement, Request
from headway.model.parts import divided
from headway.resources.located import Located
from headway.resources.node_sets import MANY, Ints

#: Memory of a node whose batch system does not manage memory: more than any job asks for.
UNMANAGED = np.int64(1) << 62


def memory_on_node(request: Request, processors: int) -> int:
    """Bytes that a job takes on a node where it has ``processors``.

    A node given whole is shared with no other job, so what its additional processors would ask for does
    not count.
    """
    if request.exclusive:
        return request.memory_per_node
    by_size = request.memory_per_processor * processors
    if request.memory_per_chunk:
        by_size = max(by_size, request.memory_per_chunk * request.chunks(processors))
    return max(request.memory_per_node, by_size)


def gres_on_node(request: Request, processors: int) -> tuple[tuple[str, int], ...]:
    """Generic resources that a job takes on a node where it has ``processors``; as with memory."""
    if request.exclusive or not request.gres_per_chunk:
        return request.gres_per_node
    count = request.chunks(processors)
    return (*request.gres_per_node, *((name, amount * count) for name, amount in request.gres_per_chunk))


def memory_on_nodes(request: Request, processors: Ints) -> Ints | int:
    """:func:`memory_on_node` of several nodes, where the job has so many ``processors`` of each."""
    if request.exclusive or not (request.memory_per_processor or request.memory_per_chunk):
        return request.memory_per_node
    by_size = request.memory_per_processor * processors
    if request.memory_per_chunk:
        chunks = processors // (request.processors_per_chunk or 1)
        by_size = np.maximum(by_size, request.memory_per_chunk * chunks)
    return np.maximum(request.memory_per_node, by_size)


def gres_on_nodes(request: Request, processors: Ints) -> list[tuple[str, Ints | int]]:
    """:func:`gres_on_node` of several nodes; as with memory."""
    found: list[tuple[str, Ints | int]] = list(request.gres_per_node)
    if request.gres_per_chunk and not request.exclusive:
        chunks = processors // (request.processors_per_chunk or 1)
        found += [(name, amount * chunks) for name, amount in request.gres_per_chunk]
    return found


def takes_processors_alone(request: Request) -> bool:
    """Whether a request takes nothing of a node but processors, and is of one part."""
    return not (
        request.memory_per_node
        or request.memory_per_processor
        or request.gres_per_node
        or request.parts
        or request.memory_per_chunk
        or request.gres_per_chunk
    )


def layout_is_open(request: Request, placement: Placement) -> bool:
    """Whether a job could have other numbers of processors on the nodes of its placement."""
    if request.parts:
        # Which of a part's nodes are used at all may be open, too.
        return len(placement) > len(request.parts)
    fixed = request.exclusive or request.processors_per_node
    return len(placement) > 1 and not fixed and any(count > 1 for _, count in placement)


@dataclass
class Free:
    """What each node has left, at some moment or over some time."""

    processors: Ints
    memory: Ints
    gres: dict[str, Ints]
    #: How often something was taken of it or given back.
    changes: int = 0
    #: The nodes of which nothing is taken, and what was told and changed by then (:meth:`NodeTable.idle`).
    idle: tuple[int, int, int] = field(default=(-1, -1, 0), compare=False)

    def copy(self) -> Free:
        return Free(self.processors.copy(), self.memory.copy(), {k: v.copy() for k, v in self.gres.items()})

    def take(self, request: Request, nodes: Sequence[int], counts: Sequence[int], sign: int = 1) -> None:
        """Take (or with ``sign=-1`` give back) what ``request`` uses for ``counts`` processors a node; no
        node comes twice in a part."""
        self.changes += 1
        if request.parts:
            for part, its_nodes, its_counts in divided(request, nodes, counts):
                self.take(part, its_nodes, its_counts, sign)
            return
        if takes_processors_alone(request):
            if len(nodes) > MANY:
                self.processors[nodes] -= counts if sign > 0 else np.negative(counts)
            else:
                for node, count in zip(nodes, counts, strict=True):
                    self.processors[node] -= sign * count
            return
        for node, count in zip(nodes, counts, strict=True):
            self.processors[node] -= sign * count
            memory = memory_on_node(request, count)
            if memory:
                self.memory[node] -= sign * memory
            for name, amount in gres_on_node(request, count):
                if name in self.gres:
                    self.gres[name][node] -= sign * amount

    def take_at(self, request: Request, place: Located, sign: int = 1) -> None:
        """As :meth:`take`, of a placement's nodes."""
        if place.arrays is None or request.parts or not (place.clear or takes_processors_alone(request)):
            self.take(request, place.nodes, place.counts, sign)
            return
        self.changes += 1
        nodes, counts = place.arrays
        self.processors[nodes] -= counts if sign > 0 else -counts
        if takes_processors_alone(request):
            return
        self.memory[nodes] -= sign * memory_on_nodes(request, counts)
        for name, amount in gres_on_nodes(request, counts):
            if name in self.gres:
                self.gres[name][nodes] -= sign * amount

    def has(self, request: Request, nodes: Sequence[int], counts: Sequence[int]) -> bool:
        """Whether ``request`` could take ``counts`` processors of these nodes."""
        if request.parts:
            if request.parts_apart:
                return all(self.has(*share) for share in divided(request, nodes, counts))
            return self.lacking(request, nodes, counts) is None
        return all(
            self.processors[node] >= count
            and self.memory[node] >= memory_on_node(request, count)
            and all(
                name not in self.gres or self.gres[name][node] >= amount
                for name, amount in gres_on_node(request, count)
            )
            for node, count in zip(nodes, counts, strict=True)
        )

    def lacking(self, request: Request, nodes: Sequence[int], counts: Sequence[int]) -> int | None:
        """The first node that has too little for the parts of a request, which may share nodes; None: all
        have enough."""
        left = self.copy()
        for part, its_nodes, its_counts in divided(request, nodes, counts):
            for node, count in zip(its_nodes, its_counts, strict=True):
                if not left.has(part, (node,), (count,)):
                    return node
                left.take(part, (node,), (count,))
        return None

    def at_most(self, other: Free) -> Free:
        """The smaller of the two, node by node."""
        return Free(
            np.minimum(self.processors, other.processors),
            np.minimum(self.memory, other.memory),
            {k: np.minimum(v, other.gres[k]) for k, v in self.gres.items()},
        )
