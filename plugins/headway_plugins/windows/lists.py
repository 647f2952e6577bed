"""Lists of jobs of stages in a file: CSV with a header, tasks of one stage and length a line.

Columns: ``job``, ``stage`` (1, 2, ... without gaps), ``length`` (seconds of a task, or as in 1h30m); if
wanted ``tasks`` (how many of that length; 1), ``reward`` and ``priority`` of the job, the same in all of its
lines. A job without a reward earns its work in seconds.
"""

from __future__ import annotations

import math
from pathlib import Path

from headway.errors import UserError
from headway.inputs.durations import EXPECTED, seconds_of
from headway.inputs.lists import lines_of
from headway_plugins.windows.staged import Staged

_NEEDED = ("job", "stage", "length")
_COLUMNS = (*_NEEDED, "tasks", "reward", "priority")
#: Tasks that a list may have.
_MOST = 10_000_000


class _Read:
    """A job as far as it was read."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.stages: dict[int, list[float]] = {}
        #: Reward and priority -> the number, and the line that said so.
        self.said: dict[str, tuple[float, int]] = {}


def read_jobs(path: Path) -> list[Staged]:
    """The jobs of a file, in its order. Raises :class:`UserError` that names the line of what is wrong."""
    found: dict[str, _Read] = {}
    tasks = 0
    for line, given in lines_of(path, _COLUMNS, _NEEDED):
        place = f"{path}, line {line}"
        tasks += _take(found, given, line, place)
        if tasks > _MOST:
            raise UserError(f"{place}: expected at most {_MOST} tasks, found more")
    if not found:
        raise UserError(f"{path}: expected a stage of a job a line, found none")
    return [_job(name, read, path) for name, read in found.items()]


def _take(found: dict[str, _Read], given: dict[str, str], line: int, place: str) -> int:
    """One line: how many tasks it has."""
    if not given["job"]:
        raise UserError(f"{place}: expected the name of a job, found none")
    read = found.setdefault(given["job"], _Read(line))
    length = seconds_of(given["length"])
    if length is None:
        raise UserError(f"{place}: length: expected {EXPECTED}; found {given['length']!r}")
    if length <= 0:
        raise UserError(f"{place}: length: expected a task of more than 0 seconds, found {given['length']!r}")
    stage, count = _whole(given["stage"], "stage", place), _whole(given.get("tasks") or "1", "tasks", place)
    for column in ("reward", "priority"):
        if not given.get(column):
            continue
        value = _number(given[column], column, place)
        if column == "reward" and value <= 0:
            raise UserError(f"{place}: reward: expected more than 0, found {given[column]!r}")
        before = read.said.setdefault(column, (value, line))
        if before[0] != value:
            raise UserError(
                f"{place}: {column}: job {given['job']} has {before[0]:g} in line {before[1]}, "
                f"found {given[column]!r}"
            )
    if count <= _MOST:
        read.stages.setdefault(stage, []).extend([float(length)] * count)
    return count


def _job(name: str, read: _Read, path: Path) -> Staged:
    for number in range(1, max(read.stages) + 1):
        if number not in read.stages:
            raise UserError(
                f"{path}, line {read.line}: job {name}: expected stages 1 to {max(read.stages)}, found no "
                f"stage {number}"
            )
    stages = tuple(tuple(read.stages[number]) for number in sorted(read.stages))
    reward, priority = read.said.get("reward"), read.said.get("priority")
    return Staged(name, stages, reward[0] if reward else None, priority[0] if priority else 0.0)


def _whole(text: str, column: str, place: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text)):
        raise UserError(f"{place}: {column}: expected a whole number from 1 on, found {text!r}")
    return int(text)


def _number(text: str, column: str, place: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UserError(f"{place}: {column}: expected a number, found {text!r}")
    return value
