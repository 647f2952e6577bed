"""Which jobs of a run are measured, and whether the machine could keep up with them.

After E. Frachtenberg and D. G. Feitelson, "Pitfalls in parallel job scheduling evaluation", JSSPP 2005,
pitfalls 25, 28 and 29, which ask for the exclusion of saturated points, of the start and of the end, and
give no procedure. What was decided here:

- *Warm-up*: the marginal standard error rule on means of five (K. P. White, M. J. Cobb and S. C. Spratt, "A
  comparison of five steady-state truncation heuristics for simulation", WSC 2000), and at least 5 % of the
  jobs.
- *Cool-down*: the measured jobs are a fixed set, all of which are waited for; it ends where 99 % of it had
  ended when the last job was submitted. To count only what had ended by then would leave out the large jobs.
- *Saturation*: by the work that waits when submissions end (the *queued deficit*, a share of what the
  machine could do meanwhile), because the difference of offered and achieved load holds the running jobs'
  remainder too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Of all jobs, at least this share is warm-up.
LEAST_WARM_UP = 0.05
#: Of the measured jobs, this share must have ended by the last submission.
ENDED = 0.99
#: Waits that make a mean of the warm-up rule.
GROUP = 5
#: Batches whose means are looked at for a rise.
RISING_BATCHES = 10
#: Queued deficit from which a run is saturated, saturated if its waits rise too, and suspect.
SATURATED, SATURATED_IF_RISING, SUSPECT = 0.05, 0.02, 0.01
#: One-sided p below which the waits rise.
RISES = 0.01


@dataclass(frozen=True)
class WarmUp:
    """How many jobs (or waits) the rule cuts off."""

    jobs: int
    #: As many as the rule may cut off at most: there is no steady state.
    half: bool


@dataclass(frozen=True)
class Rise:
    """Kendall's rank correlation of batch means with time, and its one-sided p value."""

    tau: float
    p: float


@dataclass(frozen=True)
class Window:
    """The jobs that are measured, by order of submission: from ``first`` up to before ``last``."""

    first: int
    last: int
    #: The waits have no steady state by the warm-up rule.
    unsteady: bool = False

    @property
    def jobs(self) -> int:
        return max(0, self.last - self.first)


def mser5_statistics(waits: Floats) -> Floats:
    """For 0, 1, ... means of five cut off, at most half of them: the sum of squares around the mean of the
    others, over the square of their number."""
    groups = len(waits) // GROUP
    means = np.asarray(waits[: groups * GROUP], np.float64).reshape(groups, GROUP).mean(axis=1)
    # Sums over what is left, from the end; around the overall mean, so that nothing is lost by cancellation.
    centred = means - (means.mean() if groups else 0.0)
    left = np.arange(groups, 0, -1)
    sums, squares = np.cumsum(centred[::-1])[::-1], np.cumsum((centred**2)[::-1])[::-1]
    found: Floats = (squares - sums**2 / left) / left**2
    return np.maximum(found[: groups // 2 + 1], 0.0)


def mser5(waits: Floats) -> WarmUp:
    """The warm-up of waits in order of submission; none of fewer than ten."""
    found = mser5_statistics(waits)
    if len(found) < 2:
        return WarmUp(0, False)
    # First on ties, also where they differ by rounding.
    cut = int(np.flatnonzero(found <= found.min() + 1e-12 * (1.0 + found.max()))[0])
    return WarmUp(cut * GROUP, cut == len(found) - 1)


def automatic_warm_up(waits: Floats) -> WarmUp:
    """The larger of :func:`mser5` and 5 % of the jobs, rounded up."""
    found = mser5(waits)
    return WarmUp(max(found.jobs, math.ceil(LEAST_WARM_UP * len(waits))), found.half)


def automatic_cool_down(ends: Floats, first: int, last_submission: float) -> int:
    """One past the last measured job: the most jobs from ``first`` on of which 99 % had ended at
    ``last_submission``. ``ends``: NaN for jobs that never ended."""
    ended = np.cumsum(ends[first:] <= last_submission)
    enough = np.flatnonzero(ended >= ENDED * np.arange(1, len(ended) + 1))
    return first + (int(enough[-1]) + 1 if len(enough) else 0)


def rise(values: Floats, batches: int = RISING_BATCHES) -> Rise:
    """Whether the means of so many equal batches rise (Kendall, one-sided; exact without ties).

    NaN for fewer values than batches, or equal means. As ``scipy.stats.kendalltau``, which takes longer to
    load than a small run takes.
    """
    size = len(values) // batches
    if not size:
        return Rise(float("nan"), float("nan"))
    means = np.asarray(values[: size * batches], np.float64).reshape(batches, size).mean(axis=1)
    if (means == means[0]).all():
        return Rise(float("nan"), float("nan"))
    pairs = batches * (batches - 1) // 2
    signs = np.sign(means[None, :] - means[:, None])[np.triu_indices(batches, 1)]
    rising = int(signs.sum())
    tied = pairs - int(np.abs(signs).sum())
    tau = rising / math.sqrt(pairs * (pairs - tied))
    if not tied:
        falling = (pairs - rising) // 2
        return Rise(tau, sum(_with_inversions(batches)[: falling + 1]) / math.factorial(batches))
    ties = np.unique(means, return_counts=True)[1]
    variance = 2 * pairs * (2 * batches + 5) - (ties * (ties - 1) * (2 * ties + 5)).sum()
    return Rise(tau, math.erfc(rising / math.sqrt(float(variance) / 18) / math.sqrt(2)) / 2)


def _with_inversions(count: int) -> list[int]:
    """How many orders of so many values have 0, 1, ... pairs that fall."""
    found = [1]
    for size in range(2, count + 1):
        # The next value stands before 0 to size - 1 of the others.
        longer = [0] * (len(found) + size - 1)
        for at, orders in enumerate(found):
            for more in range(size):
                longer[at + more] += orders
        found = longer
    return found


def saturation(deficit: float, p: float) -> str:
    """ "ok", "suspect" or "saturated", of a run with this queued deficit and p value of a rise (NaN:
    none)."""
    if deficit >= SATURATED or (deficit >= SATURATED_IF_RISING and p <= RISES):
        return "saturated"
    return "suspect" if deficit >= SUSPECT else "ok"
