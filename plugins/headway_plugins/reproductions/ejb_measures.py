"""What the experiments on elastic job bundling measure: a trace's course, before against after.

F. Liu, J. B. Weissman: Elastic Job Bundling: An Adaptive Resource Request Strategy for Large-Scale Parallel
Applications. SC 2015, section 6.

Two intervals stand beside a change. The paper's takes the differences of single jobs for independent (1.96
standard errors of their mean). They are not: jobs that are submitted into the same full week wait together.
So there is an interval over weeks too, and that interval tells what holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from headway.emulation import emulate
from headway.experiment.statistics import Interval
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig
from headway.results import RunResult
from headway.workload import TraceJob, read_swf, scale_arrivals, trace_jobs
from headway.workload.trace import Column
from headway_plugins.bundling.figures import fragmentation

Floats = NDArray[np.float64]

#: The smallest job that is elastic, processors.
LEAST = 8
#: Seconds.
WEEK = 7 * 86400.0


@dataclass(frozen=True)
class Course:
    """What became of the jobs of a trace, as columns in order of submission. Times are seconds."""

    submit: Floats
    start: Floats
    end: Floats
    processors: Floats
    elastic: NDArray[np.bool_]
    #: Processors that were idle while a job waited, mean.
    fragmentation: float

    @property
    def measures(self) -> dict[str, Floats]:
        return {
            "turnaround": self.end - self.submit,
            "wait": self.start - self.submit,
            "run time": self.end - self.start,
        }


def load(path: Path, limit: int | None = None, load: float = 1.0) -> tuple[list[TraceJob], int]:
    """A trace's jobs, the first ``limit`` of them, and the processors of its machine; ``load``: factor on
    what it is offered, by the times between the arrivals."""
    trace = read_swf(path)
    if load != 1.0:
        trace = scale_arrivals(trace, 1 / load)
    records = trace.records.copy()
    # What ran for no time, or for an unknown one.
    runtimes = records[:, Column.RUNTIME]
    runtimes[runtimes <= 0] = 1.0
    size = trace.max_processors
    assert size is not None
    jobs, _ = trace_jobs(replace(trace, records=records), size, limit=limit)
    cut = [(job, job.job.request.walltime) for job in jobs]
    return [msgspec.structs.replace(job, runtime=min(job.runtime, most)) for job, most in cut], size


def run_all(jobs: Sequence[TraceJob], processors: int, policy: str) -> Course:
    """A whole trace under a policy."""
    catalogue = Catalogue()
    configs = catalogue.enabled([PluginConfig(policy, {})])
    result: RunResult = emulate(ClusterDescription.flat(processors), jobs, configs, catalogue, label=policy)

    def column(values: Any) -> Floats:
        return np.array([np.nan if value is None else value for value in values], np.float64)

    submit = column(job.job.submit_time for job in result.jobs)
    start = column(job.start_time for job in result.jobs)
    size = column(job.job.request.processors for job in result.jobs)
    bundled = np.array([bool(job.members) for job in result.jobs])
    first = float(submit[len(submit) // 100])
    return Course(
        submit, start, column(job.end_time for job in result.jobs), size,
        bundled | ((start > submit) & (size >= LEAST)),
        fragmentation(result, first, float(submit[-1])),
    )  # fmt: skip


def counted(*courses: Course) -> NDArray[np.bool_]:
    """The jobs that count: neither of the first 1 % nor ended after the last arrival."""
    submit = courses[0].submit
    among = np.arange(len(submit)) >= len(submit) // 100
    for course in courses:
        among &= course.end <= submit[-1]
    return among


def change(before: Floats, after: Floats) -> Interval:
    """The change of the mean in percent, with the paper's interval of the mean difference."""
    difference, mean = after - before, float(before.mean())
    if not mean or len(before) < 2:
        return Interval(0.0, 0.0, len(before))
    half = 1.96 * float(difference.std(ddof=1)) / len(before) ** 0.5
    return Interval(100 * float(difference.mean()) / mean, abs(100 * half / mean), len(before))


def change_by_weeks(before: Floats, after: Floats, submit: Floats) -> Interval:
    """The change of the mean in percent, with its interval over the weeks of submission (seconds): that of
    the ratio of their sums. The half is NaN for fewer than two weeks."""
    difference, mean = after - before, float(before.mean())
    weeks = np.unique((submit - submit[0]) // WEEK, return_inverse=True)[1]
    share = float(difference.mean()) / mean if mean else 0.0
    sums = np.bincount(weeks, difference) - share * np.bincount(weeks, before)
    count = len(sums)
    if count < 2 or not mean:
        return Interval(100 * share, float("nan"), count)
    from scipy import stats

    error = float(np.sqrt((sums**2).sum() * count / (count - 1))) / (mean * len(before))
    return Interval(100 * share, 100 * float(stats.t.ppf(0.975, count - 1)) * error, count)


def opposite(found: Interval) -> Interval:
    return Interval(-found.mean, found.half, found.count)


def inversions(starts: Floats) -> int:
    """Pairs of jobs in which the later submitted job starts first; ``starts`` in order of submission."""
    rank = np.unique(starts, return_inverse=True)[1].tolist()
    size = max(rank, default=0) + 2
    tree, count = [0] * (size + 1), 0
    for seen, value in enumerate(rank):
        below, at = 0, value + 1
        while at:
            below += tree[at]
            at &= at - 1
        count += seen - below
        at = value + 1
        while at <= size:
            tree[at] += 1
            at += at & -at
    return count


def percent(found: Interval, by_week: Interval | None = None) -> str:
    """A change in words; with its half over weeks, if there is one."""
    weeks = f" (by weeks ± {by_week.half:.1f})" if by_week is not None else ""
    return f"{found.mean:+.1f} ± {found.half:.1f}{weeks} %"


def mean(values: Floats) -> float:
    """The mean; NaN of nothing."""
    return float(values.mean()) if len(values) else float("nan")
