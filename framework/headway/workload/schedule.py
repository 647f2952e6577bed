"""A run's schedule in the Standard Workload Format."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import numpy as np

from headway.model import processors_of
from headway.results import JobResult
from headway.workload.emulation import STATUS_OF_OUTCOME, job_records
from headway.workload.swf import checked_records, formatted, with_notes, write_lines
from headway.workload.trace import Column, Records, Trace
from headway.workload.trace_pools import partition_header

_EXPLANATION = (
    "THIS IS A SIMULATED SCHEDULE, made by headway",
    "fields 3 (wait), 4 (runtime), 5 (allocated processors) and 11 (status) say what happened in it;",
    "-1 in fields 3 to 5: the job did not start, in field 4 alone: it had not ended;",
    "status 0 also stands for jobs that reached their time limit",
)

#: Records that are copied together: there may be very many.
_BLOCK = 8192


def schedule_records(
    jobs: Sequence[JobResult], trace: Trace | None = None, pools: Sequence[str] = ()
) -> Records:
    """One record a job, n x 18, in the order of ``jobs``.

    A job of the trace (``row`` not negative) keeps its record, in which wait (submission to last start),
    runtime, allocated processors and status are replaced. The status of a job that ran to its end stays
    what the trace says (its program failed there as here); otherwise it is as in
    :data:`headway.workload.emulation.STATUS_OF_OUTCOME`, -1 for jobs that wait or run still. Where the
    record has no requested processors or estimate, it gets the values that the run used, because the fields
    they were taken from are replaced. Other jobs get a record as of
    :func:`headway.workload.emulation.to_records`. The partition is the place among ``pools``, from 1 on, of
    the pool that the job was sent to, or that it ran in if it was sent to several; it stays what the record
    says if there are none.
    """
    rows = np.fromiter((result.row for result in jobs), np.int64, len(jobs))
    if trace is not None and (rows >= 0).all():
        records = trace.records[rows]
    else:
        descriptions = [result.job for result in jobs]
        records = job_records(descriptions, [-1.0] * len(jobs), [result.state for result in jobs])
        if trace is not None:
            known = np.flatnonzero(rows >= 0)
            records[known] = trace.records[rows[known]]
    status = [STATUS_OF_OUTCOME.get(result.state, -1) for result in jobs]
    if trace is not None:
        requests = [result.job.request for result in jobs]
        for column, used in (
            (Column.REQUESTED, [request.processors for request in requests]),
            (Column.ESTIMATE, [request.walltime for request in requests]),
        ):
            values = records[:, column]
            records[:, column] = np.where(values > 0, values, used)
    ran_through = np.array([result.state == "completed" and result.row >= 0 for result in jobs], np.bool_)
    keep = (
        ran_through & (records[:, Column.STATUS] >= 0) if trace is not None else np.zeros(len(jobs), np.bool_)
    )
    records[:, Column.STATUS] = np.where(keep, records[:, Column.STATUS], status)
    # Where submissions react to ends, they differ from the trace's.
    records[:, Column.SUBMIT] = [result.job.submit_time for result in jobs]
    records[:, Column.WAIT] = [
        -1 if result.start_time is None else result.start_time - result.job.submit_time for result in jobs
    ]
    records[:, Column.RUNTIME] = [
        -1 if result.start_time is None or result.end_time is None else result.runtime for result in jobs
    ]
    records[:, Column.ALLOCATED] = [
        -1 if result.start_time is None else processors_of(result.placement) or result.job.request.processors
        for result in jobs
    ]
    if pools:
        number_of = {name: number for number, name in enumerate(pools, start=1)}
        names = [result.pool or result.job.pool for result in jobs]
        records[:, Column.PARTITION] = [number_of.get(name, -1) for name in names]
    return records


def write_schedule(
    path: str | os.PathLike[str],
    jobs: Sequence[JobResult],
    trace: Trace | None = None,
    *,
    notes: Sequence[str] = (),
    processors: int | None = None,
    epoch: float | None = None,
    pools: Sequence[str] = (),
) -> None:
    """Write what happened to ``jobs`` as a trace, compressed if ``path`` ends in ``.gz``.

    The header is the trace's, if there is one, with notes that say what the fields mean here, and the
    further ``notes``. Without a trace it is made up of ``processors`` (the machine's size) and ``epoch``
    (the epoch second of the run's time 0), as far as given. ``pools``: the header names them as the
    partitions 1, 2, ..., and the records say which one each job was in.

    Raises :class:`headway.errors.Failure` if the file cannot be written.
    """
    header = _header(len(jobs), processors, epoch) if trace is None else trace.header
    if pools:
        header = partition_header(header, pools)
    blocks: Iterator[Sequence[JobResult]]
    if trace is not None and all(result.row >= 0 for result in jobs):
        # Each has its own record, so that they can be made a few at a time: there may be very many.
        blocks = (jobs[first : first + _BLOCK] for first in range(0, len(jobs), _BLOCK))
    else:
        blocks = iter([jobs])
    lines = (
        line for block in blocks for line in formatted(checked_records(schedule_records(block, trace, pools)))
    )
    write_lines(path, with_notes(header, [*_EXPLANATION, *notes]), lines)


def _header(count: int, processors: int | None, epoch: float | None) -> list[str]:
    lines = ["; Version: 2.2", f"; MaxJobs: {count}", f"; MaxRecords: {count}"]
    if epoch is not None:
        lines.append(f"; UnixStartTime: {epoch:.0f}")
    if processors is not None:
        lines += [f"; MaxNodes: {processors}", f"; MaxProcs: {processors}"]
    return lines
