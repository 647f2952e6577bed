"""Means over seeds or batches, with confidence intervals by Student's t; skew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


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
    return Interval(float(data.mean()), student(0.5 + confidence / 2, count - 1) * scale, count)


#: Student's t of 30 batches at 95 %: SciPy takes longer to load than a small run takes, and a dry run does
#: without it.
_OF_BATCHES = {(0.975, 29): 2.045229642132703}


def student(quantile: float, degrees: int) -> float:
    """The quantile of Student's t with so many degrees of freedom."""
    known = _OF_BATCHES.get((quantile, degrees))
    if known is not None:
        return known
    from scipy import stats

    return float(stats.t.ppf(quantile, degrees))


def paired(ours: Sequence[float], theirs: Sequence[float], confidence: float = 0.95) -> Interval:
    """The relative change from ``theirs`` to ``ours`` in percent, seed by seed (common random numbers)."""
    a, b = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        change = 100.0 * (a - b) / b
    return interval(change[np.isfinite(change)].tolist(), confidence)


def share(hits: int, of: int) -> Interval:
    """The share of so many, with the 95 % interval of E. B. Wilson (Journal of the American Statistical
    Association 22, 1927), around whose middle it is given; raises ValueError for the share of none."""
    if of < 1:
        raise ValueError("expected the share of at least one")
    z = 1.959963984540054
    found, scale = hits / of, 1 + z * z / of
    half = z * (found * (1 - found) / of + z * z / (4 * of * of)) ** 0.5 / scale
    return Interval((found + z * z / (2 * of)) / scale, half, of)


#: Batches of a single long run, and how many jobs a long run has for each (Frachtenberg and Feitelson 2005,
#: pitfall 27).
BATCHES, BATCH_JOBS = 30, 5000


@dataclass(frozen=True)
class BatchInterval:
    """The mean of a run's batch means, with the confidence interval that takes them for independent."""

    interval: Interval
    #: Autocorrelation of neighbouring batch means.
    correlation: float

    @property
    def valid(self) -> bool:
        """Whether the batch means may pass for independent: their correlation is within 2 / sqrt(batches)."""
        return self.interval.count > 1 and abs(self.correlation) <= 2 / self.interval.count**0.5


@dataclass(frozen=True)
class Skew:
    """How far a mean is ruled by a few of its values. NaN: there is none."""

    mean: float
    median: float
    geometric: float
    #: Share of the sum that the largest 1 % of the values hold (at least one value).
    top: float


def batch_means(values: Sequence[float], batches: int = BATCHES) -> list[float]:
    """The means of so many equal batches, in order; what is left over at the end is left out. None at all
    of fewer values than batches."""
    size = len(values) // batches
    if not size:
        return []
    found: list[float] = (
        np.asarray(values[: size * batches], np.float64).reshape(batches, size).mean(1).tolist()
    )
    return found


def batch_interval(means: Sequence[float], confidence: float = 0.95) -> BatchInterval:
    """The interval of a run from its batch means; NaN for fewer than two."""
    data = np.asarray(means, np.float64)
    around = data - data.mean() if len(data) else data
    squares = float((around**2).sum())
    correlation = float((around[1:] * around[:-1]).sum()) / squares if squares > 0 else 0.0
    return BatchInterval(interval(means, confidence), correlation)


def skew(values: Sequence[float]) -> Skew:
    """Of values of which none is negative; a geometric mean only if all are positive."""
    data = np.sort(np.asarray(values, np.float64))
    if not len(data):
        return Skew(*[float("nan")] * 4)
    most = max(1, len(data) // 100)
    return Skew(
        mean=float(data.mean()),
        median=float(np.median(data)),
        geometric=float(np.exp(np.log(data).mean())) if data[0] > 0 else float("nan"),
        top=float(data[-most:].sum() / data.sum()) if data[-1] > 0 else float("nan"),
    )
