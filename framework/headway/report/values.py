"""The columns of ``jobs.csv`` and ``decisions.csv``, as values: for the files, and as arrays for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from headway.decisions import Decision
from headway.inputs.log import logger
from headway.metrics import Figures
from headway.metrics.figures import JobColumn
from headway.model.classes import CLASSES
from headway.results import RunResult

#: The first nine are fixed, in this order; more may be added behind them.
JOB_COLUMNS = (
    "job_id", "user", "submit_time", "start_time", "end_time", "processors", "estimate", "runtime", "state",
    "wait", "turnaround", "slowdown", "bounded_slowdown", "allocated", "pool", "nodes", "starts", "group",
    "account", "name", "class", "frequency", "energy", "migrations", "restarts", "promotions",
    "subjobs",
)  # fmt: skip
#: Of them, those that hold texts and those that hold whole numbers; all others are numbers, NaN where a job
#: has none, and so are columns of plugins.
JOB_TEXTS = frozenset({"job_id", "user", "state", "pool", "nodes", "group", "account", "name", "class"})
JOB_COUNTS = frozenset({"processors", "starts", "migrations", "restarts", "promotions", "subjobs"})

DECISION_COLUMNS = ("time", "decision", "job_id", "nodes", "reason", "accepted", "message", "details")

#: Fields of decisions that have a column of their own.
_SHOWN = frozenset({"decision", "job_id", "parent_id", "nodes", "placement", "reason"})

#: A column: texts, or numbers.
Column = list[str] | NDArray[np.int64] | NDArray[np.float64]


def job_values(figures: Figures, block: slice = slice(None)) -> list[Column]:
    """The columns :data:`JOB_COLUMNS` of some of a run's jobs, in order of submission."""
    columns, records = figures.columns, figures.result.jobs[block]
    jobs = [record.job for record in records]
    count = len(records)
    started = columns.started[block]
    ran = started.tolist()
    # The last name is that of index -1: no class.
    names = (*CLASSES, "")
    classes = figures.result.class_bounds.of(columns.processors[block], columns.runtime[block]).tolist()
    runtimes = np.fromiter((record.runtime for record in records), np.float64, count)
    runtimes[~started] = np.nan
    frequencies = (np.nan if one.frequency is None else one.frequency for one in records)
    energy = figures.energy
    return [
        [job.id for job in jobs],
        [job.user for job in jobs],
        columns.submit[block],
        columns.start[block],
        columns.end[block],
        columns.processors[block],
        columns.estimate[block],
        runtimes,
        [record.state for record in records],
        columns.wait[block],
        columns.turnaround[block],
        columns.slowdown[block],
        columns.bounded_slowdown[block],
        np.where(started, columns.allocated[block], np.nan),
        [record.pool or record.job.pool for record in records],
        [" ".join(name for name, _ in record.placement) if record.placement else "" for record in records],
        np.fromiter((record.starts if there else 0 for record, there in zip(records, ran, strict=True)),
                    np.int64, count),
        [job.group for job in jobs],
        [job.account for job in jobs],
        [job.name for job in jobs],
        [names[at] for at in classes],
        np.fromiter(frequencies, np.float64, count),
        energy.jobs[block] if energy is not None else np.full(count, np.nan),
        np.fromiter((record.migrations for record in records), np.int64, count),
        np.fromiter((record.restarts for record in records), np.int64, count),
        np.fromiter((record.promotions for record in records), np.int64, count),
        np.fromiter((len(one.members) or there for one, there in zip(records, ran, strict=True)),
                    np.int64, count),
    ]  # fmt: skip


def decision_values(result: RunResult) -> Iterator[tuple[float, str, str, str, str, bool, str, str]]:
    """The columns :data:`DECISION_COLUMNS` of each decision, in the order taken."""
    for record in result.decisions:
        decision = record.decision
        nodes = getattr(decision, "nodes", None)
        if nodes is None:
            nodes = [name for name, _ in getattr(decision, "placement", ())]
        yield (
            record.time,
            type(decision).__name__,
            getattr(decision, "job_id", getattr(decision, "parent_id", "")),
            " ".join(nodes),
            getattr(decision, "reason", ""),
            record.accepted,
            record.message,
            _details(decision),
        )


def job_array(figures: Figures) -> NDArray[Any]:
    """A run's jobs as a structured array of shape ``(jobs,)``, a field a column of ``jobs.csv``."""
    columns = dict(zip(JOB_COLUMNS, job_values(figures), strict=True))
    further = {name: further_column(name, make, figures.result) for name, make in figures.job_columns.items()}
    return structured({**columns, **further})


def decision_array(result: RunResult) -> NDArray[Any]:
    """A run's decisions as a structured array of shape ``(decisions,)``, a field a column of
    ``decisions.csv``."""
    return decisions_of(decision_values(result))


def decisions_of(rows: Iterator[tuple[Any, ...]]) -> NDArray[Any]:
    """Rows of :data:`DECISION_COLUMNS` as such an array."""
    kinds: dict[str, Any] = {"time": np.float64, "accepted": np.bool_}
    return np.array(list(rows), dtype=[(name, kinds.get(name, object)) for name in DECISION_COLUMNS])


def structured(columns: dict[str, Column]) -> NDArray[Any]:
    """Columns of one length as a structured array; texts are Python's."""
    count = len(next(iter(columns.values())))
    kinds = [(name, object if isinstance(one, list) else one.dtype) for name, one in columns.items()]
    found = np.empty(count, dtype=kinds)
    for name, values in columns.items():
        found[name] = values
    return found


def further_column(name: str, make: JobColumn, result: RunResult) -> NDArray[np.float64]:
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
