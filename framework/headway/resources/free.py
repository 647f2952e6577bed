"""What each node has free, and sets of nodes as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headway.model import Placement, Request
from headway.model.parts import divided

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
#: More nodes than these are handled in one array operation, whose own cost is that of about so many.
MANY = 4
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
        if place.arrays is None or not takes_processors_alone(request):
            self.take(request, place.nodes, place.counts, sign)
            return
        self.changes += 1
        nodes, counts = place.arrays
        if sign > 0:
            self.processors[nodes] -= counts
        else:
            self.processors[nodes] += counts

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


def bits(nodes: Bools) -> int:
    """A set of nodes as a number: one bit a node, the first node's being the lowest."""
    return int.from_bytes(np.packbits(nodes, bitorder="little").tobytes(), "little")


def nodes_of(nodes: int) -> list[int]:
    """The nodes of a set (:func:`bits`), in their order."""
    if nodes.bit_count() > MANY:
        octets = np.frombuffer(nodes.to_bytes(nodes.bit_length() + 7 >> 3, "little"), np.uint8)
        found: list[int] = np.unpackbits(octets, bitorder="little").nonzero()[0].tolist()
        return found
    found = []
    while nodes:
        lowest = nodes & -nodes
        found.append(lowest.bit_length() - 1)
        nodes ^= lowest
    return found


class Located:
    """A placement by the indices of its nodes, in its order; unknown nodes are left out."""

    __slots__ = ("_bits", "arrays", "clear", "counts", "nodes", "placement", "processors")

    def __init__(self, placement: Placement, index: Mapping[str, int]) -> None:
        #: Kept here, so that no other object has its identity.
        self.placement = placement
        self._bits = -1
        self.counts = counts = [count for _, count in placement]
        #: Of all of its nodes.
        self.processors = sum(counts)
        try:
            self.nodes = nodes = [index[name] for name, _ in placement]
        except KeyError:
            known = [(index[name], count) for name, count in placement if name in index]
            self.nodes = nodes = [node for node, _ in known]
            self.counts = counts = [count for _, count in known]
        #: All nodes are known, none comes twice, and each has a processor in it.
        self.clear = len(placement) == len(set(nodes)) and min(counts, default=1) > 0
        #: The same as arrays, where there are many.
        self.arrays: tuple[Ints, Ints] | None = None
        if len(nodes) > MANY:
            self.arrays = np.array(nodes), np.array(counts)

    @classmethod
    def ones(cls, placement: Placement, nodes: list[int], bits: int) -> Located:
        """A placement that has a processor of each of these nodes, of which none comes twice."""
        made = cls.__new__(cls)
        made.placement, made.nodes, made._bits = placement, nodes, bits
        made.processors = count = len(nodes)
        made.counts = [1] * count
        made.clear = True
        made.arrays = (np.array(nodes), np.ones(count, np.int64)) if count > MANY else None
        return made

    @property
    def bits(self) -> int:
        """The set of its nodes (:func:`bits`)."""
        if self._bits < 0:
            self._bits = 0
            for node in self.nodes:
                self._bits |= 1 << node
        return self._bits
