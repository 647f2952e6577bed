"""Resource equality: what a job deserved of the processors that were in use, and what it got.

G. Sabin, P. Sadayappan: Unfairness Metrics for Space-Sharing Parallel Job Schedulers. JSSPP 2005, section
3.2,
after the RAQFM of Raz, Levy and Avi-Itzhak. At each moment the processors in use are shared among all jobs
present, waiting or running, in proportion to their sizes::

    deserved_i = integral from a_i to c_i of min(n_i u(t) / A(t), n_i) dt
    unfairness_i = deserved_i - n_i r_i                    (positive: it got less than it deserved)

n_i: processors asked for; u(t): sum over running jobs; A(t): sum over all jobs present. u is never more than
A, so the minimum never binds, and deserved_i = n_i (F(c_i) - F(a_i)) with F the integral of u / A. What is
idle is not shared out, so waste alone is not unfair, and the unfairness of all jobs together is 0.

Ours: a job is present from when it is eligible (begin time, dependencies) until it ends or is cancelled.
While
it is suspended it is present and uses nothing; a run that was cut off and repeated was use. A job that never
ran, or did not end before the run did, has no unfairness.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headway.errors import UserError
from headway.metrics import JobColumns, job_columns
from headway.metrics.system import eligible, span
from headway.results import RunResult

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Equality:
    """A value a job, in the order of the run's; processor-seconds, NaN for a job without a value."""

    deserved: Floats
    #: Deserved less got.
    unfairness: Floats
    #: Jobs that ran and had not ended when the run did.
    unfinished: int
    #: Jobs that could have started and have not.
    waiting: int = 0


def resource_equality(result: RunResult, columns: JobColumns | None = None) -> Equality:
    """The resource equality of a run's jobs. n log n. Raises :class:`UserError` for a run with bundles, whose
    processors change while they run."""
    if any(job.members for job in result.jobs):
        raise UserError("resource equality: expected jobs of one size, found bundles of subjobs")
    columns = columns or job_columns(result)
    count = len(columns.submit)
    if not count:
        return Equality(np.empty(0), np.empty(0), 0)
    begin, _ = span(result, columns)
    size = columns.processors.astype(np.float64)
    here, gone, present, rows, since, until = presence(result, columns)
    times = np.unique(np.concatenate([here[present], gone[present], since, until]))
    if len(times) < 2:
        times = np.array([begin, begin + 1.0])
    use = _level(times, since, until, size[rows])
    asked = _level(times, here[present], gone[present], size[present])
    share = np.divide(use, asked, out=np.zeros_like(use), where=asked > 0)
    integral = np.concatenate([[0.0], np.cumsum(share * np.diff(times))])
    deserved = size * (np.interp(gone, times, integral) - np.interp(here, times, integral))
    got = size * np.bincount(rows, until - since, count)
    deserved = np.where(columns.finished, deserved, np.nan)
    unfinished = columns.started & ~columns.finished
    waiting = present & ~columns.started & np.isnan(columns.end)
    return Equality(deserved, deserved - got, int(unfinished.sum()), int(waiting.sum()))


class Presence(NamedTuple):
    """The jobs that were there, and the jobs that used processors; absolute seconds."""

    #: A value a job: from when until when it was there, and whether it was there at all.
    here: Floats
    gone: Floats
    present: NDArray[np.bool_]
    #: A value for each span of use: the job's place in the run, from, until.
    rows: NDArray[np.int64]
    since: Floats
    until: Floats


def presence(result: RunResult, columns: JobColumns) -> Presence:
    """When the jobs of a run, which must have some, were waiting or running, and when they ran."""
    _, end = span(result, columns)
    here = eligible(result, columns)
    gone = np.where(np.isnan(columns.end), end, columns.end)
    held = np.fromiter((j.job.held and j.start_time is None for j in result.jobs), np.bool_, len(here))
    return Presence(here, gone, (gone > here) & ~held, *_used(result, columns, gone))


def _used(result: RunResult, columns: JobColumns, gone: Floats) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Which job (its place in the run) ran when: job, from, until."""
    rows = np.flatnonzero(columns.started)
    since = np.array([
        job.start_time if job.active_since is None else job.active_since
        for job in result.jobs
        if job.start_time is not None
    ], np.float64)  # fmt: skip
    until = np.maximum(gone[rows], since)
    if result.activities:
        place = {job.job.id: at for at, job in enumerate(result.jobs)}
        earlier = [one for one in result.activities if one.job_id in place]
        rows = np.concatenate([rows, np.array([place[one.job_id] for one in earlier], np.int64)])
        since = np.concatenate([since, [one.start for one in earlier]])
        until = np.concatenate([until, [one.end for one in earlier]])
    return rows.astype(np.int64), since, until


def _level(times: Floats, since: Floats, until: Floats, size: Floats) -> Floats:
    """Processors in each span between two of ``times``."""
    change = np.zeros(len(times))
    np.add.at(change, np.searchsorted(times, since), size)
    np.subtract.at(change, np.searchsorted(times, until), size)
    # Sizes are whole numbers, so sums are exact and nothing is left over at the end.
    level: Floats = np.cumsum(change)[:-1]
    return level
