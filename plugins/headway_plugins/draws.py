"""Random choices, each made from the next number of a stream in [0, 1).

A whole number below n is ``int(u * n)`` of the next number u, and nothing else is used, so that a run can be
repeated from the list of its numbers.
"""

from __future__ import annotations

from typing import Protocol


class Source(Protocol):
    """Where the numbers come from: :class:`numpy.random.Generator`, or :class:`random.Random`."""

    def random(self) -> float: ...


class Draws:
    """Choices from a source, and how many numbers they took."""

    def __init__(self, source: Source) -> None:
        self._next = source.random
        #: Numbers used so far.
        self.count = 0

    def unit(self) -> float:
        """The next number, in [0, 1)."""
        self.count += 1
        return float(self._next())

    def below(self, n: int) -> int:
        """A whole number from 0 to n - 1; 0 if n is 0."""
        return int(self.unit() * n)

    def several(self, count: int, n: int) -> list[int]:
        """So many whole numbers from 0 to n - 1."""
        return [self.below(n) for _ in range(count)]

    def permutation(self, n: int) -> list[int]:
        """0 to n - 1 in random order: n - 1 numbers, from the last place to the second."""
        items = list(range(n))
        for at in range(n - 1, 0, -1):
            other = self.below(at + 1)
            items[at], items[other] = items[other], items[at]
        return items

    def section(self, n: int) -> tuple[int, int]:
        """Two places of a string of n, the smaller first; both belong to the section between them."""
        x, y = self.below(n), self.below(n)
        return (x, y) if x <= y else (y, x)
