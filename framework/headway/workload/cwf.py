"""Reading and writing the Cloud Workload Format: jobs with a requested start, and elastic commands.

D. Kumar, Z. Shae and H. Jamjoom, "Scheduling Batch and Heterogeneous Jobs with Runtime Elasticity in a
Parallel Processing Environment", 2012, section IV-C and figure 4. A line has the 18 fields of the
Standard Workload Format and three more:

- 19, requested start time: seconds on the clock of the submit times for a dedicated job, -1 for a batch job;
- 20, request type: ``S`` submits a job; ``ET``, ``RT`` (extend, reduce the requested time) and ``EP``,
  ``RP`` (extend, reduce the requested processors) change an earlier job;
- 21, amount: seconds or processors of the change; -1 for ``S``.

A command's line repeats the job's number in field 1, says in field 2 when the command is given, and has -1
in the other fields. Lines are sorted by field 2; at one time, jobs are written before commands.

What the paper leaves open:

- A file of the Standard Workload Format is one of this format: its jobs are batch jobs.
- A requested start before the submission is kept: the job is due when it is submitted.
- A command belongs to the last job of its number that was submitted by then, else (it is early) to the
  first. One for a number that the file does not have is kept and counted: writing gives it back, and
  :func:`cwf_jobs` leaves it out.

Files are read as tolerantly as by :mod:`headway.workload.swf`. Beyond what is said there:

- A line of 19 or 20 fields is padded: type ``S``, amount -1.
- A line whose type is none of the five (in capitals), whose requested start is no number, or whose command
  has no positive amount is skipped: any value put in its place would be invented.
- A negative requested start other than -1, an amount of a submission, and further fields of a command are
  taken as -1. A fraction of a processor is cut off.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import merge
from math import isfinite
from typing import IO, NamedTuple, Self

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from headway.results import Refused
from headway.workload import swf
from headway.workload import trace as kinds
from headway.workload.emulation import to_records, trace_jobs
from headway.workload.format import Format
from headway.workload.jobs import REQUESTED_START, TraceCommand, TraceJob, dedicated
from headway.workload.packed import Source
from headway.workload.trace import WIDTH, Column, Issue, Records, Trace

#: Fields of a line.
CLOUD_WIDTH = WIDTH + 3

SUBMISSION = "S"
#: Commands that change the time, and commands that change the processors.
TIME_COMMANDS = ("ET", "RT")
SIZE_COMMANDS = ("EP", "RP")
COMMANDS = (*TIME_COMMANDS, *SIZE_COMMANDS)

_UNSET = b"-1"

#: Fields 3 to 19 of a command.
_REST_UNSET = [_UNSET] * (WIDTH - 1)

#: A job's line as it should be; most are, and are not looked at field by field.
_PLAIN_JOB = re.compile(rb"((?:-?\d+(?:\.\d+)? ){18})(-1|\d+(?:\.\d+)?) S -1\r?")


class CommandRow(NamedTuple):
    """An elastic command as it stands in the file."""

    #: Seconds; field 2.
    time: float
    #: The job's number; field 1.
    number: float
    #: "ET", "RT", "EP" or "RP".
    command: str
    #: Seconds or processors; positive.
    amount: float
    #: Row of the job in the trace's records; -1: there is none of that number.
    row: int = -1
    #: Line of the file, 0: from none.
    line_number: int = 0


@dataclass(frozen=True)
class CloudTrace(Trace):
    """A trace with requested starts and commands."""

    #: One for each row of the records: seconds, -1 for a batch job. Not writable.
    requested_start: Records = field(default_factory=lambda: np.empty(0))
    #: In order of time, at one time in the file's order.
    commands: tuple[CommandRow, ...] = ()

    @property
    def dedicated(self) -> int:
        """How many jobs have a requested start."""
        return int(np.count_nonzero(self.requested_start >= 0))

    @property
    def extensions(self) -> str:
        """Such as "2 requested starts and 1 elastic command"; "" for none of either."""
        counted = [(self.dedicated, "requested start"), (len(self.commands), "elastic command")]
        return " and ".join(f"{n:,} {what}{'' if n == 1 else 's'}" for n, what in counted if n)

    def part(self, rows: slice | NDArray[np.bool_]) -> Self:
        """These jobs alone, with their commands."""
        kept = np.zeros(len(self), np.bool_)
        kept[rows] = True
        new_row = np.cumsum(kept) - 1
        commands = (c._replace(row=int(new_row[c.row])) for c in self.commands if c.row >= 0 and kept[c.row])
        return dataclasses.replace(
            super().part(rows),
            requested_start=_fixed(self.requested_start[rows].copy()),
            commands=tuple(commands),
        )

    def at_times(self, submit: Records) -> Self:
        """The same jobs, submitted at other times: their requested starts and commands move with them."""
        later = submit - self.records[:, Column.SUBMIT]
        start = self.requested_start
        moved = (c._replace(time=c.time + float(later[c.row])) if c.row >= 0 else c for c in self.commands)
        return dataclasses.replace(
            super().at_times(submit),
            requested_start=_fixed(np.where(start >= 0, np.maximum(start + later, 0), -1)),
            commands=_in_order(moved),
        )

    def stretched(self, factor: float) -> Self:
        """Runtimes and estimates multiplied, and with them the seconds of commands and from submission to
        command, so that each command comes at the same point of its job's course. Requested starts stay.
        """
        submit = self.records[:, Column.SUBMIT]

        def stretch(command: CommandRow) -> CommandRow:
            time, amount = command.time, command.amount
            if command.row >= 0:
                since = float(submit[command.row])
                time = since + float(np.rint((time - since) * factor))
            if command.command in TIME_COMMANDS:
                amount = max(float(np.rint(amount * factor)), 1.0)
            return command._replace(time=time, amount=amount)

        return dataclasses.replace(super().stretched(factor), commands=_in_order(map(stretch, self.commands)))


def read_cwf(path_or_file: str | os.PathLike[str] | IO[bytes], *, strict: bool = False) -> CloudTrace:
    """Read a trace of the Cloud or the Standard Workload Format, compressed or not.

    Arguments and errors as :func:`headway.workload.read_swf`.
    """
    return swf.read_with(_CloudReader, path_or_file, strict).cloud_trace()


class _CloudReader(swf.Reader):
    """Takes the three further fields off a line and reads the rest as a line of the standard format."""

    expected = f"{WIDTH} numbers, a requested start, a request type and an amount"

    def __init__(self, path: str, strict: bool) -> None:
        super().__init__(path, strict)
        self._commands: list[CommandRow] = []
        #: Line -> requested start.
        self._starts: dict[int, float] = {}
        self._wide = False

    def cloud_trace(self) -> CloudTrace:
        """What was read, in order of time."""
        trace = self.trace()
        start = np.full(len(trace), -1.0)
        if self._starts:
            start[:] = [self._starts.get(line, -1.0) for line in trace.line_numbers.tolist()]
        commands = _with_rows(trace.records, self._commands)
        lost = [
            Issue(c.line_number, kinds.UNKNOWN_JOB, f"{c.command} for job {c.number:.15g}: there is none")
            for c in commands
            if c.row < 0
        ]
        return CloudTrace(
            path=trace.path,
            header=trace.header,
            fields=trace.fields,
            records=trace.records,
            line_numbers=trace.line_numbers,
            issues=sorted([*trace.issues, *lost], key=lambda issue: issue.line_number),
            requested_start=_fixed(start),
            commands=commands,
        )

    def times(self, lines: NDArray[np.int64], submit: Records) -> tuple[NDArray[np.int64], Records]:
        if not self._commands:
            return lines, submit
        all_lines = np.concatenate((lines, [c.line_number for c in self._commands]))
        order = np.argsort(all_lines)
        return all_lines[order], np.concatenate((submit, [c.time for c in self._commands]))[order]

    def line(self, text: bytes, number: int, unfinished: bool, issues: list[Issue]) -> list[float] | None:
        plain = _PLAIN_JOB.fullmatch(text)
        if plain:
            values, requested = list(map(float, plain[1].split())), float(plain[2])
            # A number of hundreds of digits is infinite.
            if isfinite(sum(map(abs, values))) and isfinite(requested):
                self._wide = True
                if requested >= 0:
                    self._starts[number] = requested
                return values
        tokens = text.split()
        count = len(tokens)
        if count <= WIDTH and not (unfinished and self._wide):
            return super().line(text, number, unfinished, issues)
        if unfinished and count < CLOUD_WIDTH:
            issues.append(self.too_few(text, number, unfinished))
            return None
        self._wide = True
        mended = []
        if count != CLOUD_WIDTH:
            kind = kinds.CUT if count > CLOUD_WIDTH else kinds.PADDED
            mended.append(Issue(number, kind, f"expected {CLOUD_WIDTH} fields, found {count}"))
            tokens += [b"S", _UNSET][count - CLOUD_WIDTH :] if count < CLOUD_WIDTH else []
        start, kind_of_request, amount = tokens[WIDTH:CLOUD_WIDTH]
        request = kind_of_request.decode("latin-1")
        if request == SUBMISSION:
            return self._job(tokens, start, amount, number, issues, mended)
        if request in COMMANDS:
            self._command(tokens, request, amount, number, issues, mended)
        else:
            found = swf.shown(kind_of_request)
            text_ = f"expected S, ET, EP, RT or RP in field 20, found {found}"
            issues.append(Issue(number, kinds.REQUEST_TYPE, text_))
        return None

    def _job(
        self,
        tokens: list[bytes],
        start: bytes,
        amount: bytes,
        number: int,
        issues: list[Issue],
        mended: list[Issue],
    ) -> list[float] | None:
        requested = -1.0
        if start != _UNSET:
            value = swf.value_of(start)
            if value is None:
                text = f"expected a number in field 19, found {swf.shown(start)}"
                issues.append(Issue(number, kinds.NO_NUMBER, text))
                return None
            requested = value
        if requested < 0 and requested != -1:
            text = f"expected a requested start from 0 on, or -1, found {requested:g}"
            mended.append(Issue(number, kinds.NO_START, text))
            requested = -1.0
        if amount != _UNSET and swf.value_of(amount) != -1:
            text = f"expected -1 in field 21 of a submission, found {swf.shown(amount)}"
            mended.append(Issue(number, kinds.IGNORED, text))
        values = swf.mend(tokens, number, issues, mended)
        if values is not None and requested >= 0:
            self._starts[number] = requested
        return values

    def _command(
        self,
        tokens: list[bytes],
        command: str,
        amount: bytes,
        number: int,
        issues: list[Issue],
        mended: list[Issue],
    ) -> None:
        found = [swf.value_of(tokens[Column.NUMBER]), swf.value_of(tokens[Column.SUBMIT])]
        for column, value in zip((Column.NUMBER, Column.SUBMIT), found, strict=True):
            if value is None:
                text = f"expected a number in field {column + 1}, found {swf.shown(tokens[column])}"
                issues.append(Issue(number, kinds.NO_NUMBER, text))
                return
        job, time = (value for value in found if value is not None)
        size = swf.value_of(amount)
        whole = float(np.trunc(size)) if size is not None and command in SIZE_COMMANDS else size
        if whole is None or whole <= 0:
            text = f"expected a positive amount in field 21 of {command}, found {swf.shown(amount)}"
            issues.append(Issue(number, kinds.NO_AMOUNT, text))
            return
        if whole != size:
            text = f"expected a whole number in field 21 of {command}, found {swf.shown(amount)}"
            mended.append(Issue(number, kinds.FRACTION, text))
        if job != np.trunc(job):
            text = f"expected a whole number in field 1, found {swf.shown(tokens[Column.NUMBER])}"
            mended.append(Issue(number, kinds.FRACTION, text))
            job = float(np.trunc(job))
        rest = tokens[2 : WIDTH + 1]
        for field_number, token in enumerate(rest if rest != _REST_UNSET else (), start=3):
            if token != _UNSET and swf.value_of(token) != -1:
                text = f"expected -1 in field {field_number} of {command}, found {swf.shown(token)}"
                mended.append(Issue(number, kinds.IGNORED, text))
                break
        issues += mended
        self._commands.append(CommandRow(time, job, command, whole, line_number=number))


def _with_rows(records: Records, commands: Iterable[CommandRow]) -> tuple[CommandRow, ...]:
    """The commands in order of time, each with the row of its job."""
    ordered = _in_order(commands)
    wanted = {command.number for command in ordered}
    rows: dict[float, list[int]] = defaultdict(list)
    if wanted:
        for row, number in enumerate(records[:, Column.NUMBER].tolist()):
            if number in wanted:
                rows[number].append(row)
    submit = records[:, Column.SUBMIT]

    def row_of(command: CommandRow) -> int:
        candidates = rows[command.number]
        by_then = [row for row in candidates if submit[row] <= command.time]
        return by_then[-1] if by_then else candidates[0] if candidates else -1

    return tuple(command._replace(row=row_of(command)) for command in ordered)


def _in_order(commands: Iterable[CommandRow]) -> tuple[CommandRow, ...]:
    return tuple(sorted(commands, key=lambda command: command.time))


def _fixed(values: Records) -> Records:
    values.setflags(write=False)
    return values


def write_cwf(
    path: str | os.PathLike[str],
    header_lines: Iterable[str],
    records: ArrayLike,
    requested_start: ArrayLike | None = None,
    commands: Iterable[CommandRow] = (),
) -> None:
    """Write a trace, compressed as the ending of ``path`` says; reading it gives the same trace.

    ``records`` is n x 18; ``requested_start`` has n seconds, -1 for a batch job (None: all of them). Of the
    commands, ``row`` and ``line_number`` are not looked at. Lines are sorted by time. Otherwise as
    :func:`headway.workload.write_swf`.

    Raises :class:`ValueError` if the records are not n x 18 finite numbers, a requested start is neither -1
    nor finite and at least 0, a command is none of the four or has no positive, finite amount (whole for
    processors) and time, and :class:`headway.errors.Failure` if the file cannot be written.
    """
    rows = swf.checked_records(records)
    start = np.full(len(rows), -1.0) if requested_start is None else np.asarray(requested_start, np.float64)
    if start.shape != (len(rows),) or not (np.isfinite(start) & ((start >= 0) | (start == -1))).all():
        raise ValueError(f"expected {len(rows)} requested starts, each -1 or from 0 on, found {start}")
    ordered = _in_order(commands)
    for command in ordered:
        _check_command(command)
    order = np.argsort(rows[:, Column.SUBMIT], kind="stable")
    rows, start = rows[order], start[order]
    jobs = (
        (time, f"{line} {swf.number_text(at)} {SUBMISSION} -1")
        for time, line, at in zip(
            rows[:, Column.SUBMIT].tolist(), swf.formatted(rows), start.tolist(), strict=True
        )
    )
    changes = ((command.time, _command_line(command)) for command in ordered)
    # Stable: of equal times, the first argument's come first.
    lines = merge(jobs, changes, key=lambda pair: pair[0])
    swf.write_lines(path, header_lines, (line for _, line in lines))


def _check_command(command: CommandRow) -> None:
    numbers = (command.time, command.number, command.amount)
    whole = (command.number, *((command.amount,) if command.command in SIZE_COMMANDS else ()))
    if (
        command.command not in COMMANDS
        or not np.isfinite(numbers).all()
        or command.amount <= 0
        or any(value != np.trunc(value) for value in whole)
    ):
        raise ValueError(f"expected ET, RT, EP or RP with a positive amount at some time, found {command}")


def _command_line(command: CommandRow) -> str:
    unset = " ".join(["-1"] * (WIDTH - 1))
    number, time, amount = (
        swf.number_text(float(value)) for value in (command.number, command.time, command.amount)
    )
    return f"{number} {time} {unset} {command.command} {amount}"


def cwf_jobs(
    trace: Trace, processors: int | None, *, limit: int | None = None, pool: str = "pool"
) -> tuple[list[TraceJob], list[TraceCommand], list[Refused]]:
    """The jobs and commands of an emulation of ``trace``, each in order of time, and the jobs refused.

    Arguments, jobs, refusals and errors as :func:`headway.workload.trace_jobs`; a dedicated job has the
    attribute ``requested_start`` (seconds) and that begin time, also if that is before its submission.
    The commands of refused jobs are left out, which the reason of the refusal counts; so are the commands of
    jobs behind the ``limit``, and of jobs that the trace does not have, which are among its issues. Any trace
    will do.
    """
    jobs, refused = trace_jobs(trace, processors, limit=limit, pool=pool)
    if not isinstance(trace, CloudTrace):
        return jobs, [], refused
    start = trace.requested_start
    for at in np.flatnonzero(start[[job.row for job in jobs]] >= 0).tolist() if jobs else []:
        job = jobs[at]
        jobs[at] = msgspec.structs.replace(job, job=dedicated(job.job, float(start[job.row])))
    ids = {job.row: job.job.id for job in jobs}
    commands = [TraceCommand(c.time, ids[c.row], c.command, c.amount) for c in trace.commands if c.row in ids]
    return jobs, commands, _with_dropped_commands(trace, refused)


def _with_dropped_commands(trace: CloudTrace, refused: Sequence[Refused]) -> list[Refused]:
    dropped: dict[int, int] = defaultdict(int)
    for command in trace.commands:
        if command.row >= 0:
            dropped[int(trace.line_numbers[command.row])] += 1
    return [
        msgspec.structs.replace(
            one,
            reason=f"{one.reason}; with it {count} elastic {'command' if count == 1 else 'commands'}",
        )
        if (count := dropped.get(one.line, 0))
        else one
        for one in refused
    ]


def to_cloud_records(
    jobs: Sequence[TraceJob], commands: Sequence[TraceCommand] = ()
) -> tuple[Records, Records, list[CommandRow]]:
    """Jobs and commands as the last three arguments of :func:`write_cwf`.

    The records come from :func:`headway.workload.to_records`. Raises :class:`KeyError` if a command is
    for none of the jobs.
    """
    records = to_records(jobs)
    start = np.array([requested_start(job) for job in jobs], np.float64)
    number_of = dict(zip((job.job.id for job in jobs), records[:, Column.NUMBER].tolist(), strict=True))
    rows = [CommandRow(c.time, number_of[c.job_id], c.command, c.amount) for c in commands]
    return records, start, rows


def requested_start(job: TraceJob) -> float:
    """The second at which a dedicated job wants to start, at least 0; -1 for a batch job."""
    value = (job.job.attributes or {}).get(REQUESTED_START)
    return -1.0 if value is None else max(float(value), 0.0)


def _read(source: Source, strict: bool) -> CloudTrace:
    return swf.read_source(_CloudReader, source, strict).cloud_trace()


def _write(path: str | os.PathLike[str], trace: Trace) -> None:
    cloud = trace if isinstance(trace, CloudTrace) else None
    start, commands = (cloud.requested_start, cloud.commands) if cloud else (None, ())
    write_cwf(path, trace.header, trace.records, start, commands)


FORMAT = Format("the Cloud Workload Format", _read, endings=(".cwf",), write=_write)
