"""What the unfairness of jobs comes to: equation (1) and (4) of the paper, and which users pay.

The paper's figure is a mean over *all* jobs of what the losing jobs lost: preferential treatment of other
jobs never lowers it. A mean hides which jobs pay (a hundredth of the jobs may hold nearly all of it), so
shares, percentiles and sums by user stand beside it. All of it is ours but ``mean``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.results import RunResult

Floats = NDArray[np.float64]

#: The paper's classes of width (Table 1): the largest number of processors of each.
WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128)
WIDTH_NAMES = ("1", "2", "3-4", "5-8", "9-16", "17-32", "33-64", "65-128", "> 128")


def missed(loss: Floats, waited: NDArray[np.bool_] | None = None) -> dict[str, float | int | None]:
    """The figures of a loss (what a job got less or later than is fair; negative: preferential treatment),
    of all jobs with a known loss. ``waited``: which jobs did not start at once."""
    known = ~np.isnan(loss)
    values = np.maximum(loss[known], 0.0)
    count = len(values)
    if not count:
        return {"jobs": 0, "mean": None}
    hit = values > 0
    total = float(values.sum())
    top = np.sort(values)[::-1][: max(count // 100, 1)].sum()
    p95, p99 = np.percentile(values, (95, 99))
    found: dict[str, float | int | None] = {
        "jobs": count,
        "mean": total / count,
        "share_unfair": float(hit.mean()),
        "share_preferred": float((loss[known] < 0).mean()),
        "mean_of_unfair": float(values[hit].mean()) if hit.any() else None,
        "p95": float(p95),
        "p99": float(p99),
        "max": float(values.max()),
        "share_of_top_percent": float(top) / total if total > 0 else None,
    }
    if waited is not None:
        held = waited[known]
        found["mean_of_waiting"] = float(values[held].mean()) if held.any() else None
    return found


def width_classes(processors: NDArray[np.int64]) -> NDArray[np.int64]:
    """Index in :data:`WIDTH_NAMES` of each job."""
    return np.searchsorted(np.array(WIDTHS), processors).astype(np.int64)


def by_width(processors: NDArray[np.int64], **losses: Floats) -> dict[str, dict[str, float | int | None]]:
    """For each class of width: how many jobs, and the mean of each loss over them (None without jobs)."""
    classes = width_classes(processors)
    return _grouped([WIDTH_NAMES[at] for at in classes], WIDTH_NAMES, np.mean, losses)


def by_name(names: Sequence[str], **losses: Floats) -> dict[str, dict[str, float | int | None]]:
    """For each user (account): how many jobs, and the sum of each loss over them; the greatest loser
    first."""
    found = _grouped(names, tuple(dict.fromkeys(names)), np.sum, losses)
    first = next(iter(losses), "")
    return dict(sorted(found.items(), key=lambda item: -(item[1].get(first) or 0.0)))


def _grouped(
    names: Sequence[str], groups: Sequence[str], figure: Callable[[Floats], Any], losses: dict[str, Floats]
) -> dict[str, dict[str, float | int | None]]:
    index = {name: at for at, name in enumerate(groups)}
    which = np.array([index[name] for name in names], np.int64)
    order = np.argsort(which, kind="stable")
    edges = np.searchsorted(which[order], np.arange(len(groups) + 1))
    found: dict[str, dict[str, float | int | None]] = {}
    for at, name in enumerate(groups):
        rows = order[edges[at] : edges[at + 1]]
        row: dict[str, float | int | None] = {"jobs": len(rows)}
        for title, loss in losses.items():
            values = loss[rows]
            values = np.maximum(values[~np.isnan(values)], 0.0)
            row[title] = float(figure(values)) if len(values) else None
        found[name] = row
    return found


def overtakers(result: RunResult, came: Floats, at: int, most: int = 5) -> list[str]:
    """Ids of later arrivals in the same pool that started while the job at this place waited, most work
    first. ``came``: from when each job could have started."""
    job, since = result.jobs[at], float(came[at])
    start = job.start_time
    if start is None:
        return []
    found = [
        (-(other.runtime * other.job.request.processors), other.job.id)
        for place, other in enumerate(result.jobs)
        if other.start_time is not None
        and other.pool == job.pool
        and since <= other.start_time < start
        and (came[place], place) > (since, at)
    ]
    return [name for _, name in sorted(found)[:most]]
