"""A workload trace in memory: the records of a file, its header, and what was wrong with it.

The records follow the Standard Workload Format (S. J. Chapin, W. Cirne, D. G. Feitelson,
J. P. Jones, S. T. Leutenegger, U. Schwiegelshohn, W. Smith and D. Talby, "Benchmarks and standards
for the evaluation of parallel job schedulers", JSSPP 1999, in its version 2.2): 18 numbers a job,
-1 for what is not known.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

Records = NDArray[np.float64]


class Column(IntEnum):
    """The columns of a record array; the format's field number is one more."""

    NUMBER = 0
    #: Seconds since the trace's start.
    SUBMIT = 1
    #: Seconds.
    WAIT = 2
    #: Seconds.
    RUNTIME = 3
    #: Processors that the job got.
    ALLOCATED = 4
    #: Seconds of processor time, mean over the processors; the only field with a fraction in practice.
    CPU_TIME = 5
    #: KiB a processor, mean.
    USED_MEMORY = 6
    #: Processors that the job asked for.
    REQUESTED = 7
    #: Seconds: the user's estimate.
    ESTIMATE = 8
    #: KiB a processor.
    REQUESTED_MEMORY = 9
    #: 0 failed, 1 completed, 2-4 parts of a checkpointed job, 5 cancelled.
    STATUS = 10
    USER = 11
    GROUP = 12
    EXECUTABLE = 13
    QUEUE = 14
    PARTITION = 15
    PRECEDING = 16
    #: Seconds between the preceding job's end and this job's submission.
    THINK_TIME = 17


#: Numbers in a record.
WIDTH = len(Column)

#: What can be wrong with a line, and what is done about it.
BLANK = "blank line"
TOO_FEW = "too few fields"
NO_NUMBER = "not a number"
PADDED = "short line, padded with -1"
CUT = "long line, cut"
UNKNOWN = "not a number, taken as -1"
FRACTION = "fraction in a whole number, cut off"
ENCODING = "not UTF-8, read as Latin-1"
LATE_COMMENT = "comment among the jobs"
NEGATIVE_SUBMIT = "negative submit time"
OUT_OF_ORDER = "out of order, sorted by submit time"
DUPLICATE = "duplicate job number"
PARTIAL = "partial execution, which the line of its job counts"
JOINED = "partial executions without a line of their job, joined"
RECORD = "broken record"
STEP = "part of a job, which the line of its job counts"
GOES_ON = "job that has not ended"
NEVER_RAN = "job that never ran"
TOO_LARGE = "number that is no job's"
NO_RUNTIME = "job without a known runtime"
NO_SIZE = "header value that is no number"

# Of the Cloud Workload Format only.
REQUEST_TYPE = "unknown request type"
NO_AMOUNT = "command without a positive amount"
NO_START = "negative requested start, taken as -1"
IGNORED = "field without a meaning for this request type, taken as -1"
UNKNOWN_JOB = "command for a job that the trace does not have"

#: The kinds whose line gives no record.
SKIPPED = frozenset(
    (BLANK, TOO_FEW, NO_NUMBER, REQUEST_TYPE, NO_AMOUNT, PARTIAL, NO_SIZE, RECORD, STEP, GOES_ON, NEVER_RAN,
     TOO_LARGE)
)  # fmt: skip
#: The kinds that break the format, so that strict reading stops at them.
BROKEN = frozenset(
    (TOO_FEW, NO_NUMBER, PADDED, CUT, UNKNOWN, FRACTION, REQUEST_TYPE, NO_AMOUNT, NO_START, IGNORED, NO_SIZE,
     RECORD, TOO_LARGE)
)  # fmt: skip


class Issue(NamedTuple):
    """Something about one line of the file that was not as it should be."""

    line_number: int
    #: One of the kinds above; it says what was done.
    kind: str
    #: What was expected and what was found.
    text: str

    @property
    def skipped(self) -> bool:
        """True: the line gives no record. False: it was mended, or taken as it is."""
        return self.kind in SKIPPED


#: A number and its name, each on a line of a header's field.
_NAMED = re.compile(r"^ *(\d{1,9})[ \t]+(\S+)", re.MULTILINE)
#: A whole number as headers have it, whatever stands behind it: 1152, 1,152, 1 152, 1'152, 64.0.
_WHOLE = re.compile(
    r"([+-]?\d{1,3}([,' _\u00a0\u202f])\d{3}(?:\2\d{3})*|[+-]?\d{1,18})(?:\.0*)?(?![^\s;,(\[])(?![\s,]\d)",
    re.ASCII,
)


def whole_number(text: str) -> int | None:
    """The whole number that a header's value begins with; None if it does not begin with one."""
    found = _WHOLE.match(text.strip())
    return int(re.sub(r"[^\d+-]", "", found[1])) if found else None


def _fixed(records: Records) -> Records:
    records.setflags(write=False)
    return records


@dataclass(frozen=True)
class Trace:
    """A trace: one row of ``records`` a job, in order of submission (file order at equal times)."""

    #: The file it came from, for messages.
    path: str
    #: The comment lines as they stand in the file, without line ends.
    header: list[str] = field(default_factory=list)
    #: The header's ``; Key: value`` lines; a repeated key's values are joined by line feeds.
    fields: dict[str, str] = field(default_factory=dict)
    #: n x 18, float64; see :class:`Column`. Not writable.
    records: Records = field(default_factory=lambda: np.empty((0, WIDTH)))
    #: Line of the file of each row, from 1.
    line_numbers: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    #: In order of lines.
    issues: list[Issue] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.records)

    def part(self, rows: slice | NDArray[np.bool_]) -> Self:
        """These jobs alone."""
        return replace(
            self, records=_fixed(self.records[rows].copy()), line_numbers=self.line_numbers[rows].copy()
        )

    def at_times(self, submit: Records) -> Self:
        """The same jobs, submitted at other times (seconds) in the same order."""
        records = self.records.copy()
        records[:, Column.SUBMIT] = submit
        return replace(self, records=_fixed(records))

    def stretched(self, factor: float) -> Self:
        """Runtimes and estimates multiplied, in whole seconds; what was positive stays at least 1 s."""
        records = self.records.copy()
        for column in (Column.RUNTIME, Column.ESTIMATE):
            seconds = records[:, column]
            # 0 would mean "not known".
            records[:, column] = np.where(seconds > 0, np.maximum(np.rint(seconds * factor), 1), seconds)
        return replace(self, records=_fixed(records))

    def resized(self, factor: float, most: int) -> Self:
        """Processors multiplied, in whole ones from 1 to ``most``; what was positive and not above that."""
        records = self.records.copy()
        for column in (Column.ALLOCATED, Column.REQUESTED):
            size = records[:, column]
            scaled = np.clip(np.rint(size * factor), 1, most)
            records[:, column] = np.where((size > 0) & (size <= most), scaled, size)
        return replace(self, records=_fixed(records))

    @property
    def extensions(self) -> str:
        """What the trace has beside its records, for a person; "": nothing."""
        return ""

    @property
    def max_processors(self) -> int | None:
        """The machine's size: the header's ``MaxProcs``, else ``MaxNodes``; None if neither says one."""
        for key in ("MaxProcs", "MaxNodes"):
            number = self._whole_number(key)
            if number is not None and number > 0:
                return number
        return None

    @property
    def epoch(self) -> int | None:
        """Epoch second of the trace's time 0: the header's ``UnixStartTime``; None if it has none."""
        number = self._whole_number("UnixStartTime")
        return number if number is not None and number > 0 else None

    @property
    def queue_names(self) -> dict[int, str]:
        """Queue's number -> name, as the header's lines ``Queue: NUMBER NAME`` say."""
        return self.names("Queue")

    def names(self, *fields: str) -> dict[int, str]:
        """Number -> name, as the header's lines ``FIELD: NUMBER NAME`` of these fields say."""
        text = "\n".join(self.fields.get(field, "") for field in fields)
        return {int(number): name for number, name in _NAMED.findall(text)}

    def _whole_number(self, key: str) -> int | None:
        spelt = (name for name in self.fields if name.casefold() == key.casefold())
        return whole_number(self.fields[key] if key in self.fields else self.fields.get(next(spelt, ""), ""))

    def summary(self) -> dict[str, int]:
        """How many issues there are of each kind, most frequent first."""
        return dict(Counter(issue.kind for issue in self.issues).most_common())

    def describe_issues(self, *, verbose: bool = False) -> list[str]:
        """Lines for a person: one a kind of issue, and one an issue as well if ``verbose``.

        What breaks the format is named with its first line in any case. No lines at all for a clean trace.
        """
        lines = []
        for kind, count in self.summary().items():
            skipped = "skipped: " if kind in SKIPPED else ""
            said = f"{self.path}: {count} {'line' if count == 1 else 'lines'} {skipped}{kind}"
            found = [issue for issue in self.issues if issue.kind == kind]
            if kind in BROKEN and not verbose:
                first = "" if count == 1 else "the first is "
                said += f" ({first}line {found[0].line_number}: {found[0].text})"
            lines.append(said)
            if verbose:
                lines += [f"{self.path}:{issue.line_number}: {issue.text}" for issue in found]
        return lines
