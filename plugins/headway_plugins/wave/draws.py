"""Random choices from one stream of numbers in [0, 1), so that a run can be repeated number by number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

import numpy as np

#: A time or a length of time, hours: a fraction where a run is exact.
Hours = float | Fraction

#: Numbers that are taken from a generator at once, because single calls are slow.
_BLOCK = 1024


class Draws:
    """Choices of which each uses one number of the stream."""

    def __init__(self, numbers: Iterable[float], *, exact: bool = False) -> None:
        """``exact``: lengths of time are fractions of the numbers' decimal text."""
        self._numbers = iter(numbers)
        self._exact = exact
        #: Numbers that have been used.
        self.drawn = 0

    @classmethod
    def of(cls, generator: np.random.Generator, *, exact: bool = False) -> Draws:
        """Choices from a generator, which nothing else may use from now on."""
        return cls(_stream(generator), exact=exact)

    def number(self) -> float:
        """The next number in [0, 1). Raises ValueError if the stream has ended."""
        found = next(self._numbers, None)
        if found is None:
            raise ValueError(f"expected a further random number, found {self.drawn} in all")
        self.drawn += 1
        return found

    def below(self, count: int) -> int:
        """A whole number from 0 to ``count - 1``."""
        return int(self.number() * count)

    def hours(self, least: float, most: float) -> Hours:
        """A length of time between two whole numbers of hours."""
        found = self.number()
        return least + (most - least) * (Fraction(str(found)) if self._exact else found)

    def permutation(self, count: int) -> list[int]:
        """The numbers below ``count`` in a random order, from the last place to the second."""
        found = list(range(count))
        for at in range(count - 1, 0, -1):
            other = self.below(at + 1)
            found[at], found[other] = found[other], found[at]
        return found


def _stream(generator: np.random.Generator) -> Iterator[float]:
    while True:
        yield from generator.random(_BLOCK).tolist()
