"""Jobs that ran in parts: lines of the standard format with the status 2, 3 or 4.

A job that was checkpointed or swapped out has a line of its own, with all its runtime and how it ended
(status 0, 1 or 5), and beside it a line a part with the same number: status 2 for a part that was continued,
3 and 4 for the last (completed, failed). So the parts count with the job's own line, and are left out.

What the format leaves open: the parts of a job that has no line of its own, as in a log that was cut from a
longer log, are joined. Such a job is submitted with its first part that says when, ran for the sum of its
parts on the processors of the largest, and ended as its last part says (2: not known); the rest is the first
part's.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headway.workload import trace as kinds
from headway.workload.trace import Column, Issue, Records

#: A part's status -> that of the job whose last part it is.
_ENDED = {2.0: -1.0, 3.0: 1.0, 4.0: 0.0}


def whole_jobs(records: Records, lines: NDArray[np.int64]) -> tuple[Records, NDArray[np.int64], list[Issue]]:
    """The records of a file, in its order, with one row a job; their lines; and an issue a part."""
    part = np.isin(records[:, Column.STATUS], list(_ENDED))
    if not part.any():
        return records, lines, []
    numbers = records[:, Column.NUMBER]
    line_of = dict(zip(numbers[~part].tolist(), lines[~part].tolist(), strict=True))
    kept = ~part
    records = records.copy()
    issues = []
    ownless: dict[float, list[int]] = {}
    for row in np.flatnonzero(part).tolist():
        number = float(numbers[row])
        if number in line_of:
            text = f"a part of job {number:.15g}, whose own line is {line_of[number]}"
            issues.append(Issue(int(lines[row]), kinds.PARTIAL, text))
        else:
            ownless.setdefault(number, []).append(row)
    for number, rows in ownless.items():
        first, *others = rows
        records[first] = _joined(records[rows])
        kept[first] = True
        text = f"{len(rows)} parts of job {number:.15g}, which has no line of its own"
        issues.append(Issue(int(lines[first]), kinds.JOINED, text))
        text = f"a part of job {number:.15g}, joined to line {lines[first]}"
        issues += [Issue(int(lines[row]), kinds.PARTIAL, text) for row in others]
    return records[kept], lines[kept], issues


def _joined(parts: Records) -> Records:
    """The record of the job that has these parts."""
    job: Records = parts[0].copy()
    told = parts[:, Column.SUBMIT] >= 0
    if told.any():
        job[Column.SUBMIT] = parts[told, Column.SUBMIT][0]
    runtimes = parts[:, Column.RUNTIME]
    job[Column.RUNTIME] = runtimes.sum() if (runtimes >= 0).all() else -1
    for column in (Column.ALLOCATED, Column.REQUESTED, Column.ESTIMATE):
        job[column] = parts[:, column].max()
    job[Column.STATUS] = _ENDED[float(parts[-1, Column.STATUS])]
    return job
