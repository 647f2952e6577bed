"""Maui's and Moab's ``showbf``: what a user's job could have at once, and for how long.

What it says comes in two forms. Maui (``UserI.c`` of 3.2), and Moab asked for a shape::

    backfill window (user: 'vsc30001' group: 'vsc30001' partition: ALL) Wed Mar 18 10:31:02
    323 procs available for      21:04:59
    136 procs available for   13:19:28:58

where a partition has lines of its own under ``partition NAME:``, "with no timelimit" (or "with no time
limit") stands for a window without end, and "no procs available" for none. And Moab's table, whose columns
change their order with the version::

    Partition     Tasks  Nodes   StartOffset      Duration       StartDate
    ---------     -----  -----  ------------  ------------  --------------
    ALL               3      3      00:00:00      INFINITY  11:32:38_08/19

Times are [[DD:]HH:]MM:SS. Where several partitions are listed, the lines count that are about all of them.
"""

from __future__ import annotations

import re

from headway.adapter.user_side import Window
from headway.errors import Failure

_HEADER = re.compile(r"backfill window \(.*partition: (\S+)\)", re.IGNORECASE)
_SECTION = re.compile(r"partition (\S+):")
_WINDOW = re.compile(
    r"([0-9]{1,9}) procs? available (?:for\s+([0-9:]+)|with no time ?limit)\.?", re.IGNORECASE
)
_TIME = re.compile(r"(?:(?:([0-9]{1,6}):)?([0-9]{1,6}):)?([0-9]{1,2}):([0-9]{2})")
_NONE, _ALL, _ENDLESS = "no procs available", "ALL", "INFINITY"
_COLUMNS = ("Partition", "Tasks", "Duration", "StartOffset")


def windows(text: str) -> tuple[Window, ...]:
    """The windows that begin now. Raises :class:`Failure` for a text that is none of ``showbf``'s."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for at, line in enumerate(lines):
        if (header := _HEADER.match(line)) is not None:
            return _from_lines(lines[at + 1 :], header[1])
        if set(_COLUMNS) <= set(line.split()):
            return _from_table(line.split(), lines[at + 1 :])
    raise _strange(lines[0] if lines else "")


def _from_lines(lines: list[str], asked: str) -> tuple[Window, ...]:
    found: list[Window] = []
    section = asked
    for line in lines:
        if (named := _SECTION.fullmatch(line)) is not None:
            section = named[1]
        elif section == asked and line.lower() != _NONE:
            window = _WINDOW.fullmatch(line)
            if window is None:
                raise _strange(line)
            found.append(Window(int(window[1]), _seconds(window[2]) if window[2] else float("inf")))
    return tuple(found)


def _from_table(names: list[str], lines: list[str]) -> tuple[Window, ...]:
    columns = [names.index(name) for name in _COLUMNS]
    found: list[tuple[str, Window]] = []
    partitions: set[str] = set()
    for line in lines:
        words = line.split()
        if line.startswith(("-", "ReqID=")):
            continue
        if len(words) < len(names):
            raise _strange(line)
        partition, tasks, duration, offset = (words[column] for column in columns)
        if not tasks.isdecimal():
            raise _strange(line)
        partitions.add(partition)
        if _seconds(offset) == 0:
            seconds = float("inf") if duration.upper() == _ENDLESS else _seconds(duration)
            found.append((partition, Window(int(tasks), seconds)))
    chosen = _ALL if _ALL in partitions else next(iter(partitions)) if len(partitions) == 1 else ""
    if partitions and not chosen:
        raise Failure(f"showbf: expected lines of all partitions, or of one, found {sorted(partitions)}")
    return tuple(window for partition, window in found if partition == chosen)


def _seconds(text: str) -> float:
    found = _TIME.fullmatch(text)
    if found is None:
        raise _strange(text)
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def _strange(line: str) -> Failure:
    return Failure(f"showbf: expected windows such as '16 procs available for 19:09:53', found {line[:60]!r}")
