"""The metrics of each class of jobs: short and narrow, long and narrow, short and wide, long and wide.

As in A. A. Chandio and others, "A comparative study on resource allocation and energy efficient job
scheduling strategies in large-scale parallel computing systems", 2014, section 5.2, figures 6 to 10: mean
queue time (our wait), mean response time (our turnaround), mean slowdown, and the slowdown ratio, which is
the mean response time over the mean runtime.

A job's length is what it ran for in this run: the limit, where it was killed at it, and longer than by the
workload on nodes that are slow or clocked down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.metrics.jobs import JobColumns
from headway.model.classes import CLASSES, ClassBounds

#: All jobs, and then the classes.
GROUPS = ("all", *CLASSES)

Floats = NDArray[np.float64]


def metrics_by_class(
    columns: JobColumns,
    bounds: ClassBounds,
    measured: Mapping[str, Floats],
    statistics: Callable[[Floats], dict[str, float | None]],
) -> dict[str, dict[str, Any]]:
    """For each of :data:`GROUPS`: how many jobs ran and ended, their slowdown ratio, and their metrics.

    ``measured`` are the per-job metrics by name. Only jobs that ran and ended have a class.
    """
    which = bounds.of(columns.processors, columns.runtime)
    everywhere = np.ones(len(which), np.bool_)
    found: dict[str, dict[str, Any]] = {}
    for name, here in zip(GROUPS, (everywhere, *(which == at for at in range(len(CLASSES)))), strict=True):
        found[name] = {
            "jobs": int((columns.finished & here).sum()),
            "slowdown_ratio": slowdown_ratio(columns, here),
            **{metric: statistics(values[here]) for metric, values in measured.items()},
        }
    return found


def slowdown_ratio(columns: JobColumns, which: NDArray[np.bool_]) -> float | None:
    """Mean turnaround over mean runtime of the jobs that ran and ended; None without any runtime."""
    ended = columns.finished & which
    runtime = float(columns.runtime[ended].sum())
    return float((columns.end - columns.submit)[ended].sum()) / runtime if runtime > 0 else None
