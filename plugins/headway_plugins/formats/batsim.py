"""Batsim's workloads: JSON with jobs and the profiles of what they do.

P.-F. Dutot, M. Mercier, M. Poquet and O. Richard, "Batsim: a realistic language-independent resources and
jobs management systems simulator", JSSPP 2016; Batsim's documentation, "Workload". Profiles are read by the
names that they have up to Batsim 4 and from 5 on, and are written as up to Batsim 4.

What a job is here:

- ``id`` is its number, if all ids are whole numbers (also behind the name of a workload, as in ``w0!3``) that
  no two jobs share; else jobs are counted. ``3#2`` is written for the second job of number 3, and read back.
- ``subtime``, ``res`` and ``walltime`` are its submission, processors and estimate.
- Its runtime is that of its profile: a delay, or a sequence of such. What other profiles take depends on the
  simulated machine; such a job has no known runtime, which is said.
- Other columns of the standard format are further members of the job by their names, such as ``user``; Batsim
  leaves them alone. So are the header's lines, as ``header`` beside ``jobs``.

A file that Batsim could not use is not written: a job without a known runtime or processors has no place in
it.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from headway.errors import UserError
from headway.workload import Format, Trace, sizes
from headway.workload import trace as kinds
from headway.workload.header import header_fields
from headway.workload.left_out import LeftOut
from headway.workload.packed import Source, output
from headway.workload.swf import number_text
from headway.workload.trace import WIDTH, Column

_DELAYS = ("delay", "DelayProfile")
_SEQUENCES = ("composed", "SequentialCompositionProfile")
_NUMBER = re.compile(r"(?:[^!]*!)?(\d{1,15})(#\d+)?", re.ASCII)
#: The columns that are further members of a job.
_OTHERS = {column: column.name.lower() for column in Column}
for _own in (Column.NUMBER, Column.SUBMIT, Column.RUNTIME):
    del _OTHERS[_own]
#: Larger numbers are no seconds or counts.
_MOST = 1e18
#: Jobs that are written at once.
_BLOCK = 4096


def _begins(lines: Sequence[str]) -> bool:
    start = "".join(lines)
    return start.lstrip().startswith("{") and any(
        f'"{word}"' in start for word in ("jobs", "profiles", "nb_res")
    )


def _read(source: Source, strict: bool) -> Trace:
    said = f"{source.path}: expected Batsim's JSON: an object with jobs and profiles"
    try:
        data = msgspec.json.decode(source.data().removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise UserError(f"{said}, found no JSON: {error}") from error
    jobs, profiles = (data.get("jobs"), data.get("profiles", {})) if isinstance(data, dict) else (None, None)
    if not isinstance(jobs, list) or not isinstance(profiles, dict):
        raise UserError(f"{said}, found {'others' if isinstance(data, dict) else 'no object'}")
    left = LeftOut(source.path, strict, unit="job")
    runtimes = _Runtimes(profiles)
    rows, names, lines = [], [], []
    for at, job in enumerate(jobs, 1):
        with left.line(at):
            row, name = _record(job, runtimes, left, at)
            rows.append(row)
            names.append(name)
            lines.append(at)
    if not rows:
        raise left.nothing("jobs")
    records = np.array(rows)
    records[:, Column.NUMBER] = _numbers(names)
    order = np.argsort(records[:, Column.SUBMIT], kind="stable")
    records = records[order]
    records.setflags(write=False)
    header = _header(data)
    return Trace(
        source.path, header, header_fields(header), records, np.array(lines, np.int64)[order], left.issues
    )


def _record(job: Any, runtimes: _Runtimes, left: LeftOut, at: int) -> tuple[list[float], str]:
    """A job's record, but for its number, and its id."""
    place = left.place(at)
    if not isinstance(job, dict) or not isinstance(job.get("id"), str | int):
        raise UserError(f"{place}: expected a job with an id")
    row = [-1.0] * WIDTH
    row[Column.SUBMIT] = _value(job, "subtime", place)
    size = _value(job, "res", place)
    row[Column.ALLOCATED] = row[Column.REQUESTED] = size
    if size != math.floor(size) or size < 0:
        raise UserError(f"{place}: res: expected a whole number from 0 on, found {job['res']!r}")
    walltime = job.get("walltime")
    if walltime is not None:
        row[Column.ESTIMATE] = _value(job, "walltime", place)
    for column, name in _OTHERS.items():
        if isinstance(job.get(name), int | float) and not isinstance(job[name], bool):
            row[column] = _value(job, name, place)
    profile = job.get("profile")
    seconds = runtimes.of(str(profile), place)
    if seconds is None:
        left.note(at, kinds.NO_RUNTIME, f"its profile {profile!r} says no seconds")
    else:
        row[Column.RUNTIME] = seconds
    return row, str(job["id"])


def _value(about: Mapping[str, Any], name: str, place: str) -> float:
    value = about.get(name)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not abs(value) <= _MOST:  # type: ignore[operator, arg-type]
        raise UserError(f"{place}: {name}: expected a number, found {str(value)[:40]}")
    return float(value)  # type: ignore[arg-type]


class _Runtimes:
    """The seconds that profiles take."""

    def __init__(self, profiles: Mapping[str, Any]) -> None:
        self._profiles = profiles
        #: None: it depends on the machine.
        self._known: dict[str, float | None] = {}

    def of(self, name: str, place: str, within: tuple[str, ...] = ()) -> float | None:
        """None: it depends on the machine. Raises :class:`UserError` for a profile that is not in order."""
        if name in self._known:
            return self._known[name]
        profile = self._profiles.get(name)
        if not isinstance(profile, dict):
            raise UserError(f"{place}: profile: expected the name of a profile, found {name[:40]!r}")
        if name in within or len(within) > 50:
            raise UserError(f"{place}: profile {name[:40]!r}: expected a sequence without itself in it")
        found: float | None = None
        if profile.get("type") in _DELAYS:
            found = _value(profile, "delay", place)
        elif profile.get("type") in _SEQUENCES:
            found = self._of_sequence(profile, place, (*within, name))
        self._known[name] = found
        return found

    def _of_sequence(self, profile: Mapping[str, Any], place: str, within: tuple[str, ...]) -> float | None:
        parts = profile.get("seq")
        if not isinstance(parts, list):
            raise UserError(f"{place}: profile {within[-1][:40]!r}: expected the list seq")
        times = _value(profile, "repeat", place) if "repeat" in profile else 1.0
        seconds = [self.of(str(part), place, within) for part in parts]
        known = [one for one in seconds if one is not None]
        total = times * sum(known)
        return total if len(known) == len(seconds) and abs(total) <= _MOST else None


def _numbers(names: list[str]) -> list[int]:
    """The jobs' numbers: their ids where all are whole numbers, else 1, 2, ..."""
    found = [_NUMBER.fullmatch(name) for name in names]
    own = [int(one[1]) for one in found if one]
    distinct = {(one[1], one[2]) for one in found if one}
    return own if len(distinct) == len(names) else list(range(1, len(names) + 1))


def _header(data: Mapping[str, Any]) -> list[str]:
    """The header's lines: the lines of the trace that was written, else what the file tells."""
    kept = data.get("header")
    header = [line for line in kept if isinstance(line, str)] if isinstance(kept, list) else []
    header = [line for line in header if line.lstrip().startswith(";") and "\n" not in line]
    size = data.get("nb_res")
    names_size = header_fields(header).keys() & {"MaxProcs", "MaxNodes"}
    if isinstance(size, int) and not isinstance(size, bool) and 0 < size < _MOST and not names_size:
        header.append(f"; MaxProcs: {size}")
    return header


def _loses(trace: Trace) -> str:
    size, runtime = sizes(trace.records), trace.records[:, Column.RUNTIME]
    without = int(((runtime < 0) | (size <= 0)).sum())
    said = (
        f"{without:,} {'job' if without == 1 else 'jobs'} without a known runtime or size" if without else ""
    )
    return " and ".join(part for part in (trace.extensions, said) if part)


def _write(path: str | os.PathLike[str], trace: Trace) -> None:
    size, runtime = sizes(trace.records), trace.records[:, Column.RUNTIME]
    kept = (size > 0) & (runtime >= 0)
    records, size = trace.records[kept], size[kept]
    machine = trace.max_processors or int(size.max(initial=1))
    delays = np.unique(records[:, Column.RUNTIME]).tolist()
    with output(path) as stream:
        head = {"nb_res": machine, "header": list(trace.header)}
        stream.write(json.dumps(head, ensure_ascii=True)[:-1].encode() + b',\n"profiles": {')
        for some in _blocks(
            f'"{number_text(seconds)}": {{"type": "delay", "delay": {number_text(seconds)}}}'
            for seconds in delays
        ):
            stream.write(some)
        stream.write(b'},\n"jobs": [')
        for some in _blocks(_jobs(records, size)):
            stream.write(some)
        stream.write(b"]}\n")


def _blocks(parts: Iterator[str]) -> Iterator[bytes]:
    """Parts with commas between them, some at a time."""
    waiting: list[str] = []
    before = "\n"
    for part in parts:
        waiting.append(before + part)
        before = ",\n"
        if len(waiting) == _BLOCK:
            yield "".join(waiting).encode()
            waiting.clear()
    yield "".join(waiting).encode()


def _jobs(records: np.ndarray[Any, Any], size: np.ndarray[Any, Any]) -> Iterator[str]:
    """Each job's object as JSON."""
    seen: dict[float, int] = {}
    for row, processors in zip(records.tolist(), size.tolist(), strict=True):
        number = row[Column.NUMBER]
        seen[number] = seen.get(number, 0) + 1
        again = f"#{seen[number]}" if seen[number] > 1 else ""
        members = [
            f'"id": "{number_text(number)}{again}"',
            f'"subtime": {number_text(row[Column.SUBMIT])}',
            f'"res": {number_text(processors)}',
            f'"profile": "{number_text(row[Column.RUNTIME])}"',
        ]
        if row[Column.ESTIMATE] > 0:
            members.append(f'"walltime": {number_text(row[Column.ESTIMATE])}')
        told = {Column.ALLOCATED: processors, Column.REQUESTED: processors}
        told[Column.ESTIMATE] = row[Column.ESTIMATE] if row[Column.ESTIMATE] > 0 else -1.0
        members += [
            f'"{name}": {number_text(row[column])}'
            for column, name in _OTHERS.items()
            if row[column] != told.get(column, -1.0)
        ]
        yield "{" + ", ".join(members) + "}"


FORMAT = Format("Batsim's JSON", _read, endings=(".json",), begins=_begins, write=_write, loses=_loses)
