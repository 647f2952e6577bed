"""Of several dry runs that differ by what is drawn at random, the run that is most like all of them.

Latencies and faults are drawn, and where one job ends a little before another instead of after it, another
one may start: a single draw can be far from what is likely for some of the jobs. The run that is the nearest
to the middle of all is still a run, in which no processor is given twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from headway.results import RunResult


@dataclass(frozen=True)
class Middle:
    """Which run it is, and how much they differ."""

    seed: int
    #: Median over the jobs of the seconds by which a job's start differs from its middle in all runs; the
    #: typical run's.
    apart: float


class SeededRun(Protocol):
    """A run that depends on nothing but its seed."""

    def __call__(self, *, seed: int) -> RunResult: ...


def middle(run: SeededRun, seed: int, draws: int) -> Middle:
    """Of runs with the seeds ``seed`` to ``seed + draws - 1`` the nearest to the middle start of each job.

    Jobs that do not start in every run say nothing here.
    """
    seeds = range(seed, seed + draws)
    starts = [{job.job.id: job.start_time for job in run(seed=one).jobs} for one in seeds]
    always = [job for job in starts[0] if all(one.get(job) is not None for one in starts)]
    if not always:
        return Middle(seed, 0.0)
    table = np.array([[one[job] for job in always] for one in starts], dtype=float)
    off = np.abs(table - np.median(table, axis=0))
    nearest = int(np.argmin(off.mean(axis=1)))
    return Middle(seeds[nearest], float(np.median(np.median(off, axis=1))))
