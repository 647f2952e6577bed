"""The metrics of each pool's jobs, where a cluster has several pools.

A job counts in the pool that it ran in, one that never ran in the pool that it was sent to. So each job
counts once, and the processor-seconds of the pools add up to the run's work (:mod:`.system`). Nodes that
pools share are processors of each of them: what a pool's own jobs used of its processors is its
*utilisation*, and the utilisations of pools that share nodes do not add up to the machine's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.metrics.jobs import JobColumns, idle_seconds, occupations
from headway.results import RunResult

Floats = NDArray[np.float64]


def metrics_by_pool(
    result: RunResult,
    columns: JobColumns,
    begin: float,
    last: float,
    measured: Mapping[str, Floats],
    statistics: Callable[[Floats], dict[str, float | None]],
) -> dict[str, dict[str, Any]]:
    """For each pool, in the cluster's order: its jobs, how many of them ran to their end, its processors,
    the processor-seconds that its jobs had, its utilisation from ``begin`` to ``last`` (seconds, absolute:
    as in the run), and their metrics.

    ``measured`` are the per-job metrics by name. Empty where the cluster has one pool.
    """
    pools = result.cluster.pool_sizes()
    if len(pools) < 2:
        return {}
    names = np.array([job.pool or job.job.pool for job in result.jobs], dtype=object)
    rows, start, end, processors = occupations(result, columns)
    # Some ran before the run began (a copy of a live queue).
    held = np.where(np.isnan(end), last, end) - np.maximum(start, begin)
    used: Floats = np.bincount(rows, held * processors, len(names)).astype(np.float64)
    used -= idle_seconds(result, columns) * columns.allocated
    found: dict[str, dict[str, Any]] = {}
    for name, count in pools.items():
        here = names == name
        seconds, most = max(0.0, float(used[here].sum())), count * (last - begin)
        found[name] = {
            "jobs": int(here.sum()),
            "finished": int((columns.finished & here).sum()),
            "processors": count,
            "processor_seconds": seconds,
            "utilisation": seconds / most if most > 0 else None,
            **{metric: statistics(values[here]) for metric, values in measured.items()},
        }
    return found
