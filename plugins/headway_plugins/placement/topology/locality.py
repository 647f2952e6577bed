"""How close to each other the nodes of a run's jobs were: leaf switches used against the fewest possible.

The fewest possible are the switches that the placement itself would take if the job's pool was idle, with all
its nodes in order. A node on no switch counts as a switch of its own. Only jobs that were started count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.metrics.jobs import job_columns
from headway.model import Request
from headway.model.classes import CLASSES
from headway.resources import NodeTable
from headway.results import RunResult

Floats = NDArray[np.float64]

#: On how many leaf switches a placement's nodes lie, by their names.
Count = Callable[[Sequence[str]], int]
#: The fewest leaf switches for a request in a pool of an idle cluster; None: it does not fit there.
Fewest = Callable[[Request, str], int | None]


def idle_table(result: RunResult) -> NodeTable:
    """The run's nodes, all of them available and idle."""
    table = NodeTable()
    for node in result.cluster.nodes:
        table.put(node)
    return table


def locality(result: RunResult, count: Count, fewest: Fewest) -> tuple[Floats, Floats]:
    """Of each job the leaf switches that it was on, and the fewest possible; NaN: it was on none."""
    used = np.full(len(result.jobs), np.nan)
    possible = np.full(len(result.jobs), np.nan)
    known: dict[tuple[Request, str], int | None] = {}
    for at, job in enumerate(result.jobs):
        if not job.placement:
            continue
        used[at] = count([name for name, _ in job.placement])
        # What it asked for of time does not matter.
        asked = job.job.request
        key = (Request(**{**_fields(asked), "walltime": 0.0}), job.pool or job.job.pool)
        if key not in known:
            known[key] = fewest(*key)
        least = known[key]
        if least is not None:
            possible[at] = least
    return used, possible


def _fields(request: Request) -> dict[str, Any]:
    return {name: getattr(request, name) for name in request.__struct_fields__}


def figures(result: RunResult, used: Floats, possible: Floats) -> dict[str, Any]:
    """The figures of all jobs and by class: ``jobs`` that are counted, the means ``switches`` and ``fewest``,
    ``share_fewest`` (of the jobs that were on no more than the fewest), and ``ratio``, the sum of the
    switches over that of the fewest. Without a job the rest is None."""
    columns = job_columns(result)
    which = result.class_bounds.of(columns.processors, columns.runtime)
    counted = ~np.isnan(used) & ~np.isnan(possible)
    groups = {"all": counted} | {name: counted & (which == at) for at, name in enumerate(CLASSES)}
    found: dict[str, Any] = {}
    for name, here in groups.items():
        jobs = int(here.sum())
        row: dict[str, float | int | None] = {"jobs": jobs}
        mine, least = used[here], possible[here]
        row["switches"] = float(mine.mean()) if jobs else None
        row["fewest"] = float(least.mean()) if jobs else None
        row["share_fewest"] = float((mine <= least).mean()) if jobs else None
        row["ratio"] = float(mine.sum() / least.sum()) if jobs else None
        found[name] = row
    return found


def section(found: dict[str, Any]) -> str:
    """The same as a table of HTML."""
    heads = ("class", "jobs", "switches", "fewest possible", "on the fewest", "ratio")
    rows = ["".join(f"<th>{head}</th>" for head in heads)]
    for name, row in found.items():
        share = row["share_fewest"]
        cells = [
            name, str(row["jobs"]), _number(row["switches"]), _number(row["fewest"]),
            "" if share is None else f"{100 * share:.1f} %", _number(row["ratio"]),
        ]  # fmt: skip
        rows.append("".join(f"<td>{escape(cell)}</td>" for cell in cells))
    table = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f"<p>Leaf switches of the jobs, and the fewest leaf switches if their pool had been idle; means "
        f"over the jobs that were started.</p><table>{table}</table>"
    )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
