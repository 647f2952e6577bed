"""Means over jobs that depend on each other, with intervals.

Jobs that wait for the same processors wait together, so they are no independent values. As for a single
long run (:mod:`headway.experiment.statistics`), an interval is that of the means of batches: as many equal
batches, in order of submission, as leave neighbours uncorrelated, of :data:`BATCHES`. The emulation's own
chance (which latencies were drawn) is added: a real run would be one more draw, so its
variance is ``s² (1 + 1 / draws)``.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from headway.experiment.statistics import batch_interval, batch_means, student

Floats = NDArray[np.float64]

#: How many batches are tried, and how many jobs each has at least.
BATCHES, LEAST = (30, 20, 15, 10), 10
#: Fewer jobs than this have no interval.
FEWEST = BATCHES[-1] * LEAST


class Estimate(msgspec.Struct, frozen=True):
    """A mean with its 95 % interval. None: there is none."""

    mean: float | None
    low: float | None = None
    high: float | None = None
    #: Neighbouring batches are correlated, however few there are: the interval is too narrow.
    correlated: bool = False

    @property
    def half(self) -> float | None:
        """Half of the interval's width."""
        return None if self.high is None or self.low is None else (self.high - self.low) / 2


class Compared(msgspec.Struct, frozen=True):
    """The same quantity of the batch system's schedule and of headway's, and headway's less the batch
    system's, job by job."""

    system: Estimate
    headway: Estimate
    difference: Estimate


def compared(system: Floats, draws: Sequence[Floats]) -> Compared:
    """Of values a job, in order of submission, none of them NaN; ``draws``: headway's, emulation by
    emulation."""
    ours = np.mean(draws, axis=0) if len(system) else system
    chance = spread([float(draw.mean()) for draw in draws]) if len(system) else 0.0
    return Compared(estimate(system), estimate(ours, chance), estimate(ours - system, chance))


def estimate(values: Floats, chance: float = 0.0) -> Estimate:
    """The mean of values in order of submission; ``chance``: half of the interval of what was drawn."""
    count = len(values)
    if not count:
        return Estimate(None)
    mean = float(values.mean())
    if count < FEWEST:
        return Estimate(mean)
    for batches in BATCHES:
        if count // batches < LEAST:
            continue
        found = batch_interval(batch_means(values.tolist(), batches))
        if found.valid:
            break
    half = float(np.hypot(found.interval.half, chance))
    return Estimate(mean, mean - half, mean + half, not found.valid)


def over_time(blocks: Floats, chance: float = 0.0) -> Estimate:
    """The mean of values of equal spans of time, in order."""
    values = blocks[~np.isnan(blocks)]
    if not len(values):
        return Estimate(None)
    mean = float(values.mean())
    if len(values) < BATCHES[-1]:
        return Estimate(mean)
    found = batch_interval(values.tolist())
    half = float(np.hypot(found.interval.half, chance))
    return Estimate(mean, mean - half, mean + half, not found.valid)


def spread(means: Sequence[float]) -> float:
    """Half of the 95 % interval in which one more draw lies; 0 for a single draw, of which that is not
    known."""
    count = len(means)
    if count < 2:
        return 0.0
    deviation = float(np.std(means, ddof=1))
    return student(0.975, count - 1) * deviation * (1 + 1 / count) ** 0.5
