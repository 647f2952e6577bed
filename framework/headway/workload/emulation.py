"""From a trace's records to the jobs of an emulation, and back.

What the fields mean to an emulation:

- size: field 8 (requested processors) if positive, else field 5 (allocated);
- estimate: field 9 if positive, else the runtime;
- runtime: field 4, not cut at the estimate. The emulated cluster ends a job at its estimate, as
  ``timed out`` if its runtime is longer;
- a job of unknown (negative) runtime or no positive size, or larger than the pool, is refused.

Beside that, user, group and executable (fields 12 to 14, if positive) become the job's user, group and
name, and the queue (field 15, where 0 counts: the format uses it for interactive jobs) its QOS, all as
decimal numbers. The status of a record is what happened under another scheduler: in an emulation a job
that is not ended at its estimate is ``completed``. A job's id is its number, and for the second and further
jobs of one number in the trace ``15#2``, ``15#3``. The dependencies of fields 17 and 18 are left out,
because the submit times of a recorded trace have them in them; :mod:`headway.workload.chains` reads them
for emulations in which submissions react.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.errors import UserError
from headway.model import JobDescription, Request
from headway.results import Refused
from headway.workload.jobs import TraceJob
from headway.workload.trace import WIDTH, Column, Records, Trace

#: The status field of outcomes; -1 (unknown) for all others.
STATUS_OF_OUTCOME = {
    "completed": 1,
    "failed": 0,
    "timed out": 0,
    "node failure": 0,
    "preempted": 0,
    "cancelled": 5,
}

KIB = 1024
#: Jobs that are made together.
_BLOCK = 8192


def sizes(records: Records) -> Records:
    """Processors of each job: field 8 if positive, else field 5 (which need not be positive)."""
    requested = records[:, Column.REQUESTED]
    return np.where(requested > 0, requested, records[:, Column.ALLOCATED])


def estimates(records: Records) -> Records:
    """Estimate of each job, seconds: field 9 if positive, else the runtime (which may be unknown)."""
    estimate = records[:, Column.ESTIMATE]
    return np.where(estimate > 0, estimate, records[:, Column.RUNTIME])


def trace_jobs(
    trace: Trace, processors: int | None, *, limit: int | None = None, pool: str = "pool"
) -> tuple[list[TraceJob], list[Refused]]:
    """The jobs of an emulation of ``trace`` on ``processors``, in order of submission, and the refused jobs.

    ``processors`` None: of any size. ``limit``: the first so many accepted jobs, and the refused ones
    before the last of them. Jobs are sent to ``pool``.

    Raises :class:`UserError` if ``processors`` or ``limit`` is not positive.
    """
    rows, end = accepted_rows(trace, processors, limit=limit)
    records = trace.records
    ids = _ids(records[:end, Column.NUMBER])
    refused = [
        Refused(ids[row], why_refused(records[row], processors), int(trace.line_numbers[row]))
        for row in np.setdiff1d(np.arange(end), rows, assume_unique=True).tolist()
    ]
    return _jobs(records, rows, ids, pool), refused


def accepted_rows(
    trace: Trace, processors: int | None, *, limit: int | None = None
) -> tuple[NDArray[np.intp], int]:
    """The rows of the jobs that :func:`trace_jobs` makes, and how many rows it looks at for them."""
    if processors is not None and processors < 1:
        raise UserError(f"processors: expected at least 1, found {processors}")
    if limit is not None and limit < 1:
        raise UserError(f"limit: expected at least 1, found {limit}")
    records = trace.records
    size = sizes(records)
    accepted = (records[:, Column.RUNTIME] >= 0) & (size > 0)
    if processors is not None:
        accepted &= size <= processors
    rows = np.flatnonzero(accepted)
    end = len(records)
    if limit is not None and len(rows) > limit:
        rows = rows[:limit]
        end = int(rows[-1]) + 1
    return rows, end


def why_refused(record: Records, processors: int | None) -> str:
    """Why this job is refused."""
    size = float(sizes(record[np.newaxis])[0])
    if record[Column.RUNTIME] < 0:
        return f"unknown runtime ({record[Column.RUNTIME]:g})"
    if size <= 0:
        return f"no positive number of processors ({size:g})"
    return f"larger than the pool ({size:.0f} of {processors} processors)"


def _ids(numbers: Records) -> list[str]:
    """Job numbers as distinct strings."""
    ids = [str(number) for number in numbers.astype(np.int64).tolist()]
    if len(set(ids)) < len(ids):
        seen: dict[str, int] = {}
        for row, name in enumerate(ids):
            seen[name] = seen.get(name, 0) + 1
            if seen[name] > 1:
                ids[row] = f"{name}#{seen[name]}"
    return ids


def _jobs(records: Records, rows: NDArray[np.intp], ids: Sequence[str], pool: str) -> list[TraceJob]:
    """The jobs of these rows of ``records``."""
    # Hundreds of thousands of jobs share few requests, users and queues: one object for each.
    requests: dict[tuple[float, float], Request] = {}
    names: dict[int, str] = {}

    def request(size: float, estimate: float) -> Request:
        key = (size, estimate)
        found = requests.get(key)
        if found is None:
            found = requests[key] = Request(processors=int(size), walltime=estimate)
        return found

    # A few at a time, so that no more of their numbers than that are there as Python's objects.
    blocks = (rows[first : first + _BLOCK] for first in range(0, len(rows), _BLOCK))
    return [
        TraceJob(
            job=JobDescription(
                id=ids[row],
                submit_time=submit,
                request=request(size, estimate),
                pool=pool,
                name=name,
                user=user,
                group=group,
                qos=queue,
            ),
            runtime=runtime,
            row=row,
        )
        for block in blocks
        for row, submit, runtime, size, estimate, user, group, name, queue in zip(
            block.tolist(),
            *_columns(records[block], names),
            strict=True,
        )
    ]


def _columns(records: Records, names: dict[int, str]) -> tuple[Sequence[Any], ...]:
    """Submission, runtime, size, estimate, user, group, name, queue. ``names``: the names of numbers so
    far."""
    return (
        records[:, Column.SUBMIT].tolist(),
        records[:, Column.RUNTIME].tolist(),
        sizes(records).tolist(),
        estimates(records).tolist(),
        _names(records[:, Column.USER], 1, names),
        _names(records[:, Column.GROUP], 1, names),
        _names(records[:, Column.EXECUTABLE], 1, names),
        _names(records[:, Column.QUEUE], 0, names),
    )


def _names(values: Records, least: int, known: dict[int, str]) -> list[str]:
    """Numbers from ``least`` on as strings, one object for each number; "" for the others."""
    distinct, which = np.unique(values.astype(np.int64), return_inverse=True)
    found = [known.setdefault(n, str(n)) if n >= least else "" for n in distinct.tolist()]
    return [found[index] for index in which.tolist()]


def to_records(jobs: Sequence[TraceJob]) -> Records:
    """Jobs as records, n x 18, fit for :func:`headway.workload.write_swf`.

    What no schedule has said yet (wait) and what a job does not have is -1. Both processor fields hold the
    size. Job ids that are not distinct whole numbers are replaced by 1, 2, ...; users, groups, names and
    queues that are not whole numbers are numbered in order of first appearance.
    """
    return job_records([j.job for j in jobs], [j.runtime for j in jobs], [j.outcome for j in jobs])


def job_records(
    jobs: Sequence[JobDescription], runtimes: Sequence[float], outcomes: Sequence[str]
) -> Records:
    """As :func:`to_records`, of descriptions with their runtimes (seconds) and outcomes."""
    records = np.full((len(jobs), WIDTH), -1.0)
    numbers = _numbers([job.id for job in jobs])
    if len(set(numbers)) < len(numbers) or -1 in numbers:
        numbers = list(range(1, len(jobs) + 1))
    requests = [job.request for job in jobs]
    size = [request.processors for request in requests]
    records[:, Column.NUMBER] = numbers
    records[:, Column.SUBMIT] = [job.submit_time for job in jobs]
    records[:, Column.RUNTIME] = runtimes
    records[:, Column.ALLOCATED] = size
    records[:, Column.REQUESTED] = size
    records[:, Column.ESTIMATE] = [request.walltime for request in requests]
    records[:, Column.REQUESTED_MEMORY] = [request.memory_per_processor / KIB or -1 for request in requests]
    records[:, Column.STATUS] = [STATUS_OF_OUTCOME.get(outcome, -1) for outcome in outcomes]
    records[:, Column.USER] = _numbers([job.user for job in jobs])
    records[:, Column.GROUP] = _numbers([job.group for job in jobs])
    records[:, Column.EXECUTABLE] = _numbers([job.name for job in jobs])
    records[:, Column.QUEUE] = _numbers([job.qos for job in jobs])
    return records


def _numbers(names: Sequence[str]) -> list[int]:
    """Names as numbers: themselves if all are whole numbers, else by first appearance; -1 for ""."""
    distinct = dict.fromkeys(name for name in names if name)
    if all(name.isascii() and name.isdigit() and len(name) <= 15 for name in distinct):
        number_of = {name: int(name) for name in distinct}
    else:
        number_of = {name: number for number, name in enumerate(distinct, start=1)}
    return [number_of.get(name, -1) for name in names]
