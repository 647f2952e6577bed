"""Step functions of time, built and combined without a loop over jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Steps:
    """A piecewise constant function on [times[0], end).

    ``values[i]`` holds from ``times[i]`` (seconds, strictly increasing) until ``times[i + 1]``, the
    last one until ``end``.
    """

    times: Floats
    #: Of any type that holds them exactly.
    values: NDArray[np.number[Any]]
    end: float

    @classmethod
    def from_changes(
        cls, times: Floats, deltas: Floats, *, begin: float, end: float, initial: float = 0.0
    ) -> Steps:
        """The sum of ``deltas`` (each from its time on) plus ``initial``, seen from ``begin`` to ``end``.

        What changed before ``begin`` is in force at ``begin``; what changes at ``end`` or later is not seen.
        """
        end = max(begin, end)
        order = np.argsort(times, kind="stable")
        moments, values = times[order], initial + np.cumsum(deltas[order])
        if len(moments):
            last = np.append(moments[1:] != moments[:-1], True)
            moments, values = moments[last], values[last]
        before = int(np.searchsorted(moments, begin, side="right"))
        after = max(before, int(np.searchsorted(moments, end, side="left")))
        first = values[before - 1] if before else initial
        return cls(
            times=np.concatenate(([begin], moments[before:after])),
            values=np.concatenate(([first], values[before:after])),
            end=end,
        )

    @property
    def begin(self) -> float:
        return float(self.times[0])

    @property
    def durations(self) -> Floats:
        """Seconds that each value holds."""
        return np.diff(self.times, append=self.end)

    def at(self, times: Floats) -> NDArray[np.number[Any]]:
        """The values at ``times``; the first or last one outside."""
        index = np.searchsorted(self.times, times, side="right") - 1
        return self.values[np.clip(index, 0, len(self.times) - 1)]

    def integral(self) -> float:
        """Value times seconds, over the whole."""
        return dot(self.values, self.durations)

    def mean(self) -> float:
        """Mean over time; NaN over no time."""
        length = self.end - self.begin
        return self.integral() / length if length > 0 else float("nan")

    def maximum(self) -> float:
        """The largest value that holds for any time at all."""
        held = self.values[self.durations > 0]
        return float(held.max()) if len(held) else float("nan")

    def between(self, begin: float, end: float) -> Steps:
        """The part from ``begin`` to ``end``, both inside."""
        inner = (self.times > begin) & (self.times < end)
        return Steps(
            times=np.concatenate(([begin], self.times[inner])),
            values=np.concatenate((self.at(np.array([begin])), self.values[inner])),
            end=max(begin, end),
        )

    def bin_means(self, bins: int) -> tuple[Floats, Floats]:
        """Exact means over ``bins`` equal spans: their ``bins + 1`` edges and their means.

        For drawing: no peak or gap is missed by sampling, it is only averaged.
        """
        edges = np.linspace(self.begin, self.end, bins + 1)
        points = np.append(self.times, self.end)
        area = np.concatenate(([0.0], np.cumsum(self.values * self.durations)))
        width = (self.end - self.begin) / bins
        if width <= 0:
            return edges, np.full(bins, self.values[0])
        return edges, np.diff(np.interp(edges, points, area)) / width


def dot(some: NDArray[np.number[Any]], others: NDArray[np.number[Any]]) -> float:
    """The sum of the products. Not by BLAS: its threads take more of the processors than they save, and its
    last digits go by how many there are."""
    return float(np.sum(some * others))


def common_times(*curves: Steps) -> Floats:
    """All moments at which one of the curves, which cover the same span, may change."""
    return np.unique(np.concatenate([c.times for c in curves]))


def smallest_present(times: Floats, begins: Floats, ends: Floats, sizes: Floats) -> Floats:
    """For each span [times[i], times[i+1]): the smallest size of all that are present; inf if none is.

    An item is present from its ``begin`` until its ``end``; both must be among ``times`` (an end may
    lie behind the last). A range-minimum table filled from its top row down: n log n, no loop over items.
    """
    count = len(times)
    lowest = np.full(count, np.inf)
    first = np.searchsorted(times, begins, side="left")
    behind = np.searchsorted(times, ends, side="left")
    shown = behind > first
    first, behind, sizes = first[shown], behind[shown], sizes[shown]
    if not len(first):
        return lowest
    # An item that covers n spans is the union of two rows of 2**level spans, level = floor(log2 n).
    level = np.frexp((behind - first).astype(np.float64))[1] - 1
    row = lowest
    for k in range(int(level.max()), -1, -1):
        here = level == k
        np.minimum.at(row, first[here], sizes[here])
        np.minimum.at(row, behind[here] - (1 << k), sizes[here])
        if k:
            half = 1 << (k - 1)
            lower = row.copy()
            lower[half:] = np.minimum(lower[half:], row[:-half])
            row = lower
    return row
