"""How bursty arrivals are, whether one user flooded a log, and how estimates relate to runtimes.

The measures of the pitfalls 4, 5 and 15 in E. Frachtenberg and D. G. Feitelson, "Pitfalls in parallel job
scheduling evaluation", JSSPP 2005; flurries as in D. Tsafrir and D. G. Feitelson, "Instability in parallel
job scheduling simulation: the role of workload flurries", IPDPS 2006. The exact definitions are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

WEEK = 7 * 86400.0
#: A user's jobs in one week, over the jobs of all users in the median week, from which they are a flurry.
FLURRY = 3.0
#: Of the median week, weeks with fewer than this share of its jobs are not weeks of normal use.
LEAST_WEEK = 0.2
#: Width of the bins of ln(estimate / runtime).
RATIO_BIN = 0.02


class Flurry(NamedTuple):
    """What the busiest user of a week submitted."""

    user: str
    #: From 0, weeks of seven days since the first submission.
    week: int
    jobs: int
    #: Of all users in that week, and in the median week.
    all_jobs: int
    median_week: float

    @property
    def ratio(self) -> float:
        """Over the median week's jobs."""
        return self.jobs / self.median_week


def gap_variation(submit: Floats) -> float:
    """Coefficient of variation of the times between submissions (in order, seconds); 1 of a Poisson
    process. NaN for fewer than three jobs or no time between them."""
    gaps = np.diff(submit)
    mean = gaps.mean() if len(gaps) > 1 else 0.0
    return float(gaps.std(ddof=1) / mean) if mean > 0 else float("nan")


def dispersion(submit: Floats, seconds: float) -> float:
    """Index of dispersion: variance over mean of the submissions in whole bins of so many seconds from the
    first one; 1 of a Poisson process. NaN for fewer than two bins."""
    since = submit - submit[0] if len(submit) else submit
    bins = int(since[-1] // seconds) if len(since) else 0
    if bins < 2:
        return float("nan")
    # Of the bins that hold something, because a trace with impossible times has very many others.
    _, counts = np.unique(since[since < bins * seconds] // seconds, return_counts=True)
    mean = counts.sum() / bins
    return float((float((counts.astype(np.float64) ** 2).sum()) - bins * mean**2) / (bins - 1) / mean)


def largest_flurry(submit: Floats, users: Sequence[str]) -> Flurry | None:
    """The user and week with the most jobs; it is a flurry if its ratio is above :data:`FLURRY`.

    Jobs without a user ("") count among all. None without users.
    """
    if not any(users):
        return None
    names, who = np.unique(np.asarray(users, dtype=object).astype(str), return_inverse=True)
    return flurry_of(submit, names.tolist(), who)


def flurry_of(submit: Floats, names: Sequence[str], who: NDArray[np.intp]) -> Flurry | None:
    """As :func:`largest_flurry`, of users whose names are numbered."""
    known = np.array([bool(name) for name in names], np.bool_)[who]
    if not known.any():
        return None
    week = np.floor((submit - submit[0]) / WEEK)
    weeks, in_week, counts = np.unique(week, return_inverse=True, return_counts=True)
    normal = counts[counts >= LEAST_WEEK * np.median(counts)]
    pairs, jobs = np.unique(who[known] * len(weeks) + in_week[known], return_counts=True)
    most = int(jobs.argmax())
    user, at = divmod(int(pairs[most]), len(weeks))
    return Flurry(
        str(names[user]), int(weeks[at]), int(jobs[most]), int(counts[at]), float(np.median(normal))
    )


def exact_share(runtime: Floats, estimate: Floats) -> float:
    """Share of jobs whose runtime is their estimate; NaN of none."""
    return float((runtime == estimate).mean()) if len(runtime) else float("nan")


def estimate_concentration(runtime: Floats, estimate: Floats) -> float:
    """Largest share of jobs whose estimate is the same multiple of the runtime (at least 1 s): one bin of
    0.02 of the logarithm; NaN of none."""
    here = estimate > 0
    if not here.any():
        return float("nan")
    ratio = np.log(estimate[here] / np.maximum(runtime[here], 1.0))
    # Bins around the multiples of the width, so that exact multiples do not lie on a border.
    _, counts = np.unique(np.rint(ratio / RATIO_BIN), return_counts=True)
    return float(counts.max() / len(ratio))
