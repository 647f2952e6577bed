"""The Grid Workload Format, the text of the Grid Workloads Archive's traces.

A. Iosup, H. Li, M. Jan, S. Anoep, C. Dumitrescu, L. Wolters and D. H. J. Epema, "The Grid Workloads
Archive", Future Generation Computer Systems 24(7), 2008. A line has 29 fields between blanks, of which the
first 16 mean what they mean in the Standard Workload Format; -1 stands for what is not known, ``#`` begins
a comment.

- Users, groups, executables, queues and partitions may have names; if any has, all of the column are numbered
  in the order of their names. The header gives the queues' numbers.
- Submissions are seconds since 1970 there: the first one is the trace's time 0. Where they are small they
  stay.
- A job is left out if its number, submission, runtime, processors or estimate is no number. Other fields that
  are none are taken as -1.
- Fields 17 to 29 (sites, the structure of jobs of several tasks, network, disk, platform, projects) have no
  column in a trace; the header says that they are left out.
- The parts of a job that ran in several are read as in the standard format.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from headway.errors import UserError
from headway.workload import Format, Trace
from headway.workload import trace as kinds
from headway.workload.header import header_fields
from headway.workload.left_out import LeftOut
from headway.workload.packed import Source
from headway.workload.partial import whole_jobs
from headway.workload.swf import NEEDED, WHOLE, header_note, shown, value_of
from headway.workload.texts import lines_of
from headway.workload.trace import WIDTH, Column

_FIELDS = 29
#: The fields that mean what they mean in the standard format.
_SHARED = 16
_NAMED = (Column.USER, Column.GROUP, Column.EXECUTABLE, Column.QUEUE, Column.PARTITION)
#: Seconds: what is submitted later is told as the time since 1970.
_SINCE_1970 = 1e8


def _begins(lines: Sequence[str]) -> bool:
    tokens = (line.split() for line in lines if not line.startswith("#"))
    return any(
        len(found) == _FIELDS and all(value_of(one.encode()) is not None for one in found[:4])
        for found in tokens
    )


def _read(source: Source, strict: bool) -> Trace:
    left = LeftOut(source.path, strict)
    header: list[str] = []
    rows: list[list[float]] = []
    names: list[list[str]] = []
    lines: list[int] = []
    for number, line in enumerate(lines_of(source, left), 1):
        text = line.strip()
        if text.startswith("#") or text.startswith("JobID"):
            header.append(f"; {text.lstrip('# ')}")
        elif text:
            with left.line(number):
                tokens = text.split()
                rows.append(_record(tokens, left, number))
                names.append([tokens[column] for column in _NAMED])
                lines.append(number)
    if not rows:
        raise left.nothing(f"job lines of {_FIELDS} fields")
    records = np.array(rows)
    queues = _number_names(records, names)
    records, at, parts = whole_jobs(records, np.array(lines, np.int64))
    submit = records[:, Column.SUBMIT]
    order = np.argsort(submit, kind="stable")
    records, at = records[order], at[order]
    header.append(header_note("of the Grid Workload Format, without its fields 17 to 29"))
    if (first := float(submit.min())) >= _SINCE_1970:
        records[:, Column.SUBMIT] -= first
        header.append(f"; UnixStartTime: {first:.0f}")
    header += [f"; Queue: {line}" for line in queues]
    records.setflags(write=False)
    issues = sorted([*left.issues, *parts], key=lambda issue: issue.line_number)
    return Trace(source.path, header, header_fields(header), records, at, issues)


def _record(tokens: Sequence[str], left: LeftOut, number: int) -> list[float]:
    """The record of a line, with -1 where a name stands."""
    place = left.place(number)
    if len(tokens) < _SHARED:
        raise UserError(f"{place}: expected {_FIELDS} fields, found {len(tokens)}")
    row = [-1.0] * WIDTH
    for column, token in zip(Column, tokens[:_SHARED], strict=False):
        value = value_of(token.encode())
        if value is not None:
            row[column] = math.trunc(value) if column in WHOLE else value
        elif column in NEEDED:
            raise UserError(f"{place}: field {column + 1}: expected a number, found {shown(token.encode())}")
        elif column not in _NAMED:
            left.note(number, kinds.UNKNOWN, f"expected a number in field {column + 1}, found {token[:40]!r}")
    return row


def _number_names(records: np.ndarray, names: Sequence[Sequence[str]]) -> list[str]:
    """Number the columns that have names, in place; the queues' numbers with their names."""
    queues: list[str] = []
    for at, column in enumerate(_NAMED):
        found = [row[at] for row in names]
        known = sorted({name for name in found if name != "-1"})
        if all(value_of(name.encode()) is not None for name in known):
            continue
        number_of = {name: number for number, name in enumerate(known, 1)}
        records[:, column] = [number_of.get(name, -1) for name in found]
        if column is Column.QUEUE:
            queues = [f"{number} {_plain(name)}" for name, number in number_of.items()]
    return queues


def _plain(name: str) -> str:
    return "".join(letter if "!" <= letter <= "~" else "?" for letter in name)


FORMAT = Format("the Grid Workload Format", _read, endings=(".gwf",), begins=_begins)
