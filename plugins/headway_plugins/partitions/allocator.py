"""Where a partition fits on a torus: first fit and best fit over all shapes and positions.

The paper leaves the allocation to the job manager ("first fit, best fit or anything"). Ours, for a request
of n compute nodes on midplanes of u: k = ceil(n / u); for k' = k, k + 1, ... all shapes of k' midplanes,
least surface first, and for each all positions in lexicographic order; the first that conflicts with no
active partition and whose midplanes are all up. ``best`` takes, among the fits of the least k' that has any,
the fit that leaves the most free links; ties as above. With a shape given: that shape, and its rotations in
the order of shapes if the request lets it turn.

All boxes of a machine are in one order, made once; a set of boxes is an integer, a bit each. Of every
midplane and every link it is known which boxes have it, and of eight of them at a time what is ruled out by
each combination (as soon as it is seen); what 64 of them rule out is joined anew where they are not taken as
they were at the last question. So a question joins a few sets and takes the lowest bit that is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import permutations
from math import ceil
from struct import Struct

import numpy as np
from numpy.typing import NDArray

from headway.partitions.torus import Box, Geometry, Shape, bits_of, shapes_of

#: Octets in a word.
_WORD = 8
#: Answers that are kept.
_KEPT = 4096


class Table:
    """Boxes in order of preference, and which of them fit."""

    def __init__(self, geometry: Geometry, boxes: Iterable[Box]) -> None:
        self.boxes = list(boxes)
        self._shift = geometry.size
        words = -(-(geometry.size + geometry.links) // (8 * _WORD))
        self._octets = words * _WORD
        masks = [geometry.masks(box) for box in self.boxes]
        #: The links that each takes.
        self.links = np.array([links.bit_count() for _, links in masks], np.int64)
        rows = np.array([np.frombuffer(self._row(*each), np.uint8) for each in masks], np.uint8).reshape(
            len(masks), self._octets
        )
        #: Of eight midplanes or links at a time: what was taken of them -> the boxes that have some of it.
        self._ruled_out: list[dict[int, int]] = []
        for octet in range(self._octets):
            whose = np.packbits(
                np.unpackbits(rows[:, octet : octet + 1], axis=1, bitorder="little"),
                axis=0,
                bitorder="little",
            )
            self._ruled_out.append(
                {1 << bit: int.from_bytes(whose[:, bit].tobytes(), "little") for bit in range(8)}
            )
        self._words = Struct(f"<{words}Q")
        #: What was taken at the last question, 64 at a time, and the boxes that have some of it.
        self._asked = [0] * words
        self._joined = [0] * words

    def _row(self, nodes: int, links: int) -> bytes:
        """Midplanes and links, eight in an octet."""
        return (nodes | links << self._shift).to_bytes(self._octets, "little")

    def taken(self, busy: int, full: int) -> int:
        """The boxes that have some of these midplanes or links."""
        row, asked, joined = self._row(busy, full), self._asked, self._joined
        found = 0
        for at, word in enumerate(self._words.unpack(row)):
            before = asked[at]
            if word != before:
                gone, begin = before & ~word, at * _WORD
                if gone:
                    joined[at] = self._join(word.to_bytes(_WORD, "little"), begin)
                else:
                    joined[at] |= self._join((word ^ before).to_bytes(_WORD, "little"), begin)
                asked[at] = word
            found |= joined[at]
        return found

    def _join(self, octets: bytes, begin: int) -> int:
        """The boxes that have some of what is taken in a word of which these are the octets, and ``begin`` is
        the first."""
        found = 0
        for at, octet in enumerate(octets, begin):
            if octet:
                ruled_out = self._ruled_out[at]
                known = ruled_out.get(octet)
                if known is None:
                    known = 0
                    for bit in bits_of(octet):
                        known |= ruled_out[1 << bit]
                    ruled_out[octet] = known
                found |= known
        return found

    def first(self, taken: int, begin: int, end: int) -> int:
        """The first box of [begin, end) that is not ``taken``; -1: none."""
        left = _clear(taken, begin, end)
        return begin + (left & -left).bit_length() - 1 if left else -1

    def all(self, taken: int, begin: int, end: int) -> NDArray[np.intp]:
        """All boxes of [begin, end) that are not ``taken``."""
        left = _clear(taken, begin, end)
        octets = np.frombuffer(left.to_bytes(left.bit_length() + 7 >> 3, "little"), np.uint8)
        return begin + np.unpackbits(octets, bitorder="little").nonzero()[0]


def _clear(taken: int, begin: int, end: int) -> int:
    """The bits of [begin, end) that are not set, the first bit lowest."""
    return ~(taken >> begin) & (1 << end - begin) - 1


class Allocator:
    """Answers where a partition fits, for a single kind of wiring."""

    def __init__(self, geometry: Geometry, connection: str) -> None:
        self._geometry = geometry
        self._connection = connection
        #: Answers to the questions that were asked last.
        self._known: dict[tuple[object, ...], Box | None] = {}

    @cached_property
    def _table(self) -> Table:
        geometry = self._geometry
        boxes: list[Box] = []
        #: Where the boxes of so many midplanes begin.
        self._begin = [0] * (geometry.size + 2)
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
        """The smallest number of midplanes, from ``midplanes`` on, of which there is a box; 0: no box."""
        table = self._table
        at = self._begin[midplanes] if midplanes <= self._geometry.size else len(table.boxes)
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
        found = table.first(taken, self._begin[midplanes], self._begin[free + 1])
        if found < 0:
            return None
        if not best:
            return table.boxes[found]
        size = table.boxes[found].size
        return self._best(taken, [(self._begin[size], self._begin[size + 1])])

    def _best(self, taken: int, spans: Sequence[tuple[int, int]]) -> Box | None:
        """The fit that takes the fewest links, the first of these."""
        table = self._table
        fits = [table.all(taken, *span) for span in spans]
        rows = np.concatenate(fits) if fits else np.zeros(0, np.intp)
        if not len(rows):
            return None
        return table.boxes[int(rows[table.links[rows].argmin()])]
