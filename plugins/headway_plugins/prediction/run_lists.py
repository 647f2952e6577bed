"""Recorded runs in a file: CSV with a header, a run a line.

Columns: the application's parameters and ``runtime`` (seconds), or for it a column for each part; if
wanted ``application`` (only its runs are read), ``pool``, ``end`` (seconds, for windows of days) and
``state`` (what is not ``completed``, in capitals or not, does not count). Other columns are left alone.

Or what a batch system's accounting says (:mod:`headway.workload.accounting`): jobs whose comment says
``scopred:app=...`` or whose name belongs to the application are its runs, with their sizes and their
partitions or queues.
"""

from __future__ import annotations

import csv
import io
import math
import re
from dataclasses import dataclass
from pathlib import Path

from headway.errors import UserError
from headway.workload.accounting import Ended, is_accounting, parse_accounting
from headway_plugins.prediction.applications import RUNTIME, Application, parse_settings, said_in
from headway_plugins.prediction.models import Run


@dataclass(frozen=True)
class Recorded:
    """A run, and where it ran."""

    run: Run
    #: The pool or hardware class; "" where it is not stated.
    pool: str = ""


def read_runs(path: Path, name: str, application: Application) -> list[Recorded]:
    """The runs of the application ``name`` in a file, by their ends.

    Raises :class:`UserError` that names the line of what is wrong, or that none is there."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UserError(f"{path}: the runs cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{path}, line {line}: expected UTF-8, found the byte 0x{error.object[error.start]:02x}"
        ) from error
    found = parse_runs(text, str(path), name, application)
    if not found:
        raise UserError(f"{path}: expected runs of {name!r}, found none")
    return found


def parse_runs(text: str, source: str, name: str, application: Application) -> list[Recorded]:
    """The same of a file's text, [] if it has none; ``source`` leads messages."""
    if is_accounting(text):
        runs = (_accounted(job, name, application) for job in parse_accounting(text, source))
        return [one for one in runs if one is not None]
    found: list[Recorded] = []
    rows = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        columns = [column.strip() for column in rows.fieldnames or ()]
        rows.fieldnames = columns
        if "application" not in columns:
            _check(columns, application, source)
        for row in rows:
            place = f"{source}, line {rows.line_num}"
            if None in row or None in row.values():
                raise UserError(f"{place}: expected {len(columns)} fields, found another number")
            if row.get("application", name).strip() == name:
                if not found:
                    _check(columns, application, source)
                found.append(_recorded(row, application, place))
    except csv.Error as error:
        raise UserError(f"{source}: no CSV: {error}") from error
    return sorted(found, key=lambda one: one.run.end)


def _accounted(job: Ended, name: str, application: Application) -> Recorded | None:
    """A job that ended as a run of the application; None if it is none, or does not say with which
    parameters."""
    words = said_in(job.comment)
    if words is None:
        if not application.match or not re.search(application.match, job.name):
            return None
        words = {}
    elif words.pop("app", "") != name:
        return None
    if not application.formula:
        return None
    try:
        parameters = parse_settings(words, "its comment")
    except UserError:
        return None
    for parameter, kind in application.sizes.items():
        parameters[parameter] = float(job.nodes if kind == "nodes" else job.processors)
    return Recorded(Run(parameters, {RUNTIME: job.seconds}, job.end, job.completed), job.pool)


def _check(columns: list[str], application: Application, source: str) -> None:
    """Whether all that is needed of a run has a column."""
    for column in (*application.parameters, *application.formulas):
        if columns.count(column) != 1:
            have = ", ".join(columns) or "none"
            raise UserError(f"{source}: expected one column {column!r}, found {have}")


def _recorded(row: dict[str, str], application: Application, place: str) -> Recorded:
    values = {name: _number(row[name], name, place) for name in application.formulas}
    for name, seconds in values.items():
        if seconds < 0:
            raise UserError(f"{place}: {name}: expected seconds from 0 on, found {row[name].strip()!r}")
    return Recorded(
        Run(
            {name: _number(row[name], name, place) for name in application.parameters},
            values,
            _number(row["end"], "end", place) if row.get("end", "").strip() else 0.0,
            row.get("state", "completed").strip().lower() in ("completed", ""),
        ),
        row.get("pool", "").strip(),
    )


def _number(text: str, column: str, place: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not abs(value) <= 1e300:
        raise UserError(f"{place}: {column}: expected a number, found {text.strip()!r}")
    return value
