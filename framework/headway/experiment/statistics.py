"""Means over seeds, with confidence intervals by Student's t."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class Interval:
    """A mean with its confidence interval ``mean - half`` to ``mean + half``."""

    mean: float
    #: NaN for fewer than two values.
    half: float
    count: int

    @property
    def low(self) -> float:
        return self.mean - self.half

    @property
    def high(self) -> float:
        return self.mean + self.half

    def __str__(self) -> str:
        return f"{self.mean:.4g} ± {self.half:.2g}" if self.count > 1 else f"{self.mean:.4g}"


def interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """The mean of independent values and its confidence interval."""
    data = np.asarray(values, np.float64)
    count = len(data)
    if not count:
        return Interval(float("nan"), float("nan"), 0)
    if count == 1:
        return Interval(float(data[0]), float("nan"), 1)
    scale = float(data.std(ddof=1)) / count**0.5
    return Interval(float(data.mean()), float(stats.t.ppf(0.5 + confidence / 2, count - 1)) * scale, count)


def paired(ours: Sequence[float], theirs: Sequence[float], confidence: float = 0.95) -> Interval:
    """The relative change from ``theirs`` to ``ours`` in percent, seed by seed (common random numbers)."""
    a, b = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        change = 100.0 * (a - b) / b
    return interval(change[np.isfinite(change)].tolist(), confidence)
