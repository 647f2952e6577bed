"""What :func:`headway.report.write_outputs` wrote, read again."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.errors import Failure, UserError
from headway.report.values import (
    DECISION_COLUMNS,
    JOB_COLUMNS,
    JOB_COUNTS,
    JOB_TEXTS,
    Column,
    decisions_of,
    structured,
)

#: The files that are read.
JOBS, DECISIONS, METRICS = "jobs.csv", "decisions.csv", "metrics.json"

#: Of a sentence in a decision: a field may be long.
_LONGEST = 1 << 24


def is_run(folder: Path) -> bool:
    """Whether a run's files are in the folder."""
    return all((folder / name).is_file() for name in (JOBS, DECISIONS, METRICS))


def read_metrics(folder: Path) -> dict[str, Any]:
    """``metrics.json``; :class:`UserError` if there is none, or something else."""
    path = folder / METRICS
    with _reading(path, "the metrics of a run"):
        found = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(found, dict) or not {"run", "counts", "jobs", "system"} <= found.keys():
        raise UserError(f"{path}: expected the metrics of a run, found something else")
    return found


def read_jobs(folder: Path) -> NDArray[Any]:
    """``jobs.csv`` as :func:`headway.report.values.job_array` has it."""
    path = folder / JOBS
    head, rows = _table(path, JOB_COLUMNS[:9])
    fields = list(zip(*rows, strict=True)) if rows else [()] * len(head)
    with _reading(path, "the jobs of a run"):
        return structured({name: _column(name, list(of)) for name, of in zip(head, fields, strict=True)})


def read_decisions(folder: Path) -> NDArray[Any]:
    """``decisions.csv`` as :func:`headway.report.values.decision_array` has it."""
    path = folder / DECISIONS
    _, rows = _table(path, DECISION_COLUMNS)
    with _reading(path, "the decisions of a run"):
        return decisions_of(_decision(row) for row in rows)


def _decision(row: list[str]) -> tuple[Any, ...]:
    time, decision, job, nodes, reason, accepted, message, details = row
    return float(time), decision, job, nodes, reason, accepted == "yes", message, details


def _column(name: str, fields: list[str]) -> Column:
    if name in JOB_TEXTS:
        return fields
    if name in JOB_COUNTS:
        return np.array([int(field) for field in fields], np.int64)
    return np.array([float(field) if field else np.nan for field in fields], np.float64)


def _table(path: Path, expected: tuple[str, ...]) -> tuple[list[str], list[list[str]]]:
    """The names of a CSV file's columns, which begin with the ``expected`` ones, and its rows."""
    csv.field_size_limit(_LONGEST)
    with _reading(path, "a table"), open(path, newline="", encoding="utf-8") as stream:
        lines: Iterator[list[str]] = csv.reader(stream)
        head = next(lines, [])
        rows = list(lines)
    if tuple(head[: len(expected)]) != expected:
        raise UserError(
            f"{path}: expected the columns {', '.join(expected)}, found {', '.join(head)[:200] or 'none'}"
        )
    for at, row in enumerate(rows, 2):
        if len(row) != len(head):
            raise UserError(f"{path}:{at}: expected {len(head)} fields, found {len(row)}")
    return head, rows


@contextmanager
def _reading(path: Path, what: str) -> Iterator[None]:
    """Errors of reading a run's file, for a person; ``what``: is expected there."""
    try:
        yield
    except FileNotFoundError:
        said = f"{path.parent}: expected a run's files (`headway dry-run --out`), found no {path.name}"
        raise UserError(said) from None
    except OSError as error:
        raise Failure(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, csv.Error) as error:
        raise UserError(f"{path}: expected {what}, found something else ({error})") from error
