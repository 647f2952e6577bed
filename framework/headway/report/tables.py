"""The output directory of a run, and the table that compares runs.

Every column and key is defined in ``docs/outputs``. Files are written whole or not at all.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from headway.energy import EnergyModel
from headway.errors import Failure, UserError, nearest
from headway.metrics import Figures, Metric, Summary
from headway.metrics.energy import EnergyUse, node_energy
from headway.metrics.steps import common_times
from headway.metrics.summary import STATISTICS
from headway.report.atomic import writing
from headway.report.numbers import in_short, in_short_all
from headway.report.values import (
    DECISION_COLUMNS,
    JOB_COLUMNS,
    Column,
    decision_values,
    further_column,
    job_values,
)
from headway.results import RunResult
from headway.results.section import Section

POWER_COLUMNS = ("time", "power", "busy_power")

NODE_COLUMNS = ("node", "class", "processors", "energy")

#: Behind them, the statistics.
CLASS_COLUMNS = ("class", "metric")
POOL_COLUMNS = ("pool", "jobs", "finished", "processors", "processor_seconds", "utilisation", "metric")

#: Jobs whose lines are made together.
_BLOCK = 8192

#: What the csv module puts into quotes, and what it may.
_QUOTED = re.compile(r'[,"\r\n]')

#: What :func:`write_outputs` can write, and the name of each file.
FORMATS = {
    "csv": "jobs.csv, decisions.csv, metrics_by_class.csv; of several pools metrics_by_pool.csv; with an "
    "energy profile power.csv, nodes.csv",
    "json": "metrics.json",
    "swf": "schedule.swf",
    "html": "report.html",
}


def write_jobs_csv(path: Path, result: RunResult, *, figures: Figures | None = None) -> None:
    """One line a job, in order of submission. Raises :class:`Failure` if it cannot be written."""
    figures = figures or Figures(result)
    with writing(path) as stream:
        out = csv.writer(stream, lineterminator="\n")
        further = {name: further_column(name, make, result) for name, make in figures.job_columns.items()}
        out.writerow((*JOB_COLUMNS, *further))
        for first in range(0, len(result.jobs), _BLOCK):
            block = slice(first, first + _BLOCK)
            values = [*job_values(figures, block), *(column[block] for column in further.values())]
            columns = list(map(_written, values))
            if any(_QUOTED.search("".join(column)) for column in columns):
                out.writerows(zip(*columns, strict=True))
            else:
                stream.write("\n".join([*map(",".join, zip(*columns, strict=True)), ""]))


def _written(column: Column) -> list[str]:
    """A column's fields."""
    if isinstance(column, list):
        return column
    if column.dtype == np.int64:
        return list(map(str, column.tolist()))
    return in_short_all(column)


def write_power_csv(path: Path, use: EnergyUse) -> None:
    """Power over time, one line a change. Raises :class:`Failure` if it cannot be written."""
    times = common_times(use.power, use.busy_power)
    with writing(path) as stream:
        out = csv.writer(stream, lineterminator="\n")
        out.writerow(POWER_COLUMNS)
        for row in zip(
            times.tolist(), use.power.at(times).tolist(), use.busy_power.at(times).tolist(), strict=True
        ):
            out.writerow(map(in_short, row))


def write_nodes_csv(path: Path, result: RunResult) -> None:
    """The energy of each node, in the cluster's order. Raises :class:`Failure` if it cannot be written."""
    used = node_energy(result)
    model = EnergyModel(result.cluster)
    with writing(path) as stream:
        out = csv.writer(stream, lineterminator="\n")
        out.writerow(NODE_COLUMNS)
        for node in result.cluster.nodes:
            kind = model.class_of(node.name).name
            out.writerow((node.name, kind, node.processors, in_short(used[node.name])))


def write_decisions_csv(path: Path, result: RunResult) -> None:
    """One line a decision, in the order taken. Raises :class:`Failure` if it cannot be written."""
    with writing(path) as stream:
        out = csv.writer(stream, lineterminator="\n")
        out.writerow(DECISION_COLUMNS)
        for time, *words, accepted, message, details in decision_values(result):
            out.writerow((in_short(time), *words, "yes" if accepted else "no", message, details))


def write_classes_csv(path: Path, summary: Summary) -> None:
    """One line a class and metric. Raises :class:`Failure` if it cannot be written."""
    with writing(path) as stream:
        out = csv.writer(stream, lineterminator="\n")
        out.writerow((*CLASS_COLUMNS, *STATISTICS))
        for name, found in summary["classes"].items():
            for metric in (key for key, value in found.items() if isinstance(value, dict)):
                out.writerow((name, metric, *(in_short(found[metric][key]) for key in STATISTICS)))
            ratio = {"count": found["jobs"], "mean": found["slowdown_ratio"]}
            out.writerow((name, "slowdown_ratio", *(in_short(ratio.get(key)) for key in STATISTICS)))


def write_pools_csv(path: Path, summary: Summary) -> None:
    """One line a pool and metric. Raises :class:`Failure` if it cannot be written."""
    with writing(path) as stream:
        out = csv.writer(stream, lineterminator="\n")
        out.writerow((*POOL_COLUMNS, *STATISTICS))
        for name, found in summary["pools"].items():
            own = (name, *(in_short(found[key]) for key in POOL_COLUMNS[1:-1]))
            for metric in (key for key, value in found.items() if isinstance(value, dict)):
                out.writerow((*own, metric, *(in_short(found[metric][key]) for key in STATISTICS)))


def write_metrics_json(path: Path, summary: Mapping[str, Any]) -> None:
    """The summary, keys in its order, indented. Raises :class:`Failure` if it cannot be written."""
    with writing(path) as stream:
        json.dump(summary, stream, indent=2, ensure_ascii=False, allow_nan=False)
        stream.write("\n")


def write_outputs(
    result: RunResult,
    directory: Path,
    *,
    trace: Any = None,
    formats: Collection[str] = tuple(FORMATS),
    extra: Mapping[str, Metric] | None = None,
    sections: Sequence[Section] = (),
    figures: Figures | None = None,
    further: Mapping[str, Any] | None = None,
) -> list[Path]:
    """Writes a run's files into ``directory`` (made if missing) and returns their paths.

    ``trace`` is the trace that the run replayed, whose header and unused fields the schedule keeps;
    ``extra`` and ``sections`` are what plugins add to the metrics and to the report; ``figures``, if there
    are any yet, the metrics of this run with ``extra``; ``further``: keys of ``metrics.json`` behind the
    others.
    Raises :class:`UserError` for an unknown format and :class:`Failure` if something cannot be written.
    """
    for name in formats:
        if name not in FORMATS:
            raise UserError(f"unknown output format {name!r}.{nearest(name, FORMATS)}")
    directory = Path(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Failure(f"{directory}: cannot be made: {error.strerror or error}") from error

    written: list[Path] = []

    def put(name: str, write: Callable[[Path], object]) -> None:
        write(directory / name)
        written.append(directory / name)

    figures = figures or Figures(result, extra)
    if "csv" in formats:
        put("jobs.csv", lambda path: write_jobs_csv(path, result, figures=figures))
        put("decisions.csv", lambda path: write_decisions_csv(path, result))
        put("metrics_by_class.csv", lambda path: write_classes_csv(path, figures.summary))
        if figures.summary["pools"]:
            put("metrics_by_pool.csv", lambda path: write_pools_csv(path, figures.summary))
        if (use := figures.energy) is not None:
            put("power.csv", lambda path: write_power_csv(path, use))
            if result.cluster.nodes:
                put("nodes.csv", lambda path: write_nodes_csv(path, result))
    if "json" in formats:
        put("metrics.json", lambda path: write_metrics_json(path, {**figures.summary, **(further or {})}))
    if "swf" in formats:
        put("schedule.swf", lambda path: _write_schedule(path, result, trace))
    if "html" in formats:
        # Here and not above: it brings matplotlib, which takes longer to load than a small run takes.
        from headway.report.html import write_html

        put("report.html", lambda path: write_html(path, [result], sections=sections, figures=[figures]))
    return written


def _write_schedule(path: Path, result: RunResult, trace: Any) -> None:
    from headway.workload.schedule import write_schedule

    pools = [pool.name for pool in result.cluster.pools]
    write_schedule(path, result.jobs, trace, pools=pools if len(pools) > 1 else ())
