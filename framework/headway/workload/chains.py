"""Feedback: jobs of a log that their user submitted once another one had ended.

A log's submissions are what users did under the schedule that they saw. Replayed at their own times (an open
system) they do not react to another schedule. D. G. Feitelson and L. Rudolph, "Metrics and benchmarking for
parallel job scheduling", JSSPP 1998, and E. Frachtenberg and D. G. Feitelson, "Pitfalls in parallel job
scheduling evaluation", JSSPP 2005 (pitfall 6), want them to. In a *chain* each job comes so long after its
predecessor ended: the user's think time.

- The format has fields for that: 17 (preceding job) and 18 (think time, seconds). A trace in which any job
  has a preceding one says so of all that have: these are taken. Where field 18 says nothing, the think time
  is what the trace's own times say; 0 if they do not either.
- Other traces, which are nearly all: a job follows the job of its user that ended last before it was
  submitted (the later one in the file of several), if that was at most 20 minutes before, as in sessions (N.
  Zakay and D. G. Feitelson, "On identifying user session boundaries in parallel workload logs", JSSPP 2012).
  The think time is what passed between. A job that is submitted while others still wait or run does not
  follow these.

Chains are read from the log as it was recorded, before its load is changed: think times are the users'.
Where loads are changed by the times between submissions, the times of jobs that follow no job change.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from headway.errors import UserError
from headway.workload.cwf import CloudTrace
from headway.workload.jobs import Follows, TraceJob
from headway.workload.resampling import THINK
from headway.workload.trace import Column, Records, Trace

_Flags = NDArray[np.bool_]


def recorded_chains(trace: Trace) -> bool:
    """Whether the trace itself says of any job which job it follows."""
    return bool((trace.records[:, Column.PRECEDING] > 0).any())


def with_chains(trace: Trace, think: float = THINK) -> Trace:
    """The trace with fields 17 and 18 of all jobs that follow others: its own, or inferred where it has none.
    Before its load is changed: think times come from its unchanged times.

    ``think``: seconds, the longest think time that is inferred. Raises :class:`UserError` for a trace with
    requested starts or elastic commands, whose times do not move with their jobs, and for one that neither
    has fields 17 nor says when jobs ended (fields 3 and 4).
    """
    if isinstance(trace, CloudTrace) and (trace.dedicated or trace.commands):
        raise UserError(
            f"{trace.path}: feedback: expected jobs alone, found requested starts or elastic commands"
        )
    known = _ended(trace.records)
    if recorded_chains(trace):
        untold = (trace.records[:, Column.PRECEDING] > 0) & (trace.records[:, Column.THINK_TIME] < 0)
        return _changed(trace, partial(_think, known=known, untold=untold)) if untold.any() else trace
    if not known.any():
        raise UserError(
            f"{trace.path}: feedback: expected preceding jobs (field 17), or waits and runtimes (fields 3 "
            "and 4) to infer them from, found neither"
        )
    return _changed(trace, partial(_infer, known=known, think=think))


def _changed(trace: Trace, change: Callable[[Records], None]) -> Trace:
    """The trace with other records."""
    records = trace.records.copy()
    change(records)
    records.setflags(write=False)
    return dataclasses.replace(trace, records=records)


def _ended(records: Records) -> _Flags:
    """Of which jobs the trace says when they ended."""
    known: _Flags = (records[:, Column.WAIT] >= 0) & (records[:, Column.RUNTIME] >= 0)
    return known


def _ends(records: Records) -> Records:
    """When jobs ended, where that is known."""
    ends: Records = records[:, Column.SUBMIT] + records[:, Column.WAIT] + records[:, Column.RUNTIME]
    return ends


def _think(records: Records, known: _Flags, untold: _Flags) -> None:
    """Set field 18 of the jobs of which it is not told: what passed since the preceding one (the first of
    that number) ended."""
    ends = _ends(records)
    rows: dict[int, int] = {}
    for row, number in enumerate(records[:, Column.NUMBER].tolist()):
        rows.setdefault(int(number), row)
    for row in np.flatnonzero(untold).tolist():
        other = rows.get(int(records[row, Column.PRECEDING]))
        since = records[row, Column.SUBMIT] - ends[other] if other is not None and known[other] else 0.0
        records[row, Column.THINK_TIME] = max(since, 0.0)


def _infer(records: Records, known: _Flags, think: float) -> None:
    """Set fields 17 and 18 of the jobs that follow others."""
    ends = _ends(records)
    #: By user: (end, row) of jobs that have not ended yet, as a heap; and of the job that ended last.
    running: dict[float, list[tuple[float, int]]] = {}
    last: dict[float, tuple[float, int]] = {}
    for row, (submit, user) in enumerate(records[:, [Column.SUBMIT, Column.USER]].tolist()):
        if user < 0:
            continue
        theirs = running.setdefault(user, [])
        while theirs and theirs[0][0] <= submit:
            last[user] = heappop(theirs)
        found = last.get(user)
        if found is not None and submit - found[0] <= think:
            records[row, Column.PRECEDING] = records[found[1], Column.NUMBER]
            records[row, Column.THINK_TIME] = submit - found[0]
        if known[row]:
            heappush(theirs, (float(ends[row]), row))


def chains_of(trace: Trace, jobs: Sequence[TraceJob]) -> dict[str, Follows]:
    """The preceding jobs of these jobs of a trace of :func:`with_chains` (in its order), by id.

    A job whose preceding job is not among them, or not before it, follows no job: it is submitted at its
    own time.
    """
    records = trace.records
    found: dict[str, Follows] = {}
    #: By job number; of several of one number the first.
    before: dict[int, TraceJob] = {}
    for job in jobs:
        record = records[job.row]
        other = before.get(int(record[Column.PRECEDING])) if record[Column.PRECEDING] > 0 else None
        if other is not None:
            found[job.job.id] = Follows(other.job.id, max(float(record[Column.THINK_TIME]), 0.0))
        before.setdefault(int(record[Column.NUMBER]), job)
    return found
