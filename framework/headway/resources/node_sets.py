"""Sets of nodes: as arrays of their indices, and as numbers of one bit a node."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
#: More nodes than these are handled in one array operation, whose own cost is that of about so many.
MANY = 4


def bits(nodes: Bools) -> int:
    """A set of nodes as a number: one bit a node, the first node's being the lowest."""
    return int.from_bytes(np.packbits(nodes, bitorder="little").tobytes(), "little")


def nodes_of(nodes: int) -> list[int]:
    """The nodes of a set (:func:`bits`), in their order."""
    if nodes.bit_count() > MANY:
        many: list[int] = array_of(nodes).tolist()
        return many
    found = []
    while nodes:
        lowest = nodes & -nodes
        found.append(lowest.bit_length() - 1)
        nodes ^= lowest
    return found


def array_of(nodes: int) -> Ints:
    """The nodes of a set that is not empty (:func:`bits`), in their order, as an array."""
    octets = np.frombuffer(nodes.to_bytes(nodes.bit_length() + 7 >> 3, "little"), np.uint8)
    return np.unpackbits(octets, bitorder="little").nonzero()[0]
