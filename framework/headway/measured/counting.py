"""Values by size, and values by a bounded number of names."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from headway.measured.report import Histogram

KeyT = TypeVar("KeyT", bound=Hashable)

#: Upper bounds in seconds: of cycles and steps, of the time until a decided start has happened, and of waits.
OF_CYCLES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
OF_STARTS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 300.0)
OF_WAITS = (10.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 14400.0, 43200.0, 86400.0, 259200.0, 604800.0)


class Sizes:
    """A histogram that grows."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        """One more value, which is not negative."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def told(self) -> Histogram:
        return Histogram(self.bounds, tuple(self.counts), self.sum)


class ByName(Generic[KeyT]):
    """A histogram for each of so many names; from then on new names are counted under ``rest``."""

    def __init__(self, bounds: tuple[float, ...], most: int, rest: KeyT) -> None:
        self._bounds, self._most, self._rest = bounds, most, rest
        self._sizes: dict[KeyT, Sizes] = {}

    def add(self, name: KeyT, value: float) -> None:
        """One more value of that name."""
        sizes = self._sizes.get(name)
        if sizes is None:
            if len(self._sizes) >= self._most:
                name = self._rest
            sizes = self._sizes.setdefault(name, Sizes(self._bounds))
        sizes.add(value)

    def told(self) -> Iterator[tuple[KeyT, Histogram]]:
        """Each name with its values."""
        for name, sizes in self._sizes.items():
            yield name, sizes.told()
