"""Reading and writing the Standard Workload Format, tolerant of dirt and explicit about it.

The format is a text file: comment lines that begin with ``;``, of which the lines before the first job
are the header, and one line a job of 18 numbers (:class:`headway.workload.trace.Column`). Files of
the Parallel Workloads Archive are not always so; what is done then, each time with an
:class:`~headway.workload.trace.Issue`:

- A line of fewer than 18 fields is padded with -1 if it has the first nine, which is what an emulation
  needs; otherwise, or if it is the file's last and ends in the middle, it is skipped.
- A line of more than 18 fields is cut.
- A field that is not a number is taken as -1, unless it is a field that an emulation needs (job number,
  submit time, runtime, allocated and requested processors, estimate): then the line is skipped, because
  any value put in its place would be invented.
- A fraction in a count or number (such as processors) is cut off. Times and memory may have one.
- Comments that are not UTF-8 are read as Latin-1. Comments among the jobs are kept, but say nothing
  about the machine.
- Jobs that are out of order are sorted by submit time; jobs with equal times keep the file's order.
- The parts of a job that ran in several are left out (:mod:`headway.workload.partial`).
- Blank lines are skipped. Duplicate job numbers and negative submit times are kept and counted.

Reading is in two speeds: blocks of lines are checked and converted as arrays, and only the lines that
fail the check are looked at one by one.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import IO, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headway.errors import UserError
from headway.workload import trace as kinds
from headway.workload.format import Format
from headway.workload.header import add_field, header_field
from headway.workload.packed import Source, opened, output
from headway.workload.partial import whole_jobs
from headway.workload.trace import WIDTH, Column, Issue, Records, Trace, whole_number

#: Bytes that are read and converted at once: large enough for arrays to pay, small enough for caches.
BLOCK = 1 << 20

#: Bytes: what has no line end for so long is no trace.
LONGEST_LINE = 16 * BLOCK

#: The columns without which a line says nothing that an emulation can use.
NEEDED = (
    Column.NUMBER,
    Column.SUBMIT,
    Column.RUNTIME,
    Column.ALLOCATED,
    Column.REQUESTED,
    Column.ESTIMATE,
)
#: A line must reach to the last of them.
LEAST_FIELDS = max(NEEDED) + 1

#: The columns that are counts or numbers; the others (times, memory) may have a fraction.
WHOLE = (
    Column.NUMBER,
    Column.ALLOCATED,
    Column.REQUESTED,
    Column.STATUS,
    Column.USER,
    Column.GROUP,
    Column.EXECUTABLE,
    Column.QUEUE,
    Column.PARTITION,
    Column.PRECEDING,
)

_NUMBER = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
#: Header fields that are numbers.
_NUMBERS = ("maxprocs", "maxnodes", "unixstarttime")

# Classes of bytes in a block. Anything that is not one of the first four sends its line the slow way.
_SPACE, _DIGIT, _MINUS, _POINT, _OTHER = range(5)
_CLASSES = np.full(256, _OTHER, np.uint8)
_CLASSES[list(b" \t\r\n")] = _SPACE
_CLASSES[list(b"0123456789")] = _DIGIT
_CLASSES[ord("-")] = _MINUS
_CLASSES[ord(".")] = _POINT


ReaderT = TypeVar("ReaderT", bound="Reader")


def read_swf(path_or_file: str | os.PathLike[str] | IO[bytes], *, strict: bool = False) -> Trace:
    """Read a trace, compressed (:mod:`.packed`) or not.

    ``path_or_file`` is a path or a binary stream (read to its end and left open). With ``strict``, a line
    that breaks the format is an error instead of an issue.

    Raises :class:`UserError` if the file is missing, unreadable, a directory, not packed as its name says,
    damaged or cut off, or has no job line; and, with ``strict``, at the first broken line, naming file and
    line, what was expected and what was found. Raises :class:`Failure` if the system fails while reading.
    """
    return read_with(Reader, path_or_file, strict).trace()


def read_with(
    kind: Callable[[str, bool], ReaderT], path_or_file: str | os.PathLike[str] | IO[bytes], strict: bool
) -> ReaderT:
    """A reader of ``kind`` that has read a path or a binary stream, as :func:`read_swf` does."""
    with opened(path_or_file) as source:
        return read_source(kind, source, strict)


def read_source(kind: Callable[[str, bool], ReaderT], source: Source, strict: bool) -> ReaderT:
    """The same of a file that is open."""
    reader = kind(source.path, strict)
    reader.read(source.stream)
    return reader


class Reader:
    """Collects a trace block by block. :meth:`line` is for formats that have more to a line."""

    #: What a line should hold, for messages.
    expected = f"{WIDTH} numbers"

    def __init__(self, path: str, strict: bool) -> None:
        self.path = path
        self.strict = strict
        self.line_number = 0
        self._header: list[str] = []
        self._fields: dict[str, str] = {}
        self._issues: list[Issue] = []
        self._records: list[Records] = []
        self._line_numbers: list[NDArray[np.int64]] = []

    def read(self, stream: IO[bytes]) -> None:
        rest = b""
        while data := stream.read(BLOCK):
            cut = data.rfind(b"\n") + 1
            if cut:
                self._take(rest + data[:cut])
                rest = data[cut:]
            else:
                rest += data
                if len(rest) > LONGEST_LINE:
                    raise UserError(
                        f"{self.path}:{self.line_number + 1}: expected a line of {self.expected}, "
                        f"found more than {LONGEST_LINE} bytes without a line end"
                    )
        if rest:
            self._take(rest + b"\n", unfinished=True)

    def trace(self) -> Trace:
        """What was read, in order of submission."""
        if not self._records:
            skipped = next(
                (i for i in self._issues if i.skipped and i.kind not in (kinds.BLANK, kinds.NO_SIZE)), None
            )
            found = f"line {skipped.line_number}: {skipped.text}" if skipped else "none"
            raise UserError(f"{self.path}: expected job lines of {self.expected}, found {found}")
        records = np.concatenate(self._records)
        self._records.clear()
        lines = np.concatenate(self._line_numbers)
        records, lines, parts = whole_jobs(records, lines)
        self._issues += parts

        submit = records[:, Column.SUBMIT]
        self._issues += [
            Issue(int(lines[row]), kinds.NEGATIVE_SUBMIT, f"submit time {submit[row]:g}, expected 0 or later")
            for row in np.flatnonzero(submit < 0)
        ]
        self._issues += _out_of_order(*self.times(lines, submit))
        if (submit[1:] < submit[:-1]).any():
            order = np.argsort(submit, kind="stable")
            records, lines = records[order], lines[order]
        self._issues += _duplicates(records[:, Column.NUMBER], lines)
        self._issues.sort(key=lambda issue: issue.line_number)
        records.setflags(write=False)
        return Trace(self.path, self._header, self._fields, records, lines, self._issues)

    def times(self, lines: NDArray[np.int64], submit: Records) -> tuple[NDArray[np.int64], Records]:
        """Numbers and times of all lines that must be in order: here, of the jobs."""
        return lines, submit

    def line(self, text: bytes, number: int, unfinished: bool, issues: list[Issue]) -> list[float] | None:
        """The values of a line that is not exactly 18 plain numbers; None if it gives no job.

        Adds to ``issues`` what was done. ``unfinished``: the file ended before the line did.
        """
        tokens = text.split()
        if not tokens:
            issues.append(Issue(number, kinds.BLANK, f"expected {self.expected}, found a blank line"))
            return None
        count = len(tokens)
        if count < LEAST_FIELDS or (unfinished and count < WIDTH):
            issues.append(self.too_few(text, number, unfinished))
            return None
        if count == WIDTH:
            return mend(tokens, number, issues)
        kind = kinds.CUT if count > WIDTH else kinds.PADDED
        issue = Issue(number, kind, f"expected {self.expected}, found {count}")
        return mend(tokens, number, issues, [issue])

    def too_few(self, text: bytes, number: int, unfinished: bool) -> Issue:
        """The issue of a line that is too short."""
        found = f"{len(text.split())}{' and the end of the file' if unfinished else ''} in {shown(text)}"
        return Issue(number, kinds.TOO_FEW, f"expected {self.expected}, found {found}{_separated(text)}")

    def _take(self, block: bytes, *, unfinished: bool = False) -> None:
        """Take whole lines; ``unfinished``: the last one had no line end in the file."""
        data = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero(data == ord("\n"))
        starts = np.concatenate(([0], ends[:-1] + 1))
        dirty = _dirty_lines(data, ends)
        dirty[-1] |= unfinished
        clean_text = data[np.repeat(~dirty, ends - starts + 1)].tobytes() if dirty.any() else block
        records = _convert(clean_text)
        lines = np.flatnonzero(~dirty)

        # A number of hundreds of digits looks clean and is infinite.
        infinite = ~np.isfinite(records).all(axis=1)
        if infinite.any():
            dirty[lines[infinite]] = True
            records, lines = records[~infinite], lines[~infinite]

        issues: list[Issue] = []
        mended: list[list[float]] = []
        mended_lines: list[int] = []
        in_header = not self._records
        first_job = lines[0] if len(lines) else len(ends)
        for line in np.flatnonzero(dirty).tolist():
            text = block[starts[line] : ends[line]]
            number = self.line_number + line + 1
            if number == 1:
                text = text.removeprefix(b"\xef\xbb\xbf")
            if text.lstrip().startswith(b";"):
                header = in_header and line < first_job and not mended
                self._comment(text, number, header, issues)
                continue
            values = self.line(text, number, unfinished and line == len(ends) - 1, issues)
            if values is not None:
                mended.append(values)
                mended_lines.append(line)
        if mended:
            records = np.concatenate((records, np.array(mended)))
            lines = np.concatenate((lines, np.array(mended_lines)))
            order = np.argsort(lines)
            records, lines = records[order], lines[order]
        lines = lines + self.line_number + 1
        issues += _cut_fractions(records, lines)
        issues.sort(key=lambda issue: issue.line_number)
        if self.strict:
            for issue in issues:
                if issue.kind in kinds.BROKEN:
                    raise UserError(f"{self.path}:{issue.line_number}: {issue.text}")
        self._issues += issues
        if len(records):
            self._records.append(records)
            self._line_numbers.append(lines)
        self.line_number += len(ends)

    def _comment(self, text: bytes, number: int, header: bool, issues: list[Issue]) -> None:
        text = text.rstrip(b"\r")
        try:
            line = text.decode("utf-8")
        except UnicodeDecodeError as error:
            line = text.decode("latin-1")
            found = f"byte 0x{text[error.start]:02x} at column {error.start + 1}"
            issues.append(Issue(number, kinds.ENCODING, f"expected UTF-8, found {found}"))
        self._header.append(line)
        if not header:
            issues.append(Issue(number, kinds.LATE_COMMENT, f"expected a job, found {shown(text)}"))
            return
        if (named := header_field(line)) is not None:
            key, value = named
            add_field(self._fields, key, value)
            if key.casefold() in _NUMBERS and whole_number(value) is None:
                said = f"{key}: expected a whole number, found {shown(value.encode())}"
                issues.append(Issue(number, kinds.NO_SIZE, said))


def _separated(text: bytes) -> str:
    """The end of a sentence about a line with something else than blanks between its numbers."""
    for separator in (b";", b",", b"|"):
        tokens = [token.strip() for token in text.split(separator)]
        if len(tokens) >= LEAST_FIELDS and value_of(tokens[0]) is not None:
            return f": its numbers are separated by {separator.decode()!r}, expected blanks"
    return ""


def _dirty_lines(data: NDArray[np.uint8], ends: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Which lines are not exactly 18 plain decimal numbers."""
    classes = _CLASSES[data]
    black = classes != _SPACE
    begins = black.copy()
    begins[1:] &= ~black[:-1]
    begins_at = np.flatnonzero(begins)
    dirty = np.diff(np.searchsorted(begins_at, ends), prepend=0) != WIDTH

    # A block ends with a line end, so that each other byte has one after it; what is before the first
    # byte counts as the last one, which is white, too.
    minus = np.flatnonzero(classes == _MINUS)
    bad = [minus[(classes[minus - 1] != _SPACE) | (classes[minus + 1] != _DIGIT)]]
    point = np.flatnonzero(classes == _POINT)
    if len(point):
        number = np.searchsorted(begins_at, point, side="right")
        second = np.diff(number, prepend=-1) == 0
        bad.append(point[second | (classes[point - 1] != _DIGIT) | (classes[point + 1] != _DIGIT)])
    bad.append(np.flatnonzero(classes == _OTHER))
    dirty[np.searchsorted(ends, np.concatenate(bad))] = True
    return dirty


def _convert(text: bytes) -> Records:
    """Clean lines as records."""
    return np.fromstring(text, np.float64, sep=" ").reshape(-1, WIDTH) if text else np.empty((0, WIDTH))


def value_of(token: bytes) -> float | None:
    """The number that stands there; None if it is none, or infinite."""
    value = float(token) if _NUMBER.fullmatch(token) else math.nan
    return value if math.isfinite(value) else None


def mend(
    tokens: Sequence[bytes], number: int, issues: list[Issue], mended: Sequence[Issue] = ()
) -> list[float] | None:
    """A line's first 18 values, -1 where there are none; None if one that is needed is no number.

    Adds to ``issues`` what was done, after ``mended`` (what was done before) if the line is used.
    """
    values = [-1.0] * WIDTH
    done = list(mended)
    for column, token in enumerate(tokens[:WIDTH]):
        value = value_of(token)
        if value is not None:
            values[column] = value
            continue
        message = f"expected a number in field {column + 1}, found {shown(token)}"
        if column in NEEDED:
            issues.append(Issue(number, kinds.NO_NUMBER, message))
            return None
        done.append(Issue(number, kinds.UNKNOWN, message))
    issues += done
    return values


def _out_of_order(lines: NDArray[np.int64], times: Records) -> list[Issue]:
    """An issue for each line whose time is before that of an earlier line."""
    latest = np.maximum.accumulate(times)
    return [
        Issue(
            int(lines[at]),
            kinds.OUT_OF_ORDER,
            f"submit time {times[at]:.15g} after a job of {latest[at]:.15g}",
        )
        for at in np.flatnonzero(times < latest)
    ]


def _cut_fractions(records: Records, lines: NDArray[np.int64]) -> list[Issue]:
    """Cut fractions off the counts and numbers, in place."""
    issues = []
    for column in WHOLE:
        values = records[:, column]
        whole = np.trunc(values)
        for row in np.flatnonzero(values != whole).tolist():
            text = f"expected a whole number in field {column + 1}, found {values[row]:g}"
            issues.append(Issue(int(lines[row]), kinds.FRACTION, text))
        records[:, column] = whole
    return issues


def _duplicates(numbers: Records, lines: NDArray[np.int64]) -> list[Issue]:
    """An issue for each job whose number an earlier one (in order of submission) has."""
    distinct, first = np.unique(numbers, return_index=True)
    if len(distinct) == len(numbers):
        return []
    again = np.ones(len(numbers), bool)
    again[first] = False
    line_of = dict(zip(distinct.tolist(), lines[first].tolist(), strict=True))
    return [
        Issue(line, kinds.DUPLICATE, f"job number {number:.15g} is that of line {line_of[number]}, too")
        for number, line in zip(numbers[again].tolist(), lines[again].tolist(), strict=True)
    ]


def shown(text: bytes) -> str:
    """What was found, fit to be shown: printable and short."""
    line = text.decode("utf-8", "backslashreplace").strip()
    return repr(line if len(line) <= 40 else line[:37] + "...")


def write_swf(path: str | os.PathLike[str], header_lines: Iterable[str], records: ArrayLike) -> None:
    """Write a trace, compressed as the ending of ``path`` says (:mod:`.packed`).

    Reading it gives the same records and header.
    ``header_lines`` are comments; a line without its leading ``;`` gets one. ``records`` is n x 18. Whole
    numbers are written without a decimal point, others as short as they can be read back. The file is
    there whole or not at all, and has the same bytes each time.

    Raises :class:`ValueError` if the records are not n x 18 finite numbers, and :class:`Failure` if the
    file cannot be written.
    """
    rows = checked_records(records)
    write_lines(path, header_lines, formatted(rows))


def checked_records(records: ArrayLike) -> Records:
    """The records as an array; :class:`ValueError` if they are not n x 18 finite numbers."""
    rows = np.asarray(records, np.float64)
    if rows.ndim != 2 or rows.shape[1] != WIDTH or not np.isfinite(rows).all():
        raise ValueError(f"expected n x {WIDTH} finite numbers, found an array of shape {rows.shape}")
    return rows


def write_lines(path: str | os.PathLike[str], header_lines: Iterable[str], lines: Iterable[str]) -> None:
    """Write a header and lines of ASCII without their ends, as :func:`write_swf` does."""
    comments = [line if line.lstrip().startswith(";") else f"; {line}" for line in header_lines]
    if any("\n" in line for line in comments):
        raise ValueError("a header line has a line feed in it")
    with output(path) as stream:
        stream.writelines(f"{line}\n".encode("utf-8", "replace") for line in comments)
        rest = iter(lines)
        while block := list(islice(rest, 8192)):
            stream.write("\n".join([*block, ""]).encode("ascii"))


_WHOLE_LINE = " ".join(["%d"] * WIDTH)

#: Beyond this, neighbouring floats are more than 1 apart and their digits would be made up.
_EXACT = 2.0**53


def formatted(rows: Records) -> Iterator[str]:
    """The records' lines, without their ends."""
    for start in range(0, len(rows), 8192):
        block = rows[start : start + 8192]
        whole = (block == np.trunc(block)) & (np.abs(block) <= _EXACT)
        if whole.all():
            numbers = block.astype(np.int64).ravel().tolist()
            yield from ("\n".join([_WHOLE_LINE] * len(block)) % tuple(numbers)).split("\n")
            continue
        for row, is_whole in zip(block.tolist(), whole.all(axis=1).tolist(), strict=True):
            yield _WHOLE_LINE % tuple(row) if is_whole else " ".join(map(number_text, row))


def number_text(value: float) -> str:
    """Whole numbers without a decimal point, others as short as they can be read back."""
    return str(int(value)) if value.is_integer() and abs(value) <= _EXACT else repr(value)


def header_note(text: str) -> str:
    """A header line that says what was done to the trace."""
    return f"; Note: {text}"


def with_notes(header: Sequence[str], notes: Iterable[str]) -> list[str]:
    """The header with further notes at its end."""
    return [*header, *map(header_note, notes)]


def _extensions(trace: Trace) -> str:
    return trace.extensions


FORMAT = Format(
    "the Standard Workload Format",
    lambda source, strict: read_source(Reader, source, strict).trace(),
    endings=(".swf",),
    write=lambda path, trace: write_swf(path, trace.header, trace.records),
    loses=_extensions,
)
