"""The rates of a user from the times of the user's jobs alone: no log holds logins.

E. Medernach, "Workload Analysis of a Cluster in a Grid Environment", JSSPP 2005, section 5. Two methods:

- *counts* (A, that of the paper's simulation): jobs over time stay as they are, which leaves the share of
  time logged on and lambda; the largest distance between the distribution of the number of jobs in 300 s and
  the model's is the smallest. The paper searches by hand; here a grid is searched, then the best place closer
  and closer. Where logins are much longer than 300 s, such numbers hardly tell how long they are.
- *silences* (B): R_0(t), the chance of no job in t seconds, at 60 times, equal steps of the logarithm from 1
  s on (logs have whole seconds) to a twentieth of the time; two exponentials are fitted by least squares, and
  give the rates. R_0 comes from windows side by side, as in the paper, each then the mean with its
  neighbours, or exactly, from all windows that there can be (ours).

What was decided here: a user's time goes from the first to the last job of the user, or is the whole log's.
The exponentials are fitted twice: freely, for what is said of the shape, and with the log's rate of jobs, for
generating, because a free fit loses the jobs that come within a second (``batch``: jobs a second that has
any). A user is Poisson-like if the times between jobs vary by less than 1.2. A user is also Poisson-like if a
single exponential is at most 0.01 further from R_0 at the worst place than two are and explains at least half
of the jobs. The second part is needed because, of a user that is seldom logged on, a single exponential tells
the logins very well, and none of the bursts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from headway.errors import UserError
from headway_plugins.grid.rates import Rates, TwoExponentials

Floats = NDArray[np.float64]

Method = Literal["silences", "counts"]
Estimator = Literal["exact", "tumbling"]

#: Seconds of the windows in which jobs are counted.
WINDOW = 300.0
#: Jobs below which nothing is fitted: the user counts as Poisson-like.
FEW = 20
#: A single exponential that is so much worse, or a variation below this: Poisson-like.
AS_GOOD, EVEN = 0.01, 1.2
#: Points of R_0, and the share of the time that its longest window has at most.
POINTS, LONGEST = 60, 1 / 20

#: Shares of time logged on, and rates of logging on, with which the search of method A begins.
_SHARES = np.array([0.005, 0.01, 0.02, 0.05, *np.arange(0.1, 0.91, 0.1), 0.95])
_LOGONS = np.geomspace(1e-7, 1e-2, 25)
#: Rates of the grid of method B, and places along a side of each closer grid.
_RATES, _CLOSER, _ROUNDS = 60, 9, 10
#: Places of the grid's first side from which it is searched: the fast exponential may weigh very little.
_STARTS = 8


@dataclass(frozen=True)
class Shape:
    """What R_0 looks like: two exponentials and a single exponential, with their largest errors."""

    two: TwoExponentials
    two_error: float
    #: A second.
    one: float
    one_error: float


@dataclass(frozen=True)
class UserFit:
    """What the times of a user's jobs say."""

    jobs: int
    #: Seconds that they are looked at for.
    duration: float
    #: Coefficient of variation of the times between jobs; NaN of fewer than 3 jobs.
    variation: float
    #: Jobs in a second that has any, mean.
    batch: float
    poisson: bool
    rates: Rates
    #: Method B; None of few jobs.
    shape: Shape | None = None
    #: Method A: the largest distance of the two distributions.
    distance: float | None = None

    @property
    def job_rate(self) -> float:
        """Jobs a second."""
        return self.jobs / self.duration


# ---------------------------------------------------------------------- R_0 of a log


def exact_silence(times: Floats, begin: float, end: float, t: Floats) -> Floats:
    """R_0 at each ``t`` (seconds): the share of all windows of that length within ``begin`` and ``end`` that
    have no job; ``times`` rise. NaN where there is no such window."""
    gaps = np.sort(np.diff(np.concatenate(([begin], times, [end]))))
    above = np.concatenate((np.cumsum(gaps[::-1])[::-1], [0.0]))
    at = np.searchsorted(gaps, t, side="right")
    free = above[at] - t * (len(gaps) - at)
    windows = end - begin - t
    return np.where(windows > 0, free / np.where(windows > 0, windows, 1.0), np.nan)


def tumbling_silence(times: Floats, begin: float, end: float, t: Floats) -> Floats:
    """The same from windows side by side; the last window, which is not whole, is left out."""
    found = np.full(len(t), np.nan)
    for at, length in enumerate(t.tolist()):
        windows = int((end - begin) // length)
        if windows:
            which = np.floor((times - begin) / length)
            found[at] = 1.0 - len(np.unique(which[which < windows])) / windows
    return found


def window_lengths(duration: float, longest: float | None = None) -> Floats:
    """The times (seconds) at which R_0 is looked at, rising."""
    most = duration * LONGEST if longest is None else longest
    return np.geomspace(1.0, max(most, 2.0), POINTS)


def silence_of(times: Floats, begin: float, end: float, t: Floats, estimator: Estimator) -> Floats:
    """R_0 of a log at each ``t``; of windows side by side the means of neighbours."""
    if estimator == "exact":
        return exact_silence(times, begin, end, t)
    found = tumbling_silence(times, begin, end, t)
    padded = np.concatenate((found[:1], found, found[-1:]))
    return (padded[:-2] + padded[1:-1] + padded[2:]) / 3.0


# ---------------------------------------------------------------------- fits


def fitted_shape(t: Floats, silence: Floats) -> Shape:
    """Two exponentials, and a single exponential, by least squares."""
    known = np.isfinite(silence)
    t, silence = t[known], silence[known]
    lowest, highest = 1e-3 / t[-1], 5.0 / t[0]
    rates = np.linspace(math.log(lowest), math.log(highest), _RATES)

    def two(first: Floats, second: Floats) -> tuple[Floats, Floats]:
        slow = np.exp(-np.exp(second)[:, None] * t)
        apart = np.exp(-np.exp(first)[:, None] * t)[:, None, :] - slow[None]
        rest = silence - slow
        norm = (apart**2).sum(-1)
        share = np.clip((apart * rest).sum(-1) / np.where(norm > 0, norm, 1.0), 0.0, 1.0)
        return ((rest - share[..., None] * apart) ** 2).sum(-1), share

    first, second = _closest(lambda a, b: two(a, b)[0], rates, rates)
    share = float(two(np.array([first]), np.array([second]))[1][0, 0])
    fast, slow = math.exp(first), math.exp(second)
    if fast < slow:
        fast, slow, share = slow, fast, 1.0 - share
    found = TwoExponentials(share, fast, slow)

    def one(rate: Floats, _: Floats) -> Floats:
        return ((np.exp(-np.exp(rate)[:, None] * t) - silence) ** 2).sum(-1)[:, None]

    single = math.exp(_closest(one, rates, np.zeros(1), starts=1)[0])
    return Shape(
        found,
        float(np.abs(found(t) - silence).max()),
        single,
        float(np.abs(np.exp(-single * t) - silence).max()),
    )


def of_rate(t: Floats, silence: Floats, job_rate: float) -> TwoExponentials:
    """Two exponentials by least squares whose rate of jobs is ``job_rate``, a second."""
    known = np.isfinite(silence)
    t, silence = t[known], silence[known]
    reach = np.linspace(0.0, math.log(1e7), _RATES)

    def error(above: Floats, below: Floats) -> Floats:
        fast, slow = job_rate * np.exp(np.abs(above)), job_rate * np.exp(-np.abs(below))
        share = _share(job_rate, fast[:, None], slow[None])[..., None]
        model = share * np.exp(-fast[:, None] * t)[:, None] + (1 - share) * np.exp(-slow[:, None] * t)[None]
        return ((model - silence) ** 2).sum(-1)

    above, below = _closest(error, reach, reach)
    fast, slow = job_rate * math.exp(abs(above)), job_rate * math.exp(-abs(below))
    return TwoExponentials(float(_share(job_rate, np.array(fast), np.array(slow))), fast, slow)


def _share(rate: float, fast: Floats, slow: Floats) -> Floats:
    apart = fast - slow
    return np.clip((rate - slow) / np.where(apart > 0, apart, 1.0), 0.0, 1.0)


def _closest(
    error: Callable[[Floats, Floats], Floats], first: Floats, second: Floats, starts: int | None = None
) -> tuple[float, float]:
    """Where ``error`` (a table of both values) is the least: on this grid, then closer and closer, in
    so many parts of its first side."""
    table = error(first, second)
    rows = np.array_split(np.arange(len(first)), min(_STARTS if starts is None else starts, len(first)))
    best = (math.inf, 0.0, 0.0)
    for part in rows:
        row, column = np.unravel_index(int(np.nanargmin(table[part])), table[part].shape)
        a, b = float(first[part[row]]), float(second[column])
        steps = [float(np.diff(side).max(initial=0.0)) for side in (first, second)]
        for _ in range(_ROUNDS):
            around = [
                at + step * np.linspace(-1, 1, _CLOSER) if step else np.array([at])
                for at, step in zip((a, b), steps, strict=True)
            ]
            found = error(*around)
            row, column = np.unravel_index(int(np.nanargmin(found)), found.shape)
            a, b = float(around[0][row]), float(around[1][column])
            best = min(best, (float(found[row, column]), a, b))
            steps = [step * 0.4 for step in steps]
    return best[1:]


def counted(times: Floats, begin: float, end: float) -> Floats:
    """The share of windows of 300 s with at most 0, 1, 2, ... jobs, to the largest number in a window."""
    windows = max(int((end - begin) // WINDOW), 1)
    which = ((times - begin) // WINDOW).astype(np.int64)
    per_window = np.bincount(which[which < windows], minlength=windows)
    return np.cumsum(np.bincount(per_window)) / windows


def by_counts(below: Floats, job_rate: float) -> tuple[Rates, float]:
    """Method A: the rates, and the distance from ``below``, which is as :func:`counted` gives it."""

    def rates(share: float, logon: float) -> Rates:
        return Rates(logon, logon * (1.0 - share) / share, job_rate / share)

    def distance(found: Rates) -> float:
        model = np.cumsum(found.counts(WINDOW, len(below) - 1)[:-1])
        return float(np.abs(model - below).max())

    def table(logit: Floats, log_logon: Floats) -> Floats:
        return np.array([
            [distance(rates(1.0 / (1.0 + math.exp(-x)), math.exp(y))) for y in log_logon] for x in logit
        ])  # fmt: skip

    shares = _SHARES[job_rate / _SHARES * WINDOW < 1e6]
    if not len(shares):
        raise UserError(f"counts: expected fewer than 1 million jobs in 300 s, found {job_rate:g} a second")
    x, y = _closest(table, np.log(shares / (1.0 - shares)), np.log(_LOGONS), starts=1)
    found = rates(1.0 / (1.0 + math.exp(-x)), math.exp(y))
    return found, distance(found)


# ---------------------------------------------------------------------- a user


def fit_user(
    times: Floats,
    begin: float | None = None,
    end: float | None = None,
    *,
    method: Method = "silences",
    estimator: Estimator = "exact",
) -> UserFit:
    """The rates of a user whose jobs came at ``times`` (seconds, rising).

    ``begin`` and ``end``: what is looked at; default: from the first to the last job. Raises
    :class:`UserError` without jobs, for times that are none, and where there is no time between the first and
    the last.
    """
    if not len(times):
        raise UserError("arrivals: expected jobs, found none")
    if not np.isfinite(times).all() or (np.diff(times) < 0).any():
        raise UserError("arrivals: expected times in seconds that rise")
    begin = float(times[0]) if begin is None else begin
    end = float(times[-1]) if end is None else end
    if not begin <= times[0] <= times[-1] <= end or not end > begin:
        raise UserError(
            f"arrivals: expected jobs over some time within {begin:g} to {end:g} s, found them from "
            f"{times[0]:g} to {times[-1]:g} s"
        )
    duration = end - begin
    rate = len(times) / duration
    gaps = np.diff(times)
    even = len(gaps) < 2 or not gaps.mean() > 0
    variation = math.nan if even else float(gaps.std(ddof=1) / gaps.mean())
    batch = len(times) / len(np.unique(np.floor(times)))
    flat = Rates(rate, 0.0, rate)
    # Below that no window of R_0 is longer than a few seconds.
    if len(times) < FEW or duration * LONGEST < 4.0 or even:
        return UserFit(len(times), duration, variation, batch, True, flat)
    t = window_lengths(duration)
    silence = silence_of(times, begin, end, t, estimator)
    shape = fitted_shape(t, silence)
    as_good = shape.one_error <= shape.two_error + AS_GOOD and shape.one >= rate / 2.0
    poisson = variation < EVEN or as_good
    if poisson:
        return UserFit(len(times), duration, variation, batch, True, flat, shape)
    if method == "counts":
        found, distance = by_counts(counted(times, begin, end), rate)
        return UserFit(len(times), duration, variation, batch, False, found, shape, distance)
    found = Rates.of_silence(of_rate(t, silence, rate))
    return UserFit(len(times), duration, variation, batch, False, found, shape)
