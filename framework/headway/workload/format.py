"""What a format of workload files is, and which ones are installed.

A format is an object :class:`Format` behind an entry point of the group :data:`GROUP`; its name is the entry
point's. The formats that ship with headway are no different. ``docs/workloads.md`` has a complete example.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headway.inputs.entry_points import entry_points
from headway.inputs.extras import extra_of, how_to_install
from headway.workload.ended import Ended
from headway.workload.left_out import LeftOut
from headway.workload.packed import Source
from headway.workload.trace import Trace

GROUP = "headway.formats"

#: Lines at a file's beginning that are looked at to tell its format.
_FIRST = 20


def _never(lines: Sequence[str]) -> bool:
    return False


def _nothing(trace: Trace) -> str:
    return ""


@dataclass(frozen=True)
class Format:
    """One format of workload files."""

    #: What it is, for a person, such as "the Standard Workload Format".
    about: str
    #: Reads an open file, which is unpacked already; with True a broken line is a :class:`UserError`, else it
    #: is left out and among the trace's issues. A :class:`UserError` for a file without any job.
    read: Callable[[Source, bool], Trace]
    #: Ends of the names of its files, such as ".swf"; without the endings of packings.
    endings: tuple[str, ...] = ()
    #: Whether a file is one, by its first lines that are not blank (at most 20, without their ends). Asked
    #: about files whose names say nothing.
    begins: Callable[[Sequence[str]], bool] = _never
    #: Writes a trace as this file, packed if its name says so; None: it is not written. Raises
    #: :class:`headway.errors.Failure` if the file cannot be written.
    write: Callable[[str | os.PathLike[str], Trace], None] | None = None
    #: What a file would not hold of the trace, for a person; "": nothing is lost that a trace has.
    loses: Callable[[Trace], str] = _nothing
    #: Of a batch system's accounting: the jobs that ended, of its lines. With True, times that say no zone
    #: are broken. Such a format serves histories, too.
    ended: Callable[[Sequence[str], LeftOut, bool], list[Ended]] | None = None


def installed() -> dict[str, Format]:
    """Every installed format that loads, by name; :func:`not_loadable` tells about the others."""
    return {name: found for name, found in _tried().items() if isinstance(found, Format)}


def not_loadable() -> dict[str, str]:
    """The installed formats that do not load here, by name, and why. They cost the other formats nothing."""
    return {name: found for name, found in _tried().items() if isinstance(found, str)}


def _tried() -> dict[str, Format | str]:
    """Each installed format, or why it does not load: whatever its module raises, or what is no format."""
    tried: dict[str, Format | str] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        what = f"format {entry.name!r} ({entry.value})"
        try:
            found = entry.load()
        except Exception as error:
            extra = extra_of(error)
            why = f"{error}: {how_to_install(extra)}" if extra else f"{type(error).__name__}: {error}"
            tried[entry.name] = f"{what} does not load: {why}"
            continue
        wrong = f"{what}: expected a Format, found {type(found).__name__}"
        tried[entry.name] = found if isinstance(found, Format) else wrong
    return tried


def first_lines(text: str) -> list[str]:
    """The first lines of a text that are not blank, without their ends."""
    lines = (line.rstrip("\r") for line in text.removeprefix("\ufeff").split("\n"))
    found = []
    for line in lines:
        if line.strip():
            found.append(line)
            if len(found) == _FIRST:
                break
    return found
