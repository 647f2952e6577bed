"""Numbers that are no numbers of any job, however they came into a file."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from headway.errors import UserError
from headway.workload.trace import TOO_LARGE, Column, Issue, Trace

#: Seconds: three thousand years, in which seconds since 1970 have their place.
LONGEST_TIME = 1e11
#: What else is counted.
LARGEST = 1e15

_MOST = np.full(len(Column), LARGEST)
_MOST[[Column.SUBMIT, Column.WAIT, Column.RUNTIME, Column.CPU_TIME, Column.ESTIMATE, Column.THINK_TIME]] = (
    LONGEST_TIME
)
_MOST[[Column.ALLOCATED, Column.REQUESTED]] = 1e9


def within_bounds(trace: Trace, strict: bool) -> Trace:
    """The trace without jobs that have a number beyond all bounds, each of which is among its issues.

    Raises :class:`UserError` for the first of them with ``strict``, and if no other job is left.
    """
    beyond = np.abs(trace.records) > _MOST
    bad: NDArray[np.bool_] = np.asarray(beyond.any(axis=1))
    if not bad.any():
        return trace
    issues = []
    for row in np.flatnonzero(bad).tolist():
        column = int(np.flatnonzero(beyond[row])[0])
        text = f"field {column + 1}: expected at most {_MOST[column]:g}, found {trace.records[row, column]:g}"
        issues.append(Issue(int(trace.line_numbers[row]), TOO_LARGE, text))
    if strict or bad.all():
        raise UserError(f"{trace.path}:{issues[0].line_number}: {issues[0].text}")
    found = sorted([*trace.issues, *issues], key=lambda issue: issue.line_number)
    return replace(trace.part(np.logical_not(bad)), issues=found)
