"""Whose jobs they are: runtimes, waits and arrivals of each group and each queue, and the machine's weeks.

The characterisation in E. Medernach, "Workload Analysis of a Cluster in a Grid Environment", JSSPP 2005,
sections 3 and 4. What was decided here:

- Deviations are sample deviations, and cv is the deviation over the mean.
- *Normalised waiting time*: the mean wait over the number of jobs times the mean runtime. The paper says that
  it does not depend on the number of jobs, which is false for few: work that is cut into n equal jobs on one
  processor gives (n - 1) / 2n. And it is divided by the number, so a group of few jobs looks badly served.
  Beside it stands the *flow ratio* (ours), all runtimes over all runtimes and waits, which has neither
  defect.
- *Failed* is the share of the jobs of known status that failed or were cancelled.
- *Quiet* is the share of 5-minute intervals, from the group's first job on and as far as they are whole, in
  which none of its jobs came; *busiest* the most jobs of one.
- *Weeks* are of seven days from the first submission on. A job's work counts in the week of its submission.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.workload.emulation import sizes
from headway.workload.trace import Column, Trace

Floats = NDArray[np.float64]
Row = dict[str, Any]

DAY, WEEK = 86400.0, 7 * 86400.0
#: Seconds in which arrivals are counted.
INTERVAL = 300.0
#: Weeks (a century) beyond which submit times are none, and weeks are not listed.
_MOST_WEEKS = 5218

_FIGURES = (
    "jobs", "share", "failed", "mean_runtime", "runtime_sd", "runtime_cv", "mean_wait", "wait_sd", "wait_cv",
    "processor_days", "normalised_wait", "flow_ratio", "mean_gap", "gap_sd", "gap_cv", "quiet", "busiest",
)  # fmt: skip

#: Table -> its columns.
COLUMNS = {
    "groups": ("group", *_FIGURES),
    "queues": ("queue", *_FIGURES),
    "weeks": ("week", "jobs", "processor_seconds", "load"),
}


def group_study(trace: Trace, processors: int | None) -> dict[str, list[Row]]:
    """The tables; jobs of no known group (or queue) are in none of its rows."""
    return {
        "groups": _rows(trace, Column.GROUP, "group", 1),
        "queues": _rows(trace, Column.QUEUE, "queue", 0),
        "weeks": _weeks(trace, processors),
    }


def normalised_wait(jobs: int, mean_wait: float, mean_runtime: float) -> float | None:
    """WT: dimensionless; None where nothing ran."""
    return mean_wait / (jobs * mean_runtime) if jobs * mean_runtime > 0 else None


def _rows(trace: Trace, column: Column, name: str, least: int) -> list[Row]:
    """One row for each number of ``column`` from ``least`` on, the numbers with the most jobs first."""
    numbers = trace.records[:, column]
    found, which, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    order = np.argsort(which.reshape(-1), kind="stable")
    parts = np.split(order, np.cumsum(counts)[:-1])
    rows = [
        {name: int(number), **_figures(trace.records[part], len(trace))}
        for number, part in zip(found.tolist(), parts, strict=True)
        if number >= least
    ]
    return sorted(rows, key=lambda row: -row["jobs"])


def _figures(records: Floats, all_jobs: int) -> Row:
    runtime = records[:, Column.RUNTIME]
    wait, size = records[:, Column.WAIT], sizes(records)
    ran, waited = runtime >= 0, records[:, Column.WAIT] >= 0
    status = records[:, Column.STATUS]
    known = (status == 0) | (status == 1) | (status == 5)
    both = ran & waited
    work = float((runtime * size)[ran & (size > 0)].sum())
    mean_runtime, runtime_sd, runtime_cv = _moments(runtime[ran])
    mean_wait, wait_sd, wait_cv = _moments(wait[waited])
    mean_gap, gap_sd, gap_cv = _moments(np.diff(records[:, Column.SUBMIT]))
    run, waits = float(runtime[both].sum()), float(wait[both].sum())
    normal = None
    if both.any():
        jobs = int(both.sum())
        normal = normalised_wait(jobs, waits / jobs, run / jobs)
    quiet, busiest = _intervals(records[:, Column.SUBMIT])
    return {
        "jobs": len(records),
        "share": len(records) / all_jobs,
        "failed": float(((status == 0) | (status == 5)).sum() / known.sum()) if known.any() else None,
        "mean_runtime": mean_runtime,
        "runtime_sd": runtime_sd,
        "runtime_cv": runtime_cv,
        "mean_wait": mean_wait,
        "wait_sd": wait_sd,
        "wait_cv": wait_cv,
        "processor_days": work / DAY,
        "normalised_wait": normal,
        "flow_ratio": run / (run + waits) if run + waits > 0 else None,
        "mean_gap": mean_gap,
        "gap_sd": gap_sd,
        "gap_cv": gap_cv,
        "quiet": quiet,
        "busiest": busiest,
    }


def _moments(values: Floats) -> tuple[float | None, float | None, float | None]:
    """Mean, deviation of a sample, and their ratio; None where there is none."""
    if not len(values):
        return None, None, None
    mean = float(values.mean())
    if len(values) < 2:
        return mean, None, None
    deviation = float(values.std(ddof=1))
    return mean, deviation, deviation / mean if mean > 0 else None


def _intervals(submit: Floats) -> tuple[float | None, int]:
    """The share of intervals without a job, and the most jobs of one."""
    since = np.floor((submit - submit[0]) / INTERVAL)
    whole = math.floor((float(submit[-1]) - float(submit[0])) / INTERVAL)
    busy, counts = np.unique(since, return_counts=True)
    quiet = 1.0 - float((busy < whole).sum()) / whole if whole > 0 else None
    return quiet, int(counts.max())


def _weeks(trace: Trace, processors: int | None) -> list[Row]:
    submit = trace.records[:, Column.SUBMIT]
    week = np.floor((submit - submit[0]) / WEEK).astype(np.int64)
    if week[-1] >= _MOST_WEEKS:
        return []
    runtime, size = trace.records[:, Column.RUNTIME], sizes(trace.records)
    work = np.where((runtime >= 0) & (size > 0), runtime * size, 0.0)
    jobs = np.bincount(week)
    used = np.bincount(week, weights=work)
    return [
        {
            "week": at,
            "jobs": int(jobs[at]),
            "processor_seconds": float(used[at]),
            "load": float(used[at] / (processors * WEEK)) if processors else None,
        }
        for at in range(len(jobs))
    ]
