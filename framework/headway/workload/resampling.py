"""Other workloads that a log might have been: by weeks, or by users.

N. Zakay and D. G. Feitelson, "Workload resampling for performance evaluation of parallel job schedulers",
Concurrency and Computation: Practice and Experience 26, 2014: users of a log are drawn anew and shifted by
whole weeks, so that the structure within a user's stream, and daily and weekly cycles, stay. What was
decided here:

- *Weeks* are seven days since the first submission. As many weeks as the log has are drawn with replacement
  and put one behind the other. A session (jobs of one user of which each is submitted at most 20 minutes
  after the job before had been submitted or had ended) is not cut: it belongs to the week in which it
  began, and may reach into the next.
- *Users*: as many users as the log has are drawn with replacement. Each brings all jobs, shifted around the
  log's weeks by a number of weeks that is drawn; one that is drawn again is another user. Jobs without a
  user are one user.
- Job numbers are given anew, and the dependencies of fields 17 and 18 are dropped: their jobs may not be
  there.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from headway.errors import UserError
from headway.workload.cwf import CloudTrace
from headway.workload.dispersion import WEEK
from headway.workload.swf import with_notes
from headway.workload.trace import Column, Trace

#: Seconds from the end of a job (or its submission) to the next submission of its user's session.
THINK = 1200.0

Floats = NDArray[np.float64]


def resampled(trace: Trace, by: str, rng: np.random.Generator) -> Trace:
    """The trace drawn anew ``by`` "weeks" or "users".

    Raises :class:`UserError` for another word, and for a trace with requested starts or elastic commands.
    """
    if isinstance(trace, CloudTrace) and (trace.dedicated or trace.commands):
        raise UserError(
            f"{trace.path}: resampling: expected jobs alone, found requested starts or elastic commands"
        )
    if not len(trace):
        return trace
    if by == "weeks":
        return _by_weeks(trace, rng)
    if by == "users":
        return _by_users(trace, rng)
    raise UserError(f"resample: expected weeks or users, found {by!r}")


def session_starts(records: Floats) -> Floats:
    """For each job (in order of submission) the submit time of the first job of its session."""
    starts = records[:, Column.SUBMIT].copy()
    ends = starts + np.maximum(records[:, Column.WAIT], 0) + np.maximum(records[:, Column.RUNTIME], 0)
    order = np.lexsort((starts, records[:, Column.USER]))
    last_user, began, quiet = None, 0.0, 0.0
    for row in order.tolist():
        user, submit = records[row, Column.USER], starts[row]
        if user != last_user or submit > quiet + THINK:
            began, quiet = submit, submit
        last_user = user
        quiet = max(quiet, submit, float(ends[row]))
        starts[row] = began
    return starts


def _by_weeks(trace: Trace, rng: np.random.Generator) -> Trace:
    submit = trace.records[:, Column.SUBMIT]
    begin = float(submit[0])
    week = ((session_starts(trace.records) - begin) // WEEK).astype(np.int64)
    weeks = int((submit[-1] - begin) // WEEK) + 1
    rows, times = [], []
    for at, drawn in enumerate(rng.integers(0, weeks, weeks).tolist()):
        here = np.flatnonzero(week == drawn)
        rows.append(here)
        times.append(submit[here] + (at - drawn) * WEEK)
    return _made(trace, np.concatenate(rows), np.concatenate(times), "weeks")


def _by_users(trace: Trace, rng: np.random.Generator) -> Trace:
    submit = trace.records[:, Column.SUBMIT]
    begin = float(submit[0])
    weeks = int((submit[-1] - begin) // WEEK) + 1
    users, which = np.unique(trace.records[:, Column.USER], return_inverse=True)
    rows, times, names = [], [], []
    for name, drawn in enumerate(rng.integers(0, len(users), len(users)).tolist(), start=1):
        here = np.flatnonzero(which == drawn)
        rows.append(here)
        times.append(begin + (submit[here] - begin + int(rng.integers(0, weeks)) * WEEK) % (weeks * WEEK))
        names.append(np.full(len(here), name, np.float64))
    return _made(trace, np.concatenate(rows), np.concatenate(times), "users", np.concatenate(names))


def _made(trace: Trace, rows: NDArray[np.intp], times: Floats, by: str, users: Floats | None = None) -> Trace:
    records = trace.records[rows].copy()
    records[:, Column.SUBMIT] = times
    if users is not None:
        records[:, Column.USER] = users
    order = np.argsort(times, kind="stable")
    records = records[order]
    records[:, Column.NUMBER] = np.arange(1, len(records) + 1)
    records[:, Column.PRECEDING] = -1
    records[:, Column.THINK_TIME] = -1
    records.setflags(write=False)
    return dataclasses.replace(
        trace,
        records=records,
        line_numbers=trace.line_numbers[rows][order].copy(),
        header=with_notes(trace.header, [f"resampled by {by}"]),
    )
