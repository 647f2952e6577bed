"""Runtimes in stages: the logarithm is uniform in each.

E. Medernach, "Workload Analysis of a Cluster in a Grid Environment", JSSPP 2005, section 4: the distribution
of a group's runtimes is a chain of straight lines over the logarithm of time; three stages fit Dteam, six
Biomed. The paper has no numbers and no way to find them. Ours: the knots are chosen among log-spaced
quantiles by dynamic programming on the squared error of the distribution function, for 1 to 8 stages, and it
is the smallest number of stages to which a further stage gains less than 10 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headway.errors import UserError

Floats = NDArray[np.float64]

#: Stages that are tried, and how much of the error a further stage must take away.
MOST_STAGES, LEAST_GAIN = 8, 0.1
#: Times among which knots are chosen, and points at which the error is measured.
_CANDIDATES, _POINTS = 60, 400
#: How far masses may be from 1 together.
_ROUNDING = 1e-5


@dataclass(frozen=True)
class StagedRuntimes:
    """Runtimes between ``knots`` (seconds, rising), ``masses`` the share of jobs of each stage."""

    knots: tuple[float, ...]
    masses: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.knots) < 2 or any(not 0 < a < b < math.inf for a, b in pairwise(self.knots)):
            raise UserError(f"runtimes: expected knots above 0 s that rise, found {list(self.knots)}")
        if len(self.masses) != len(self.knots) - 1:
            raise UserError(
                f"runtimes: expected {len(self.knots) - 1} masses for {len(self.knots)} knots, "
                f"found {len(self.masses)}"
            )
        total = sum(self.masses)
        if any(not mass >= 0 for mass in self.masses) or not abs(total - 1.0) <= _ROUNDING:
            raise UserError(f"runtimes: expected masses of 0 or more that are 1 together, found {total:g}")

    @property
    def mean(self) -> float:
        """Seconds."""
        return sum(
            mass * (b - a) / math.log(b / a)
            for mass, (a, b) in zip(self.masses, pairwise(self.knots), strict=True)
        )

    @property
    def second_moment(self) -> float:
        """Mean of the squares, seconds squared."""
        return sum(
            mass * (b * b - a * a) / (2.0 * math.log(b / a))
            for mass, (a, b) in zip(self.masses, pairwise(self.knots), strict=True)
        )

    @property
    def deviation(self) -> float:
        """Standard deviation, seconds."""
        return math.sqrt(max(self.second_moment - self.mean**2, 0.0))

    def shares(self) -> Floats:
        """The distribution function at each knot: 0 at the first, 1 at the last."""
        below = np.concatenate(([0.0], np.cumsum(self.masses)))
        return below / below[-1]

    def at(self, uniform: ArrayLike) -> Floats:
        """The runtimes (seconds) below which these shares of the jobs are."""
        found: Floats = np.exp(np.interp(np.asarray(uniform), self.shares(), np.log(self.knots)))
        return found

    def below(self, seconds: ArrayLike) -> Floats:
        """The share of jobs that run at most so long."""
        times = np.maximum(np.asarray(seconds, np.float64), self.knots[0])
        return np.interp(np.log(times), np.log(self.knots), self.shares())

    def draw(self, rng: np.random.Generator, count: int, repeat: float = 0.0) -> Floats:
        """Whole seconds, at least 1, of so many jobs in a row; with the chance ``repeat`` a job has the
        runtime of the job before."""
        found = np.maximum(np.rint(self.at(rng.random(count))), 1.0)
        if repeat > 0 and count:
            new = rng.random(count) >= repeat
            new[0] = True
            found = found[np.maximum.accumulate(np.where(new, np.arange(count), 0))]
        return found


def fitted(runtime: Floats, stages: int | None = None) -> StagedRuntimes:
    """The stages of runtimes (seconds; below 1 counts as 1); ``stages``: so many, not as few as will do.

    Raises :class:`UserError` without runtimes.
    """
    times = np.sort(np.maximum(runtime[np.isfinite(runtime)], 1.0))
    if not len(times):
        raise UserError("runtimes: expected jobs of known runtime, found none")
    lowest, highest = float(times[0]), float(times[-1])
    if lowest == highest:
        # All alike: as narrow as whole seconds are.
        return StagedRuntimes((max(lowest - 0.5, 0.5), lowest + 0.5), (1.0,))
    low = max(lowest - 0.5, 0.5)
    grid = np.linspace(math.log(low), math.log(highest), _POINTS)
    share = np.searchsorted(times, np.exp(grid), side="right") / len(times)
    share[0], share[-1] = 0.0, 1.0
    places = np.unique(np.linspace(0, _POINTS - 1, _CANDIDATES).astype(np.int64))
    # Quantiles beside, where most jobs are.
    quantiles = np.searchsorted(share, np.linspace(0.05, 0.95, 19))
    places = np.unique(np.concatenate((places, np.clip(quantiles, 0, _POINTS - 1))))
    chosen = _chains(grid, share, places)
    at = _stages_enough(chosen) if stages is None else min(stages, len(chosen))
    knots = chosen[at - 1][1]
    seconds = np.exp(grid[knots])
    return StagedRuntimes(tuple(seconds.tolist()), tuple(np.diff(share[knots]).tolist()))


def _stages_enough(chosen: Sequence[tuple[float, list[int]]]) -> int:
    for stages in range(1, len(chosen)):
        error, fewer = chosen[stages][0], chosen[stages - 1][0]
        if fewer <= 1e-12 or (fewer - error) / fewer < LEAST_GAIN:
            return stages
    return len(chosen)


def _chains(grid: Floats, share: Floats, places: NDArray[np.int64]) -> list[tuple[float, list[int]]]:
    """For 1, 2, ... stages the least squared error and the knots' places in the grid that have it."""
    count = len(places)
    error = np.full((count, count), np.inf)
    for first in range(count):
        for last in range(first + 1, count):
            a, b = int(places[first]), int(places[last])
            part = slice(a, b)
            line = share[a] + (share[b] - share[a]) * (grid[part] - grid[a]) / (grid[b] - grid[a])
            error[first, last] = float(((share[part] - line) ** 2).sum())
    best, back = error[0].copy(), np.zeros((MOST_STAGES, count), np.int64)
    found = []
    for stage in range(min(MOST_STAGES, count - 1)):
        if stage:
            total = best[:, None] + error
            back[stage] = np.argmin(total, axis=0)
            best = total[back[stage], np.arange(count)]
        if not math.isfinite(best[-1]):
            break
        chain, at = [count - 1], count - 1
        for step in range(stage, 0, -1):
            at = int(back[step, at])
            chain.append(at)
        found.append((float(best[-1]), [int(places[c]) for c in [0, *reversed(chain)]]))
    return found
