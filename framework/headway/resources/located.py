"""Where a placement is: the indices of its nodes in the node table, and the processors that it has of each.

A placement of many nodes is a pair of arrays; its lists are made when something asks for them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from headway.model import Placement
from headway.resources.node_sets import MANY, Ints, bits


class Located:
    """A placement by the indices of its nodes, in its order; unknown nodes are left out."""

    __slots__ = ("_bits", "_counts", "_few", "_nodes", "arrays", "clear", "known", "placement", "processors")

    def __init__(self, placement: Placement, index: Mapping[str, int]) -> None:
        #: Kept here, so that no other object has its identity.
        self.placement = placement
        self._bits = -1
        self._few: tuple[Ints, Ints] | None = None
        #: The same as arrays, where there are many.
        self.arrays: tuple[Ints, Ints] | None = None
        if len(placement) > MANY and self._found_many(placement, index):
            return
        counts = [count for _, count in placement]
        #: Of all of its nodes.
        self.processors: int = sum(counts)
        try:
            nodes = [index[name] for name, _ in placement]
        except KeyError:
            nodes = [index[name] for name, _ in placement if name in index]
            counts = [count for name, count in placement if name in index]
        self._nodes: list[int] | None = nodes
        self._counts: list[int] | None = counts
        #: How many of its nodes are known.
        self.known = len(nodes)
        #: All nodes are known, none comes twice, and each has a processor in it.
        self.clear: bool = len(placement) == len(set(nodes)) and min(counts, default=1) > 0
        if self.known > MANY:
            self.arrays = np.array(nodes), np.array(counts)

    def _found_many(self, placement: Placement, index: Mapping[str, int]) -> bool:
        """Set it up by arrays; False: not all nodes are known."""
        names, counts = zip(*placement, strict=True)
        try:
            nodes = np.fromiter(map(index.__getitem__, names), np.int64, len(names))
        except KeyError:
            return False
        self._set(nodes, np.array(counts))
        return True

    def _set(self, nodes: Ints, counts: Ints) -> None:
        self._nodes = self._counts = None
        self.arrays = nodes, counts
        self.known = len(nodes)
        self.processors = int(counts.sum())
        self.clear = _each_once(nodes, counts)

    @classmethod
    def of(cls, placement: Placement, nodes: Ints, counts: Ints) -> Located:
        """A placement that has so many processors of each of many nodes."""
        made = cls.__new__(cls)
        made.placement, made._bits, made._few = placement, -1, None
        made._set(nodes, counts)
        return made

    @property
    def nodes(self) -> list[int]:
        """The indices of its nodes."""
        if self._nodes is None:
            assert self.arrays is not None
            self._nodes = self.arrays[0].tolist()
        return self._nodes

    @property
    def counts(self) -> list[int]:
        """Its processors on each of them."""
        if self._counts is None:
            assert self.arrays is not None
            self._counts = self.arrays[1].tolist()
        return self._counts

    def as_arrays(self) -> tuple[Ints, Ints]:
        """Nodes and counts as arrays, however few there are."""
        if self.arrays is not None:
            return self.arrays
        if self._few is None:
            self._few = np.array(self._nodes, np.int64), np.array(self._counts, np.int64)
        return self._few

    @property
    def bits(self) -> int:
        """The set of its nodes (:func:`headway.resources.node_sets.bits`)."""
        if self._bits < 0:
            if self.arrays is not None:
                mask = np.zeros(int(self.arrays[0].max()) + 1, np.bool_)
                mask[self.arrays[0]] = True
                self._bits = bits(mask)
            else:
                self._bits = 0
                for node in self.nodes:
                    self._bits |= 1 << node
        return self._bits


def _each_once(nodes: Ints, counts: Ints) -> bool:
    """Whether no node comes twice, and each has a processor."""
    if int(counts.min()) <= 0:
        return False
    if (nodes[1:] > nodes[:-1]).all():
        return True
    ascending: NDArray[np.int64] = np.sort(nodes)
    return bool((ascending[1:] > ascending[:-1]).all())
