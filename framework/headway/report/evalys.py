"""A run's jobs as evalys reads them (``evalys.jobset.JobSet.from_csv``): the file ``jobs.csv`` of Batsim.

The columns are those of ``JobSet.columns`` in evalys 4 (oar-team/evalys, ``evalys/jobset.py``).
``allocated_resources`` is an interval set such as ``0-3 8``: the numbers of the rows that the job has in the
schedule of ``report.html``, a row a processor.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from headway.metrics import Figures
from headway.report.atomic import writing
from headway.report.gantt import layout
from headway.report.numbers import in_short

COLUMNS = (
    "job_id", "workload_name", "submission_time", "requested_number_of_resources", "requested_time",
    "success", "starting_time", "execution_time", "finish_time", "waiting_time", "turnaround_time", "stretch",
    "allocated_resources",
)  # fmt: skip


def write_evalys_csv(path: Path, figures: Figures) -> None:
    """One line a job that ran and ended, in order of submission; times in seconds. ``success`` is 1 for a job
    that completed; ``stretch`` is ``turnaround_time / execution_time``, empty for an execution of no time.

    Raises :class:`headway.errors.Failure` if it cannot be written.
    """
    result, columns = figures.result, figures.columns
    rows = _rows(figures)
    execution = columns.end - columns.start
    stretch = columns.turnaround / np.where(execution > 0, execution, np.nan)
    name = result.about.get("workload", "")
    with writing(path) as stream:
        out = csv.writer(stream, lineterminator="\n")
        out.writerow(COLUMNS)
        for at in np.flatnonzero(columns.finished).tolist():
            out.writerow((
                result.jobs[at].job.id, name, in_short(columns.submit[at]), int(columns.processors[at]),
                in_short(columns.estimate[at]), int(result.jobs[at].state == "completed"),
                in_short(columns.start[at]), in_short(execution[at]), in_short(columns.end[at]),
                in_short(columns.wait[at]), in_short(columns.turnaround[at]), in_short(stretch[at]),
                _intervals(rows.get(at, [])),
            ))  # fmt: skip


def _rows(figures: Figures) -> dict[int, list[tuple[int, int]]]:
    """The rows of each job in the schedule, by its place in the result: first and last of each interval."""
    ends = figures.columns.end
    end = float(np.nanmax(ends)) if np.isfinite(ends).any() else 0.0
    shape = layout(figures.result, figures.columns, end)
    found: dict[int, list[tuple[int, int]]] = {}
    for job, low, count in zip(shape.jobs.tolist(), shape.rows.tolist(), shape.heights.tolist(), strict=True):
        found.setdefault(job, []).append((low, low + count - 1))
    return found


def _intervals(rows: list[tuple[int, int]]) -> str:
    """``0-3 8``: sorted, and joined where they touch."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted(rows):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(joined[-1][1], high)
        else:
            joined.append((low, high))
    return " ".join(str(low) if low == high else f"{low}-{high}" for low, high in joined)
