"""What the paper on AnthillSched measures: five figures of a queue in which one job runs at a time.

L. F. Goes and others: AnthillSched. JSSPP 2005, section 4, equations (1) to (5). Decisions: the total time
of a workload is from the first arrival to the last end; slowdown is response over run time (its formula is
lost in the text that was at hand). The paper's confidence intervals follow the normal distribution,
over ten workloads; :func:`normal_interval` gives them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: What 95 % of a normal distribution lies within, in standard deviations.
NORMAL = 1.959963984540054


@dataclass(frozen=True)
class Figures:
    """A workload's figures, seconds all but the slowdown; means are over jobs."""

    #: (1) All run times; (2) the time in which nothing ran.
    execution: float
    idle: float
    #: (3), (4), (5)
    wait: float
    response: float
    slowdown: float


def fcfs_waits(arrival: Floats, run: Floats) -> Floats:
    """Seconds that each job waits where one runs at a time, in order of arrival."""
    done = np.cumsum(run)
    start = np.maximum.accumulate(arrival - (done - run)) + (done - run)
    waits: Floats = np.maximum(start - arrival, 0.0)
    return waits


def figures(arrival: Floats, wait: Floats, run: Floats) -> Figures:
    """The figures of jobs that arrived, waited and ran so (seconds). Raises ValueError if there are none."""
    if not len(run):
        raise ValueError("expected at least 1 job, found none")
    response = wait + run
    execution = float(run.sum())
    total = float((arrival + response).max() - arrival.min())
    with np.errstate(divide="ignore", invalid="ignore"):
        slowdown = response / run
    return Figures(
        execution, total - execution, float(wait.mean()), float(response.mean()), float(slowdown.mean())
    )


def normal_interval(mean: float, deviation: float, count: int) -> tuple[float, float]:
    """The 95 % confidence interval of a mean over so many workloads with this standard deviation."""
    half = NORMAL * deviation / count**0.5
    return mean - half, mean + half
