"""Random choices of a run of the peer network: lengths of time may be exact."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

import numpy as np

from headway_plugins import draws

#: A time or a length of time, hours: a fraction where a run is exact.
Hours = float | Fraction

#: Numbers that are taken from a generator at once, because single calls are slow.
_BLOCK = 1024


class Draws(draws.Draws):
    """Choices of which each uses one number of a stream."""

    def __init__(self, numbers: Iterable[float], *, exact: bool = False) -> None:
        """``exact``: lengths of time are fractions of the numbers' decimal text."""
        super().__init__(_Stream(numbers))
        self._exact = exact

    @classmethod
    def of(cls, generator: np.random.Generator, *, exact: bool = False) -> Draws:
        """Choices from a generator, which nothing else may use from now on."""
        return cls(_blocks(generator), exact=exact)

    def hours(self, least: float, most: float) -> Hours:
        """A length of time between two whole numbers of hours."""
        found = self.unit()
        return least + (most - least) * (Fraction(str(found)) if self._exact else found)


class _Stream:
    """Numbers in turn as a source of choices."""

    def __init__(self, numbers: Iterable[float]) -> None:
        self.random = _to_the_end(numbers).__next__


def _to_the_end(numbers: Iterable[float]) -> Iterator[float]:
    """Each number, and then ValueError."""
    count = 0
    for count, number in enumerate(numbers, start=1):  # noqa: B007 (told at the end)
        yield number
    raise ValueError(f"expected a further random number, found {count} in all")


def _blocks(generator: np.random.Generator) -> Iterator[float]:
    while True:
        yield from generator.random(_BLOCK).tolist()
