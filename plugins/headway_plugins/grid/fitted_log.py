"""All users of a log, or all its groups, each fitted alone (:mod:`.estimation`), and their jobs' runtimes.

Sorted by their rates of jobs, users lie on a straight line in log space, says the paper of its site's; the
slope is fitted to the logarithms by least squares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headway.errors import UserError
from headway.workload import Column, Trace
from headway_plugins.grid.estimation import Estimator, Method, UserFit, fit_user
from headway_plugins.grid.runtimes import StagedRuntimes, fitted

Floats = NDArray[np.float64]

#: Jobs of known runtime from which a group has runtimes of its own.
ENOUGH = 100


@dataclass(frozen=True)
class FittedLog:
    """What a log says of its users."""

    #: By numbers of user and group (-1: not known); by group alone, the user has the group's number.
    fits: dict[tuple[int, int], UserFit]
    runtimes: StagedRuntimes
    group_runtimes: dict[int, StagedRuntimes]
    #: Jobs of users that are not fitted.
    left_out: int
    #: Factor from each rate to the next, and how well that fits; None of fewer than three users.
    slope: float | None
    r2: float


def fit_log(
    trace: Trace,
    *,
    by: str = "user",
    method: Method = "silences",
    estimator: Estimator = "exact",
    whole_log: bool = False,
) -> FittedLog:
    """Fit each user's, or each group's, jobs; ``whole_log``: over its time instead of their own.

    A log that knows no users (or groups) is a single user's. Raises :class:`UserError` for a log without
    jobs, with impossible times, or without any time between jobs.
    """
    if not len(trace):
        raise UserError(f"{trace.path}: expected jobs, found none")
    submit = trace.records[:, Column.SUBMIT]
    begin, end = float(submit[0]), float(submit[-1])
    if not (math.isfinite(begin) and math.isfinite(end) and end > begin):
        raise UserError(f"{trace.path}: expected jobs over some time, found them from {begin:g} to {end:g} s")
    user = trace.records[:, Column.USER].astype(np.int64)
    group = trace.records[:, Column.GROUP].astype(np.int64)
    who = group if by == "group" else user
    if not (who > 0).any():
        who = np.ones(len(who), np.int64)
    fits: dict[tuple[int, int], UserFit] = {}
    left_out = int((who <= 0).sum())
    for number in np.unique(who[who > 0]).tolist():
        own = who == number
        times = submit[own]
        # A user of several groups has the group of most of the user's jobs.
        groups, counts = np.unique(group[own], return_counts=True)
        key = (number, int(groups[np.argmax(counts)]) if groups[np.argmax(counts)] > 0 else -1)
        if not whole_log and times[-1] <= times[0]:
            left_out += len(times)
            continue
        borders = (begin, end) if whole_log else (None, None)
        fits[key] = fit_user(times, *borders, method=method, estimator=estimator)
    if not fits:
        raise UserError(f"{trace.path}: expected a user with time between two jobs, found no such user")
    runtime = trace.records[:, Column.RUNTIME]
    runtime = np.where(runtime >= 0, runtime, np.nan)
    known = np.isfinite(runtime)
    own_runtimes = {
        number: fitted(runtime[group == number])
        for number in np.unique(group[group > 0]).tolist()
        if (known & (group == number)).sum() >= ENOUGH
    }
    slope, r2 = _line(np.array([one.job_rate for one in fits.values()]))
    return FittedLog(fits, fitted(runtime), own_runtimes, left_out, slope, r2)


def _line(rates: Floats) -> tuple[float | None, float]:
    """exp of the slope of the logarithms of the rates, sorted, over their ranks; and R squared."""
    if len(rates) < 3:
        return None, math.nan
    logs, rank = np.log(np.sort(rates)[::-1]), np.arange(len(rates), dtype=np.float64)
    slope, start = np.polyfit(rank, logs, 1)
    spread = float(((logs - logs.mean()) ** 2).sum())
    rest = float(((logs - start - slope * rank) ** 2).sum())
    return math.exp(slope), 1.0 - rest / spread if spread > 0 else 1.0
