"""Lists of jobs in a file: CSV with a header, a job a line.

Columns: ``processes`` and ``time`` (seconds, or as in 1h30m); if wanted ``name``, ``least`` (never on fewer
processors; as many as processes: the job is rigid) and ``stretch`` (how much longer than the model says it
takes where a processor has several of its processes).
"""

from __future__ import annotations

from pathlib import Path

from headway.errors import UserError
from headway.inputs.durations import EXPECTED, seconds_of
from headway.inputs.lists import lines_of
from headway_plugins.moldable.tasks import Task

_NEEDED = ("processes", "time")
_COLUMNS = ("name", *_NEEDED, "least", "stretch")


def read_list(path: Path, processors: int) -> tuple[list[str], list[Task]]:
    """Names and tasks of a file, for a machine of so many processors.

    Raises :class:`UserError` that names the line of what is wrong: a job that never fits is, too.
    """
    names: list[str] = []
    tasks: list[Task] = []
    for line, given in lines_of(path, _COLUMNS, _NEEDED):
        names.append(given.get("name") or str(len(names) + 1))
        task = _task(given, place := f"{path}, line {line}")
        if task.least > processors:
            raise UserError(
                f"{place}: job {names[-1]}: expected a least size of at most {processors} processors, found "
                f"{task.least}"
            )
        tasks.append(task)
    if not tasks:
        raise UserError(f"{path}: expected a job a line, found none")
    return names, tasks


def _task(given: dict[str, str], place: str) -> Task:
    time = seconds_of(given["time"])
    if time is None:
        raise UserError(f"{place}: time: expected {EXPECTED}; found {given['time']!r}")
    try:
        return Task(
            _whole(given["processes"], "processes", place),
            float(time),
            _whole(given.get("least") or "1", "least", place),
            _number(given.get("stretch") or "1", "stretch", place),
        )
    except ValueError as error:
        raise UserError(f"{place}: {error}") from error


def _whole(text: str, column: str, place: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise UserError(f"{place}: {column}: expected a whole number, found {text!r}")
    return int(text)


def _number(text: str, column: str, place: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UserError(f"{place}: {column}: expected a number, found {text!r}") from None
