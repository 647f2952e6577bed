"""LSF's accounting: ``lsb.acct``, a record JOB_FINISH a job, and ``lsb.events`` for the limits.

``lsb.acct`` does not say how long a job might run, so ``cat lsb.events lsb.acct`` in any order tells more:
the record JOB_NEW of a job has its limit, here divided by the processor factor of the host that it is
normalised to, as ``bhist -l`` does. Changes by ``bmod`` are not followed. The listings of ``bacct`` and
``bhist`` have times without years, so they are not read.

The fields are described in lsb.acct(5) and lsb.events(5), which LSF's relatives share. The comment is
the project (``bsub -P``). A job that never started ran for 0 s.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from headway.errors import UserError
from headway.workload.accounting.fields import LONGEST, in_order, number, seconds
from headway.workload.accounting.records import accounting_format
from headway.workload.ended import Ended
from headway.workload.left_out import LeftOut

_LINE = re.compile(r'"[A-Z][A-Z_0-9]*" "\d[\d.]*" \d+ |#\d+\s*$', re.ASCII)
#: What begins a listing of bacct or bhist.
_LISTING = re.compile(
    r"Accounting information about |Summary of time in seconds |Job <\d+(\[\d+\])?>, ", re.ASCII
)
_TOKEN = re.compile(r'\s*(?:"((?:[^"]|"")*)"(?=\s|$)|([^"\s]+))')
_SLOTS = re.compile(r"(?:(\d{1,6})\*)?.+", re.ASCII)
_DONE = "64"
#: Numbers of resource use behind a job's command.
_RUSAGE = 19


class _Fields:
    """The fields of a record, one after the other."""

    def __init__(self, line: str, place: str) -> None:
        self._place = place
        #: The text of each field, and whether it stands in quotes.
        self._fields: list[tuple[str, bool]] = []
        self._at = 0
        at, line = 0, line.rstrip()
        while at < len(line):
            found = _TOKEN.match(line, at)
            if found is None:
                raise UserError(f"{place}: expected fields in order, found {line[at : at + 40].strip()!r}")
            quoted = found.group(1) is not None
            text = found.group(1).replace('""', '"') if quoted else found.group(2)
            self._fields.append((text, quoted))
            at = found.end()

    def skip(self, fields: int) -> None:
        self._at += fields

    def take(self, name: str, quoted: bool) -> str:
        """The next field, a string or a number."""
        if self._at >= len(self._fields):
            raise UserError(f"{self._place}: expected the field {name}, found the end of the record")
        text, quotes = self._fields[self._at]
        if quotes != quoted:
            what = "a text in quotes" if quoted else "a number"
            raise UserError(f"{self._place}: {name}: expected {what}, found {text[:40]!r}")
        self._at += 1
        return text

    def text(self, name: str) -> str:
        return self.take(name, True)

    def number(self, name: str) -> int:
        return number(self.take(name, False), name, self._place)

    def time(self, name: str) -> float:
        return seconds(self.take(name, False), name, self._place, math.inf)

    def is_text(self) -> bool:
        """Whether the next field is a string."""
        return self._at < len(self._fields) and self._fields[self._at][1]


def begins(lines: Sequence[str]) -> bool:
    """Whether these are the first lines of lsb.acct or lsb.events, or of a listing."""
    return any(_LINE.match(line) or _LISTING.match(line) for line in lines)


def ended(lines: Sequence[str], left: LeftOut, zoned: bool) -> list[Ended]:
    """The jobs that ended; times are seconds since 1970."""
    found: list[tuple[tuple[int, float], Ended]] = []
    limits: dict[tuple[int, float], float] = {}
    for at, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        if not found and _LISTING.match(line):
            raise UserError(
                f"{left.source}: expected lsb.acct, found a listing of bacct or bhist, whose times have no "
                "years"
            )
        with left.line(at):
            _take(line, at, left.place(at), found, limits)
    if not found:
        raise left.nothing("records JOB_FINISH, as lsb.acct has them")
    return [replace(job, limit=limits.get(key)) for key, job in found]


def _take(
    line: str,
    at: int,
    place: str,
    found: list[tuple[tuple[int, float], Ended]],
    limits: dict[tuple[int, float], float],
) -> None:
    """Put a record's end or limit where it belongs."""
    if not _LINE.match(line):
        raise UserError(f'{place}: expected "EVENT" "VERSION" TIME ... of lsb.acct, found {line[:40]!r}')
    if line.startswith('"JOB_NEW" '):
        key, limit = _new(_Fields(line, place), place)
        if limit is not None:
            limits[key] = limit
    elif line.startswith('"JOB_FINISH" '):
        found.append(_finished(_Fields(line, place), at, place))


def _finished(fields: _Fields, line: int, place: str) -> tuple[tuple[int, float], Ended]:
    """The key and the job of a record JOB_FINISH."""
    fields.skip(2)
    end = fields.time("event time")
    job = fields.number("jobId")
    fields.skip(2)
    asked = fields.number("numProcessors")
    submit = fields.time("submitTime")
    fields.skip(2)
    start = fields.time("startTime")
    user, queue = fields.text("userName"), fields.text("queue")
    fields.skip(9)
    fields.skip(fields.number("numAskedHosts"))
    hosts = [fields.text("execHosts") for _ in range(fields.number("numExHosts"))]
    state = fields.take("jStatus", False)
    fields.skip(1)
    name = fields.text("jobName")
    fields.text("command")
    fields.skip(_RUSAGE)
    fields.text("mailUser")
    project = fields.text("projectName")
    fields.skip(2)
    fields.text("loginShell")
    if fields.is_text():  # timeEvent, which not all have
        fields.skip(1)
    index = fields.number("idx")
    if start:
        in_order(start, end, place)
    return (job, submit), Ended(
        f"{job}[{index}]" if index else str(job),
        name,
        user,
        project,
        queue,
        len({host.rpartition("*")[2] for host in hosts}),
        sum(_slots(host) for host in hosts) or asked,
        end - start if start else 0.0,
        end,
        state == _DONE,
        submit,
        start or None,
        line=line,
        account=project,
    )


def _slots(host: str) -> int:
    found = _SLOTS.fullmatch(host)
    return int(found.group(1) or 1) if found else 1


def _new(fields: _Fields, place: str) -> tuple[tuple[int, float], float | None]:
    """The key of the job of a record JOB_NEW, and its limit in seconds."""
    fields.skip(3)
    job = fields.number("jobId")
    fields.skip(3)
    submit = fields.time("submitTime")
    fields.skip(5)
    fields.text("userName")
    fields.skip(9)
    limit = fields.take("run limit", False)
    fields.skip(1)
    fields.text("hostSpec")
    factor = fields.take("hostFactor", False)
    if limit.startswith("-"):
        return (job, submit), None
    try:
        value = float(limit) / float(factor)
    except (ValueError, ZeroDivisionError):
        value = math.nan
    if not 0 < value <= LONGEST:
        raise UserError(
            f"{place}: run limit: expected a time above 0 s, found {limit[:40]!r} by {factor[:40]!r}"
        )
    return (job, submit), float(round(value))


FORMAT = accounting_format("LSF's accounting (lsb.acct, with lsb.events)", begins, ended)
