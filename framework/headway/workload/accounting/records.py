"""Accounting as a trace: a record of the standard format for each job that ran.

Users, groups and queues are numbers, in the order of their names; the header says the queues' names, as the
format has it (``; Queue: 1 batch``), and the others' names are nowhere. Groups are accounts (of LSF:
projects) where a job tells one, else the users' groups. A job's number is that of the batch system if no
two jobs share one, else they are counted. A submission after the start counts as at the start, and so does
one that is not told. Times of a machine's zone count as UTC.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from headway.workload import trace as kinds
from headway.workload.ended import Ended
from headway.workload.format import Format
from headway.workload.left_out import LeftOut
from headway.workload.packed import Source
from headway.workload.texts import lines_of
from headway.workload.trace import WIDTH, Column, Trace


def accounting_format(
    about: str,
    begins: Callable[[Sequence[str]], bool],
    ended: Callable[[Sequence[str], LeftOut, bool], list[Ended]],
) -> Format:
    """The format of a batch system's accounting, by the functions that a :class:`Format` has."""

    def read(source: Source, strict: bool) -> Trace:
        left = LeftOut(source.path, strict)
        return trace_of(ended(lines_of(source, left), left, False), left)

    return Format(about, read, begins=begins, ended=ended)


def trace_of(ended: Sequence[Ended], left: LeftOut) -> Trace:
    """The jobs that ran, with what was left out; :class:`UserError` if there is none."""
    ran = [job for job in ended if job.seconds > 0 or job.start is not None]
    if not ran:
        raise left.nothing("jobs that ran and ended")
    for job in ended:
        if job.seconds <= 0 and job.start is None:
            left.note(job.line, kinds.NEVER_RAN, f"job {job.job_id} ended without a start")
    ran.sort(key=lambda job: (_submit(job), job.end))
    first = _submit(ran[0])
    numbers = [re.match(r"\d{1,15}(?![\d\[_])", job.job_id, re.ASCII) for job in ran]
    known = {found.group() for found in numbers if found}
    users = _numbers(job.user for job in ran)
    groups = _numbers(_group(job) for job in ran)
    queues = _numbers(job.pool for job in ran)
    records = np.full((len(ran), WIDTH), -1.0)
    for at, (job, row) in enumerate(zip(ran, records, strict=True)):
        own = numbers[at]
        row[Column.NUMBER] = int(own.group()) if own and len(known) == len(ran) else at + 1
        row[Column.SUBMIT] = _submit(job) - first
        row[Column.WAIT] = _start(job) - _submit(job)
        row[Column.RUNTIME] = job.seconds
        row[Column.ALLOCATED] = row[Column.REQUESTED] = job.processors or -1
        row[Column.ESTIMATE] = -1 if job.limit is None else job.limit
        row[Column.STATUS] = 5 if job.cancelled else int(job.completed)
        row[Column.USER] = users.get(job.user, -1)
        row[Column.GROUP] = groups.get(_group(job), -1)
        row[Column.QUEUE] = queues.get(job.pool, -1)
    records.setflags(write=False)
    fields = {"UnixStartTime": f"{first:.0f}"}
    named = [f"{number} {_plain(name)}" for name, number in queues.items()]
    if named:
        fields["Queue"] = "\n".join(named)
    header = [f"; UnixStartTime: {first:.0f}", *(f"; Queue: {one}" for one in named)]
    if without := len(ended) - len(ran):
        header.append(f"; Note: without {without:,} jobs that never ran")
    lines = np.array([job.line for job in ran], np.int64)
    issues = sorted(left.issues, key=lambda issue: issue.line_number)
    return Trace(left.source, header, fields, records, lines, issues)


def _start(job: Ended) -> float:
    return job.end - job.seconds if job.start is None else job.start


def _submit(job: Ended) -> float:
    start = _start(job)
    return start if job.submit is None else min(job.submit, start)


def _group(job: Ended) -> str:
    return job.account or job.group


def _numbers(names: Iterable[str]) -> dict[str, int]:
    """Each name that is not empty -> its number, from 1 on."""
    return {name: at for at, name in enumerate(sorted({name for name in names if name}), 1)}


def _plain(name: str) -> str:
    """A name as it may stand in a header."""
    return re.sub(r"[^\x21-\x7e]", "?", name)
