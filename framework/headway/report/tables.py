"""The output directory of a run, and the table that compares runs.

Every column and key is defined in ``docs/outputs``. Files are written whole or not at all.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from headway.decisions import Decision
from headway.energy import EnergyModel
from headway.errors import Failure, UserError, nearest
from headway.inputs.log import logger
from headway.metrics import Figures, Metric, Summary
from headway.metrics.energy import EnergyUse, node_energy
from headway.metrics.figures import JobColumn
from headway.metrics.steps import common_times
from headway.metrics.summary import STATISTICS
from headway.model.classes import CLASSES
from headway.report.atomic import writing
from headway.results import RunResult
from headway.results.section import Section

#: The first nine are fixed, in this order; more may be added behind them.
JOB_COLUMNS = (
    "job_id", "user", "submit_time", "start_time", "end_time", "processors", "estimate", "runtime", "state",
    "wait", "turnaround", "slowdown", "bounded_slowdown", "allocated", "pool", "nodes", "starts", "group",
    "account", "name", "class", "frequency", "energy", "migrations", "restarts", "promotions",
    "subjobs",
)  # fmt: skip

DECISION_COLUMNS = ("time", "decision", "job_id", "nodes", "reason", "accepted", "message", "details")

POWER_COLUMNS = ("time", "power", "busy_power")

NODE_COLUMNS = ("node", "class", "processors", "energy")

#: Behind them, the statistics.
CLASS_COLUMNS = ("class", "metric")
POOL_COLUMNS = ("pool", "jobs", "finished", "processors", "processor_seconds", "utilisation", "metric")

#: Fields of decisions that have a column of their own.
_SHOWN = frozenset({"decision", "job_id", "parent_id", "nodes", "placement", "reason"})

#: Jobs whose lines are made together.
_BLOCK = 8192

#: What the csv module puts into quotes, and what it may.
_QUOTED = re.compile(r'[,"\r\n]')

#: Whole numbers below this are exact as floats.
_EXACT = 2.0**53

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
        further = {name: _further_column(name, make, result) for name, make in figures.job_columns.items()}
        out.writerow((*JOB_COLUMNS, *further))
        for first in range(0, len(result.jobs), _BLOCK):
            block = slice(first, first + _BLOCK)
            columns = _job_columns(figures, block) + [_numbers(values[block]) for values in further.values()]
            if any(_QUOTED.search("".join(column)) for column in columns):
                out.writerows(zip(*columns, strict=True))
            else:
                stream.write("\n".join([*map(",".join, zip(*columns, strict=True)), ""]))


def _further_column(name: str, make: JobColumn, result: RunResult) -> NDArray[np.float64]:
    """A plugin's column; empty if the plugin raises, which must not cost the other columns."""
    nothing = np.full(len(result.jobs), np.nan)
    try:
        values = np.asarray(make(result), np.float64)
    except Exception as error:  # a plugin's code
        logger("report").warning(
            "no such column in jobs.csv", column=name, message=f"{type(error).__name__}: {error}"
        )
        return nothing
    if values.shape != nothing.shape:
        logger("report").warning(
            "no such column in jobs.csv",
            column=name,
            message=f"expected {len(nothing)} values, found {values.shape}",
        )
        return nothing
    return values


def _job_columns(figures: Figures, block: slice) -> list[list[str]]:
    """The fields of some jobs' lines, column by column."""
    columns, records = figures.columns, figures.result.jobs[block]
    jobs = [record.job for record in records]
    started = columns.started[block]
    ran = started.tolist()
    # The last name is that of index -1: no class.
    names = (*CLASSES, "")
    classes = figures.result.class_bounds.of(columns.processors[block], columns.runtime[block]).tolist()
    runtimes = np.fromiter((record.runtime for record in records), np.float64, len(records))
    runtimes[~started] = np.nan
    energy = figures.energy
    return [
        [job.id for job in jobs],
        [job.user for job in jobs],
        _numbers(columns.submit[block]),
        _numbers(columns.start[block]),
        _numbers(columns.end[block]),
        list(map(str, columns.processors[block].tolist())),
        _numbers(columns.estimate[block]),
        _numbers(runtimes),
        [record.state for record in records],
        _numbers(columns.wait[block]),
        _numbers(columns.turnaround[block]),
        _numbers(columns.slowdown[block]),
        _numbers(columns.bounded_slowdown[block]),
        [
            str(size) if there else ""
            for size, there in zip(columns.allocated[block].tolist(), ran, strict=True)
        ],
        [record.pool or record.job.pool for record in records],
        [_nodes(name for name, _ in record.placement) if record.placement else "" for record in records],
        [str(record.starts) if there else "0" for record, there in zip(records, ran, strict=True)],
        [job.group for job in jobs],
        [job.account for job in jobs],
        [job.name for job in jobs],
        [names[at] for at in classes],
        [_number(record.frequency) for record in records],
        _numbers(energy.jobs[block]) if energy is not None else [""] * len(records),
        [str(record.migrations) for record in records],
        [str(record.restarts) for record in records],
        [str(record.promotions) for record in records],
        [str(len(record.members) or int(there)) for record, there in zip(records, ran, strict=True)],
    ]


def write_power_csv(path: Path, use: EnergyUse) -> None:
    """Power over time, one line a change. Raises :class:`Failure` if it cannot be written."""
    times = common_times(use.power, use.busy_power)
    with writing(path) as stream:
        out = csv.writer(stream, lineterminator="\n")
        out.writerow(POWER_COLUMNS)
        for row in zip(
            times.tolist(), use.power.at(times).tolist(), use.busy_power.at(times).tolist(), strict=True
        ):
            out.writerow(map(_number, row))


def write_nodes_csv(path: Path, result: RunResult) -> None:
    """The energy of each node, in the cluster's order. Raises :class:`Failure` if it cannot be written."""
    used = node_energy(result)
    model = EnergyModel(result.cluster)
    with writing(path) as stream:
        out = csv.writer(stream, lineterminator="\n")
        out.writerow(NODE_COLUMNS)
        for node in result.cluster.nodes:
            kind = model.class_of(node.name).name
            out.writerow((node.name, kind, node.processors, _number(used[node.name])))


def write_decisions_csv(path: Path, result: RunResult) -> None:
    """One line a decision, in the order taken. Raises :class:`Failure` if it cannot be written."""
    with writing(path) as stream:
        out = csv.writer(stream, lineterminator="\n")
        out.writerow(DECISION_COLUMNS)
        for record in result.decisions:
            decision = record.decision
            nodes = getattr(decision, "nodes", None)
            if nodes is None:
                nodes = [name for name, _ in getattr(decision, "placement", ())]
            out.writerow((
                _number(record.time),
                type(decision).__name__,
                getattr(decision, "job_id", getattr(decision, "parent_id", "")),
                _nodes(nodes),
                getattr(decision, "reason", ""),
                "yes" if record.accepted else "no",
                record.message,
                _details(decision),
            ))  # fmt: skip


def write_classes_csv(path: Path, summary: Summary) -> None:
    """One line a class and metric. Raises :class:`Failure` if it cannot be written."""
    with writing(path) as stream:
        out = csv.writer(stream, lineterminator="\n")
        out.writerow((*CLASS_COLUMNS, *STATISTICS))
        for name, found in summary["classes"].items():
            for metric in (key for key, value in found.items() if isinstance(value, dict)):
                out.writerow((name, metric, *(_number(found[metric][key]) for key in STATISTICS)))
            ratio = {"count": found["jobs"], "mean": found["slowdown_ratio"]}
            out.writerow((name, "slowdown_ratio", *(_number(ratio.get(key)) for key in STATISTICS)))


def write_pools_csv(path: Path, summary: Summary) -> None:
    """One line a pool and metric. Raises :class:`Failure` if it cannot be written."""
    with writing(path) as stream:
        out = csv.writer(stream, lineterminator="\n")
        out.writerow((*POOL_COLUMNS, *STATISTICS))
        for name, found in summary["pools"].items():
            own = (name, *(_number(found[key]) for key in POOL_COLUMNS[1:-1]))
            for metric in (key for key, value in found.items() if isinstance(value, dict)):
                out.writerow((*own, metric, *(_number(found[metric][key]) for key in STATISTICS)))


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


def _number(value: float | None) -> str:
    """A whole number without a decimal point, another as short as can be read back; empty if none."""
    if value is None or math.isnan(value):
        return ""
    return str(int(value)) if math.isfinite(value) and value == int(value) else repr(float(value))


def _numbers(values: NDArray[np.float64]) -> list[str]:
    """As :func:`_number`, of many."""
    whole = (values == np.trunc(values)) & (np.abs(values) < _EXACT)
    integers = np.where(whole, values, 0.0).astype(np.int64).tolist()
    if whole.all():
        return list(map(str, integers))
    return [
        str(integer) if is_whole else _number(value)
        for value, integer, is_whole in zip(values.tolist(), integers, whole.tolist(), strict=True)
    ]


@cache
def _further(kind: type[Decision]) -> tuple[tuple[str, object], ...]:
    """The fields of a decision that have no column of their own, with their defaults."""
    fields = msgspec.structs.fields(kind)
    return tuple((field.name, field.default) for field in fields if field.name not in _SHOWN)


def _details(decision: Decision) -> str:
    """What else the decision says (a walltime, a frequency, a reservation) as a JSON object; else empty."""
    if all(getattr(decision, name) == usual for name, usual in _further(type(decision))):
        return ""
    rest = {key: value for key, value in msgspec.to_builtins(decision).items() if key not in _SHOWN}
    return json.dumps(rest, ensure_ascii=False) if rest else ""


def _nodes(names: Iterator[str] | Sequence[str]) -> str:
    return " ".join(names)
