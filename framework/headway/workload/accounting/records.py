"""Accounting as a trace: a record of the standard format for each job that ran.

Users and queues are numbers, in the order of their names; the header says the queues' names, as the
format has it (``; Queue: 1 batch``), and users' names are nowhere. A job's number is that of the batch
system if no two jobs share one, else they are counted. A submission after the start counts as at the start,
and so does one that is not told. Times of a machine's zone count as UTC.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from headway.errors import UserError
from headway.workload.accounting.ended import Ended
from headway.workload.accounting.kinds import parse_accounting
from headway.workload.trace import WIDTH, Column, Trace


def accounted_trace(text: str, source: str) -> Trace:
    """The jobs of a text that ran; :class:`UserError` names the place of what is wrong in it, or says that
    there is none."""
    ended = parse_accounting(text, source)
    ran = [job for job in ended if job.seconds > 0 or job.start is not None]
    if not ran:
        raise UserError(f"{source}: expected jobs that ran and ended, found none")
    ran.sort(key=_submit)
    first = _submit(ran[0])
    numbers = [re.match(r"\d{1,15}(?![\d\[_])", job.job_id, re.ASCII) for job in ran]
    known = {found.group() for found in numbers if found}
    users = _numbers(job.user for job in ran)
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
        row[Column.STATUS] = int(job.completed)
        row[Column.USER] = users.get(job.user, -1)
        row[Column.QUEUE] = queues.get(job.pool, -1)
    records.setflags(write=False)
    fields = {"UnixStartTime": f"{first:.0f}"}
    named = [f"{number} {_plain(name)}" for name, number in queues.items()]
    if named:
        fields["Queue"] = "\n".join(named)
    header = [f"; UnixStartTime: {first:.0f}", *(f"; Queue: {one}" for one in named)]
    left = len(ended) - len(ran)
    if left:
        header.append(f"; Note: without {left:,} jobs that never ran")
    lines = np.array([job.line for job in ran], np.int64)
    return Trace(source, header, fields, records, lines)


def _start(job: Ended) -> float:
    return job.end - job.seconds if job.start is None else job.start


def _submit(job: Ended) -> float:
    start = _start(job)
    return start if job.submit is None else min(job.submit, start)


def _numbers(names: Iterable[str]) -> dict[str, int]:
    """Each name that is not empty -> its number, from 1 on."""
    return {name: at for at, name in enumerate(sorted({name for name in names if name}), 1)}


def _plain(name: str) -> str:
    """A name as it may stand in a header."""
    return re.sub(r"[^\x21-\x7e]", "?", name)
