"""Per-job metrics, as columns.

Wait and turnaround (response) time, slowdown, and bounded slowdown as in D. G. Feitelson,
L. Rudolph, U. Schwiegelshohn, K. C. Sevcik and P. Wong, "Theory and practice in parallel job
scheduling", JSSPP 1997: the slowdown of a very short job is ruled by its runtime and not by the
schedule, so the bounded slowdown takes 10 seconds for every runtime below that, and is at least 1.

A job has a metric only if the metric means something for it (a job that never started has no wait);
elsewhere the column is NaN, and statistics leave it out and say how many they took.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headway.model import processors_of
from headway.results import JobResult, RunResult

#: Seconds: the runtime below which the bounded slowdown does not go.
BOUND = 10.0

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class JobColumns:
    """One value a job, in the order of :attr:`RunResult.jobs`; NaN where it does not apply.

    Times are seconds, absolute ones on the run's clock.
    """

    submit: Floats
    #: NaN: never started.
    start: Floats
    #: NaN: did not end before the run did.
    end: Floats
    #: Processors asked for.
    processors: NDArray[np.int64]
    #: Processors held while it ran: of the placement (whole nodes if exclusive), else as asked for.
    allocated: NDArray[np.int64]
    estimate: Floats
    #: Seconds of execution; NaN: never started, or still running.
    runtime: Floats

    @property
    def started(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.start)

    @property
    def finished(self) -> NDArray[np.bool_]:
        """True for a job that ran and ended, in whatever way."""
        return ~np.isnan(self.start) & ~np.isnan(self.end)

    @property
    def wait(self) -> Floats:
        """Submission to (last) start."""
        return self.start - self.submit

    @property
    def turnaround(self) -> Floats:
        """Submission to end, of jobs that ran."""
        return np.where(self.finished, self.end - self.submit, np.nan)

    @property
    def slowdown(self) -> Floats:
        """Turnaround over runtime; NaN for a runtime of 0, which has none."""
        runtime = np.where(self.runtime > 0, self.runtime, np.nan)
        return self.turnaround / runtime

    @property
    def bounded_slowdown(self) -> Floats:
        """max(1, turnaround / max(runtime, 10 s))."""
        return bounded_slowdown(self, BOUND)

    @property
    def accuracy(self) -> Floats:
        """Runtime over estimate: 1 is a perfect estimate, 0.1 one ten times too long; NaN without one."""
        estimate = np.where(self.estimate > 0, self.estimate, np.nan)
        return self.runtime / estimate


def bounded_slowdown(columns: JobColumns, bound: float) -> Floats:
    """max(1, turnaround / max(runtime, bound)), bound in seconds."""
    return np.maximum(1.0, columns.turnaround / np.maximum(columns.runtime, bound))


def job_columns(result: RunResult) -> JobColumns:
    """The columns of a run's jobs."""
    jobs = result.jobs
    n = len(jobs)
    nan = np.nan
    start = np.fromiter((nan if j.start_time is None else j.start_time for j in jobs), np.float64, n)
    end = np.fromiter((nan if j.end_time is None else j.end_time for j in jobs), np.float64, n)
    runtime = np.fromiter((j.runtime for j in jobs), np.float64, n)
    runtime[np.isnan(start) | np.isnan(end)] = nan
    return JobColumns(
        submit=np.fromiter((j.job.submit_time for j in jobs), np.float64, n),
        start=start,
        end=end,
        processors=np.fromiter((j.job.request.processors for j in jobs), np.int64, n),
        allocated=np.fromiter((allocated(j) for j in jobs), np.int64, n),
        estimate=np.fromiter((j.job.request.walltime for j in jobs), np.float64, n),
        runtime=runtime,
    )


def occupations(result: RunResult, columns: JobColumns) -> tuple[NDArray[np.int64], Floats, Floats, Floats]:
    """Which job (by its place in the result) had how many processors from when until when, as columns: job,
    start, end, processors. A job that ran as a bundle, or was suspended, has several.
    End NaN: until the end of the run."""
    bundled = np.fromiter((bool(job.several) for job in result.jobs), np.bool_, len(result.jobs))
    plain = np.flatnonzero(columns.started & ~bundled)
    rows, start, end = plain, columns.start[plain], columns.end[plain]
    size = columns.allocated[plain].astype(np.float64)
    if bundled.any():
        more = [
            (row, member) for row in np.flatnonzero(bundled).tolist() for member in result.jobs[row].several
        ]
        rows = np.concatenate([rows, [row for row, _ in more]])
        start = np.concatenate([start, [m.start for _, m in more]])
        end = np.concatenate([end, [np.nan if m.end is None else m.end for _, m in more]])
        size = np.concatenate([size, [m.processors for _, m in more]])
    return rows, start, end, size


def idle_seconds(result: RunResult, columns: JobColumns) -> Floats:
    """For how many seconds each job had its processors and did not work: it was suspended or paused, or its
    neighbours there were at work. 0 for a job that has not ended."""
    held = columns.end - columns.start
    if any(job.spans for job in result.jobs):
        rows, start, end, _ = occupations(result, columns)
        lent = np.fromiter((bool(job.spans) for job in result.jobs), np.bool_, len(result.jobs))
        held = np.where(lent, np.bincount(rows, end - start, len(lent)), held)
    return np.maximum(np.where(columns.finished, held - columns.runtime, 0.0), 0.0)


def allocated(job: JobResult) -> int:
    """Processors that the job holds while it runs (asks for, if it has no placement)."""
    return processors_of(job.placement) if job.placement else job.job.request.processors
