"""Whether the claim of a paper holds, by one rule for all reproductions.

A claim speaks of several points: of all, of most, of their mean, or of some. "Yes" is a statistical test of
just that, so that tables without any effect get it in at most 5 % of cases, however many points they have.

At least k of m points are better if ``(m - k + 1) p(k) <= 0.05``, with the k-th smallest of the points'
p-values: the partial conjunction of Y. Benjamini and R. Heller, "Screening for partial conjunction
hypotheses", Biometrics 64, 2008, in its form for points that depend on each other. With k = 1 it is the first
step of S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics
6, 1979; with k = m each point must be better by its own interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from headway.experiment.statistics import Interval, student

#: Of all intervals here, and how often a verdict may be wrong.
CONFIDENCE = 0.95
LEVEL = 1 - CONFIDENCE


class Of(StrEnum):
    """What a claim says of its points."""

    #: Each point is better.
    ALL = "all"
    #: More than half of the points are better.
    MOST = "most"
    #: The mean over the points is better.
    MEAN = "mean"
    #: At least one point is better, and none is worse.
    SOME = "some"


def verdict(improvements: Sequence[Interval], of: Of = Of.ALL) -> str:
    """Whether "better" holds of several points, each an improvement with its 95 % interval.

    "yes": significantly so, by the module's test. "in part": of ALL, some points are significantly better;
    of MOST, too few are significantly better, but more than half are by their means; of SOME, other points
    are significantly worse. Otherwise "no", also without any point.
    """
    if not improvements:
        return "no"
    if of is Of.MEAN:
        return _word(better_at(1, [pooled(improvements)]))
    some = better_at(1, improvements)
    if of is Of.SOME:
        worse = better_at(1, [Interval(-one.mean, one.half, one.count) for one in improvements])
        return _word(some and not worse, some)
    needed = len(improvements) if of is Of.ALL else len(improvements) // 2 + 1
    if of is Of.MOST:
        some = some and sum(one.mean > 0 for one in improvements) >= needed
    return _word(better_at(needed, improvements), some)


def held(checks: Sequence[bool], of: Of = Of.ALL) -> str:
    """Whether a claim holds of checks that chance has no part in: "in part" of ALL if some are true.

    Raises ValueError for a mean, which checks have not.
    """
    true = sum(checks)
    if of is Of.MEAN:
        raise ValueError("checks have no mean; expected all, most or some")
    if of is Of.MOST:
        return _word(2 * true > len(checks))
    return _word(true > 0 if of is Of.SOME else 0 < true == len(checks), true > 0)


def joined(*parts: str) -> str:
    """The verdict on a claim of several parts from theirs."""
    return parts[0] if len({*parts}) == 1 else "in part"


def agrees(published: float, measured: Interval) -> str:
    """Whether a figure is the published one: "yes" if its interval contains that and is known at least to
    that figure, for an interval that is wider than the figure itself agrees with everything."""
    return _word(measured.low <= published <= measured.high and measured.half <= abs(published))


def provided(effect: str, *details: str) -> str:
    """The verdict on an effect and on its details, which say nothing where the effect is not there."""
    return effect if effect == "no" else joined(effect, *details)


def size_verdict(published: float, measured: Interval) -> str:
    """How large an improvement is beside the published one, both in percent.

    "as published" if the confidence interval contains the published figure, else "smaller" or "larger",
    with the measured mean's share of it.
    """
    if measured.low <= published <= measured.high:
        return "as published"
    word = "smaller" if measured.mean < published else "larger"
    return f"{word}: {measured.mean / published:.2f} of it"


def better_at(least: int, improvements: Sequence[Interval]) -> bool:
    """Whether so many of the points are better, significantly."""
    doubts = sorted(doubt(one) for one in improvements)
    return (len(doubts) - least + 1) * doubts[least - 1] <= LEVEL


def doubt(improvement: Interval) -> float:
    """The two-sided p-value of an improvement, 1 if it is none: at most 0.05 where its interval is above 0.
    Values without any spread leave no doubt."""
    if not improvement.mean > 0 or improvement.half != improvement.half:
        return 1.0
    if improvement.half == 0:
        return 0.0
    from scipy import stats

    degrees = max(improvement.count - 1, 1)
    scale = improvement.half / student(0.5 + CONFIDENCE / 2, degrees)
    return float(2 * stats.t.sf(improvement.mean / scale, degrees))


def pooled(points: Sequence[Interval]) -> Interval:
    """The mean over points. Its interval is the mean of theirs, which is wide enough however they depend on
    each other: they usually have the same seeds."""
    count = len(points)
    mean, half = (sum(values) / count for values in zip(*((p.mean, p.half) for p in points), strict=True))
    return Interval(mean, half, min(point.count for point in points))


def _word(yes: bool, in_part: bool = False) -> str:
    return "yes" if yes else "in part" if in_part else "no"
