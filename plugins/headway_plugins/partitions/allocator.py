"""Where a partition fits on a torus: first fit and best fit over all shapes and positions.

The paper leaves the allocation to the job manager ("first fit, best fit or anything"). Ours, for a request
of n compute nodes on midplanes of u: k = ceil(n / u); for k' = k, k + 1, ... all shapes of k' midplanes,
least surface first, and for each all positions in lexicographic order; the first that conflicts with no
active partition and whose midplanes are all up. ``best`` takes, among the fits of the least k' that has any,
the one that leaves the most free links; ties as above. With a shape given: that shape, and its rotations in
the order of shapes if the request lets it turn.

All boxes of a machine are one table of bits, made once, so a question is a few array operations.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import permutations
from math import ceil

import numpy as np
from numpy.typing import NDArray

from headway.partitions.torus import Box, Geometry, Shape, shapes_of

_WORD = 64
#: Rows looked at in one go: a fit is mostly found among the first.
_CHUNK = 256
#: Answers that are kept.
_KEPT = 4096


def words(mask: int, count: int) -> NDArray[np.uint64]:
    """A set of bits as an array."""
    return np.frombuffer(mask.to_bytes(8 * count, "little"), np.uint64)


class Table:
    """Boxes in order of preference, and which of them fit."""

    def __init__(self, geometry: Geometry, boxes: Iterable[Box]) -> None:
        self.boxes = list(boxes)
        self._node_words = -(-geometry.size // _WORD)
        self._link_words = -(-geometry.links // _WORD)
        masks = [geometry.masks(box) for box in self.boxes]
        self.rows = np.array(
            [
                np.concatenate((words(nodes, self._node_words), words(links, self._link_words)))
                for nodes, links in masks
            ],
            np.uint64,
        ).reshape(len(masks), self._node_words + self._link_words)
        #: Midplanes and links of each.
        self.sizes = np.array([box.size for box in self.boxes], np.int64)
        self.links = np.array([links.bit_count() for _, links in masks], np.int64)

    def taken(self, busy: int, full: int) -> NDArray[np.uint64]:
        """Midplanes and links that nobody can have, as a row."""
        return np.concatenate((words(busy, self._node_words), words(full, self._link_words)))

    def first(self, taken: NDArray[np.uint64], begin: int, end: int) -> int:
        """The first row of [begin, end) that has nothing of what is taken; -1: none."""
        at, step = begin, _CHUNK
        while at < end:
            stop = min(at + step, end)
            clear: NDArray[np.bool_] = np.logical_not((self.rows[at:stop] & taken).any(axis=1))
            found = int(clear.argmax())
            if clear[found]:
                return at + found
            at, step = stop, 4 * step
        return -1

    def all(self, taken: NDArray[np.uint64], begin: int, end: int) -> NDArray[np.intp]:
        """All rows of [begin, end) that have nothing of what is taken."""
        return begin + np.flatnonzero(~(self.rows[begin:end] & taken).any(axis=1))


class Allocator:
    """Answers where a partition fits, for one kind of wiring."""

    def __init__(self, geometry: Geometry, connection: str) -> None:
        self._geometry = geometry
        self._connection = connection
        #: Answers to the questions that were asked last.
        self._known: dict[tuple[object, ...], Box | None] = {}

    @cached_property
    def _table(self) -> Table:
        geometry = self._geometry
        boxes: list[Box] = []
        self._begin = np.zeros(geometry.size + 2, np.int64)
        self._of_shape: dict[Shape, tuple[int, int]] = {}
        for size in range(1, geometry.size + 1):
            self._begin[size] = len(boxes)
            for shape in shapes_of(size, geometry.shape):
                if geometry.possible(shape, self._connection):
                    first = len(boxes)
                    boxes += [Box(at, shape, self._connection) for at in geometry.origins(shape)]
                    self._of_shape[shape] = first, len(boxes)
        self._begin[geometry.size + 1] = len(boxes)
        return Table(geometry, boxes)

    def midplanes(self, nodes: int) -> int:
        """How many midplanes so many compute nodes need at least."""
        return max(ceil(nodes / self._geometry.torus.unit), 1)

    def least(self, midplanes: int) -> int:
        """The smallest number of midplanes, not below this one, of which there is a box; 0: there is none."""
        table = self._table
        at = int(self._begin[midplanes]) if midplanes <= self._geometry.size else len(table.boxes)
        return table.boxes[at].size if at < len(table.boxes) else 0

    def fit(
        self,
        midplanes: int,
        busy: int = 0,
        full: int = 0,
        *,
        shape: Shape | None = None,
        rotate: bool = False,
        best: bool = False,
    ) -> Box | None:
        """The box for a request; None: it fits nowhere now.

        ``busy``: midplanes in use or down; ``full``: links without room, both as bits. ``shape``: this shape
        and no other, with ``rotate`` in any orientation; then ``midplanes`` says nothing.
        """
        question = midplanes, busy, full, shape, rotate, best
        if question not in self._known:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[question] = self._search(midplanes, busy, full, shape, rotate, best)
        return self._known[question]

    def _search(
        self, midplanes: int, busy: int, full: int, shape: Shape | None, rotate: bool, best: bool
    ) -> Box | None:
        """The same, looked for."""
        table = self._table
        if shape is not None:
            turned = sorted(
                set(permutations(shape)) if rotate else {shape},
                key=lambda s: (s[0] * s[1] + s[1] * s[2] + s[2] * s[0], s),
            )
            taken = table.taken(busy, full)
            spans = [self._of_shape[turn] for turn in turned if turn in self._of_shape]
            if best:
                return self._best(taken, spans)
            for span in spans:
                found = table.first(taken, *span)
                if found >= 0:
                    return table.boxes[found]
            return None
        free = self._geometry.size - busy.bit_count()
        if midplanes > free:
            return None
        taken = table.taken(busy, full)
        # No box is larger than what is free.
        found = table.first(taken, int(self._begin[midplanes]), int(self._begin[free + 1]))
        if found < 0:
            return None
        if not best:
            return table.boxes[found]
        size = table.boxes[found].size
        return self._best(taken, [(int(self._begin[size]), int(self._begin[size + 1]))])

    def _best(self, taken: NDArray[np.uint64], spans: list[tuple[int, int]]) -> Box | None:
        """The fit that takes the fewest links, the first of these."""
        table = self._table
        fits = [table.all(taken, *span) for span in spans]
        rows = np.concatenate(fits) if fits else np.zeros(0, np.intp)
        if not len(rows):
            return None
        return table.boxes[int(rows[table.links[rows].argmin()])]
