"""The output directory of a run, and the table that compares runs.

Every column and key is defined in ``docs/outputs.md``. Files are written whole or not at all.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from rich import box
from rich.table import Table
from rich.text import Text

from headway.decisions import Decision
from headway.energy import EnergyModel
from headway.errors import Failure, UserError, nearest
from headway.metrics import Metric, Summary, job_columns, summarise
from headway.metrics.energy import EnergyUse, energy_use, node_energy
from headway.metrics.jobs import allocated
from headway.metrics.steps import common_times
from headway.metrics.summary import STATISTICS
from headway.model.classes import CLASSES
from headway.report import quantities
from headway.report.atomic import writing
from headway.results import RunResult

if TYPE_CHECKING:
    from headway.report.html import Section

#: The first nine are fixed, in this order; more may be added behind them.
JOB_COLUMNS = (
    "job_id", "user", "submit_time", "start_time", "end_time", "processors", "estimate", "runtime", "state",
    "wait", "turnaround", "slowdown", "bounded_slowdown", "allocated", "pool", "nodes", "starts", "group",
    "account", "name", "class", "frequency", "energy",
)  # fmt: skip

DECISION_COLUMNS = ("time", "decision", "job_id", "nodes", "reason", "accepted", "message", "details")

POWER_COLUMNS = ("time", "power", "busy_power")

NODE_COLUMNS = ("node", "class", "processors", "energy")

#: Behind them, the statistics.
CLASS_COLUMNS = ("class", "metric")

#: Fields of decisions that have a column of their own.
_SHOWN = frozenset({"decision", "job_id", "parent_id", "nodes", "placement", "reason"})

#: What :func:`write_outputs` can write, and the name of each file.
FORMATS = {
    "csv": "jobs.csv, decisions.csv, metrics_by_class.csv; with an energy profile power.csv, nodes.csv",
    "json": "metrics.json",
    "swf": "schedule.swf",
    "html": "report.html",
}


def write_jobs_csv(path: Path, result: RunResult) -> None:
    """One line a job, in order of submission. Raises :class:`Failure` if it cannot be written."""
    columns = job_columns(result)
    derived = zip(
        columns.wait.tolist(),
        columns.turnaround.tolist(),
        columns.slowdown.tolist(),
        columns.bounded_slowdown.tolist(),
        strict=True,
    )
    # The last name is that of index -1: no class.
    names = (*CLASSES, "")
    classes = [names[at] for at in result.class_bounds.of(columns.processors, columns.runtime).tolist()]
    use = energy_use(result, columns=columns)
    energies = use.jobs.tolist() if use is not None else [None] * len(classes)
    with writing(path) as stream:
        out = csv.writer(stream, lineterminator="\n")
        out.writerow(JOB_COLUMNS)
        for record, measured, class_, energy in zip(result.jobs, derived, classes, energies, strict=True):
            job = record.job
            out.writerow((
                job.id,
                job.user,
                _number(job.submit_time),
                _number(record.start_time),
                _number(record.end_time),
                job.request.processors,
                _number(job.request.walltime),
                _number(record.runtime) if record.start_time is not None else "",
                record.state,
                *map(_number, measured),
                allocated(record) if record.start_time is not None else "",
                record.pool or job.pool,
                _nodes(name for name, _ in record.placement),
                record.starts if record.start_time is not None else 0,
                job.group,
                job.account,
                job.name,
                class_,
                _number(record.frequency),
                _number(energy),
            ))  # fmt: skip


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


def write_metrics_json(path: Path, summary: Summary) -> None:
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
) -> list[Path]:
    """Writes a run's files into ``directory`` (made if missing) and returns their paths.

    ``trace`` is the trace that the run replayed, whose header and unused fields the schedule keeps;
    ``extra`` and ``sections`` are what plugins add to the metrics and to the report.
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

    use = energy_use(result) if {"csv", "json"} & set(formats) else None
    summary = summarise(result, extra, energy=use) if {"csv", "json"} & set(formats) else None
    if "csv" in formats and summary is not None:
        put("jobs.csv", lambda path: write_jobs_csv(path, result))
        put("decisions.csv", lambda path: write_decisions_csv(path, result))
        put("metrics_by_class.csv", lambda path: write_classes_csv(path, summary))
        if use is not None:
            put("power.csv", lambda path: write_power_csv(path, use))
            if result.cluster.nodes:
                put("nodes.csv", lambda path: write_nodes_csv(path, result))
    if "json" in formats and summary is not None:
        put("metrics.json", lambda path: write_metrics_json(path, summary))
    if "swf" in formats:
        put("schedule.swf", lambda path: _write_schedule(path, result, trace))
    if "html" in formats:
        # Here and not above: it brings matplotlib, which takes longer to load than a small run takes.
        from headway.report.html import write_html

        put("report.html", lambda path: write_html(path, [result], extra=extra, sections=sections))
    return written


def _write_schedule(path: Path, result: RunResult, trace: Any) -> None:
    from headway.workload.schedule import write_schedule

    write_schedule(path, result.jobs, trace)


def _number(value: float | None) -> str:
    """A whole number without a decimal point, another as short as can be read back; empty if none."""
    if value is None or math.isnan(value):
        return ""
    return str(int(value)) if math.isfinite(value) and value == int(value) else repr(float(value))


def _details(decision: Decision) -> str:
    """What else the decision says (a walltime, a frequency, a reservation) as a JSON object; else empty."""
    rest = {key: value for key, value in msgspec.to_builtins(decision).items() if key not in _SHOWN}
    return json.dumps(rest, ensure_ascii=False) if rest else ""


def _nodes(names: Iterator[str] | Sequence[str]) -> str:
    return " ".join(names)


# --- comparison ---------------------------------------------------------------------------------

#: Column title, how to get it from a summary, how to write it, and which value is best.
Column = tuple[str, tuple[str, ...], Callable[[float | None], str], str]
COMPARED: tuple[Column, ...] = (
    ("jobs", ("counts", "finished"), quantities.number, ""),
    ("mean wait", ("jobs", "wait", "mean"), quantities.duration, "low"),
    ("median wait", ("jobs", "wait", "median"), quantities.duration, "low"),
    ("p95 wait", ("jobs", "wait", "p95"), quantities.duration, "low"),
    ("mean bounded slowdown", ("jobs", "bounded_slowdown", "mean"), quantities.number, "low"),
    ("utilisation", ("system", "utilisation"), quantities.share, "high"),
    ("makespan", ("system", "makespan"), quantities.duration, "low"),
    ("lost capacity", ("system", "lost_capacity"), quantities.share, "low"),
)
#: The further columns where runs have an energy profile.
_ENERGY: tuple[Column, ...] = (
    ("energy", ("energy", "total"), quantities.joules, "low"),
    ("peak power", ("energy", "peak_power"), quantities.watts, "low"),
)


#: The titles of :data:`COMPARED` as a terminal's table has them: in two lines.
_HEADINGS = {
    "jobs": "jobs",
    "mean wait": "mean\nwait",
    "median wait": "median\nwait",
    "p95 wait": "p95\nwait",
    "mean bounded slowdown": "bounded\nslowdown",
    "utilisation": "utili-\nsation",
    "makespan": "make-\nspan",
    "lost capacity": "lost\ncapacity",
    "energy": "energy",
    "peak power": "peak\npower",
}


def compared_columns(summaries: Sequence[Summary]) -> tuple[Column, ...]:
    """:data:`COMPARED`, and energy where there is any."""
    energies = [summary["energy"] for summary in summaries if summary["energy"] is not None]
    if not energies:
        return COMPARED
    if all(energy["absolute"] for energy in energies):
        return COMPARED + _ENERGY
    return COMPARED + tuple((title, path, quantities.relative, best) for title, path, _, best in _ENERGY)


def compared(
    summaries: Sequence[Summary], duration: Callable[[float | None], str] = quantities.duration
) -> list[list[tuple[str, bool]]]:
    """One row a summary, one pair a column of :func:`compared_columns`: the text, and whether it is the best.

    Durations are written by ``duration``. What looks the same is equally good; where all are equal,
    none is marked.
    """
    columns = []
    for _, path, write, best in compared_columns(summaries):
        if write is quantities.duration:
            write = duration
        values = [_at(summary, path) for summary in summaries]
        texts = [write(value) for value in values]
        known = [v for v in values if v is not None]
        winner = ""
        if best and known and len(set(texts)) > 1:
            winner = write(min(known) if best == "low" else max(known))
        columns.append([(text, bool(winner) and text == winner) for text in texts])
    return [list(row) for row in zip(*columns, strict=True)]


def compare_table(summaries: Sequence[Summary]) -> Table:
    """Runs as rows, what matters most as columns; the best of each column is bold, with a star.

    80 columns wide at most where the runs' labels have no more than 13 characters and none has energy.
    """
    table = Table(
        box=box.SIMPLE_HEAD, header_style="bold", show_edge=False, padding=0, caption_justify="left",
    )  # fmt: skip
    table.add_column("policy", no_wrap=True, vertical="bottom")
    for title, *_ in compared_columns(summaries):
        # The blank stands above the stars.
        heading = "\n".join(f"{line} " for line in _HEADINGS[title].split("\n"))
        table.add_column(heading, justify="right", no_wrap=True, vertical="bottom")
    for summary, row in zip(summaries, compared(summaries, quantities.compact), strict=True):
        cells = [Text(f"{text}*", style="bold green") if best else Text(f"{text} ") for text, best in row]
        table.add_row(Text(summary["run"]["label"]), *cells)
    if len(summaries) > 1:
        table.caption = "* best of its column"
    return table


def _at(summary: Summary, path: Sequence[str]) -> float | None:
    value: Any = summary
    for key in path:
        value = None if value is None else value[key]
    return value
