"""Fair start times: when each job would have started, under the same scheduler, without later arrivals.

G. Sabin, P. Sadayappan: Unfairness Metrics for Space-Sharing Parallel Job Schedulers. JSSPP 2005, section 3.1
and Figure 4. Jobs run for as long as they did; the policy knows their estimates. Jobs are numbered in the
order of submission, ties by their order in the workload.

*Strict*: from the state in which job j arrived, j among the waiting jobs, everything is run on without later
arrivals; its fair start is its start. A policy is deterministic, so up to that moment a run of the jobs 1..j
and a run of all jobs are the same. So *strict fair start of j = start of j in the run of the jobs 1..j*,
whatever state a plugin keeps (:func:`by_definition`).

*Relaxed*: j is added when all earlier jobs have started, so it cannot overtake. It starts at the first
moment at
which its processors are free: no earlier than its arrival and than the last start in the run of the jobs
1..j-1. Ends at a moment count as free then, and j may start at the very moment of that last start.

The definition needs a run for each job. :func:`by_drains` needs a single pass for the schedulers that it
knows, and compares the starts of that pass with the run's; where they differ it says so and gives nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headway.errors import UserError
from headway.results import JobResult, RunResult

Floats = NDArray[np.float64]

#: Plugins that decide nothing about when a job starts on a flat pool.
_HARMLESS = frozenset({"fairness", "first-fit", "best-fit"})
_POLICIES = ("fcfs", "strict", "greedy", "easy", "conservative")
_ORDERS = ("shortest-first", "largest-xfactor")
#: Conservative backfilling, as the drains name it.
_BOOKING_ALL = ("REBUILT", "KEPT")


@dataclass(frozen=True)
class FairStarts:
    """Absolute seconds, a value a job, in the order of the run's; NaN for a job that never started."""

    strict: Floats
    #: NaN for all if it was not asked for.
    relaxed: Floats
    #: "drains" or "definition".
    way: str


def fair_starts(result: RunResult, up_to: int = 0) -> FairStarts:
    """The fair start times of a run: by drains, else by definition if it has at most ``up_to`` jobs.

    Raises :class:`UserError` with the reason if neither can be done.
    """
    try:
        return by_drains(result)
    except UserError as error:
        if len(result.jobs) > up_to or isinstance(result.again, str):
            raise
        del error
    return by_definition(result)


def by_drains(result: RunResult) -> FairStarts:
    """Both fair start times of all jobs in one pass (:mod:`headway_plugins.fairness.drains`).

    Raises :class:`UserError` if the run is not of a kind that it knows, or its schedule differs.
    """
    from headway_plugins.fairness import drains

    policy, order, processors = _scheduler(result)
    if isinstance(result.again, str):
        raise UserError(f"fair start times: {result.again}")
    jobs, rows = _waiting_in_order(result.jobs)
    for job in jobs:
        one = job.job
        if one.dependencies or one.begin_time is not None or one.reservation or one.held or one.attributes:
            raise UserError(
                f"fair start times by drains: job {one.id} has a begin time, a dependency, a hold, a "
                f"reservation or "
                "attributes; expected plain jobs"
            )
        if job.end_time is None:
            raise UserError(f"fair start times: job {one.id} had not ended when the run did")
        if policy in _BOOKING_ALL and not one.request.walltime:
            # What is booked for no time keeps other jobs away at its start if it is the only booking.
            raise UserError(
                f"fair start times by drains: job {one.id} has a limit of no length; a drain cannot repeat "
                "conservative with such jobs"
            )
    start, strict, relaxed = drains.run_with_drains(
        processors,
        np.array([job.job.submit_time for job in jobs], np.float64),
        np.array([job.job.request.processors for job in jobs], np.int64),
        np.array([job.runtime for job in jobs], np.float64),
        np.array([job.job.request.walltime for job in jobs], np.float64),
        getattr(drains, policy),
        getattr(drains, order),
        True,
    )
    real = np.array([job.start_time for job in jobs], np.float64)
    if len(jobs) and not np.array_equal(start, real):
        first = jobs[int(np.argmax(start != real))].job.id
        raise UserError(
            f"fair start times by drains: job {first} started otherwise than the plugins' names say "
            "(another plugin, batch mode or a changed machine)"
        )
    return FairStarts(_spread(strict, rows, result), _spread(relaxed, rows, result), "drains")


def by_definition(
    result: RunResult, *, relaxed: bool = True, only: Sequence[int] | None = None
) -> FairStarts:
    """The fair start times by a run for each job: of all jobs, or of the jobs at the places ``only``.

    n runs of up to n jobs: for small workloads, and to check. Raises :class:`UserError` if jobs of this run
    cannot be run again.
    """
    again = result.again
    if isinstance(again, str):
        raise UserError(f"fair start times: {again}")
    jobs, rows = _waiting_in_order(result.jobs)
    strict, relaxed_ = np.full(len(jobs), np.nan), np.full(len(jobs), np.nan)
    wanted = set(range(len(jobs))) if only is None else set(only)
    for at, job in enumerate(jobs):
        if at in wanted:
            strict[at] = _starts(again(jobs[: at + 1]))[-1]
        if at in wanted and relaxed:
            relaxed_[at] = behind(again(jobs[:at]).jobs, job, _processors(result))
    return FairStarts(_spread(strict, rows, result), _spread(relaxed_, rows, result), "definition")


def behind(earlier: Sequence[JobResult], job: JobResult, processors: int) -> float:
    """When ``job`` starts (absolute seconds) if it may only start once all ``earlier`` jobs have, on a flat
    pool."""
    start, end = _starts_and_ends(earlier)
    size = np.array([one.job.request.processors for one in earlier], np.int64)
    first = max([job.job.submit_time, *start.tolist()])
    for time in sorted({first, *end[end > first].tolist()}):
        if processors - int(size[(start <= time) & (time < end)].sum()) >= job.job.request.processors:
            return time
    raise UserError(
        f"relaxed fair start of job {job.job.id}: expected at most {processors} processors, found "
        f"{job.job.request.processors}"
    )


def _starts(result: RunResult) -> Floats:
    return _starts_and_ends(result.jobs)[0]


def _starts_and_ends(jobs: Sequence[JobResult]) -> tuple[Floats, Floats]:
    nan = float("nan")
    return (
        np.array([nan if job.start_time is None else job.start_time for job in jobs], np.float64),
        np.array([nan if job.end_time is None else job.end_time for job in jobs], np.float64),
    )


def _waiting_in_order(jobs: Sequence[JobResult]) -> tuple[list[JobResult], NDArray[np.int64]]:
    """The jobs that started, in order of submission, and their places in the run; raises if a job still
    waits."""
    for job in jobs:
        if job.start_time is None and job.state == "pending":
            raise UserError(f"fair start times: job {job.job.id} still waited when the run ended")
    rows = np.array([at for at, job in enumerate(jobs) if job.start_time is not None], np.int64)
    submit = np.array([jobs[at].job.submit_time for at in rows], np.float64)
    rows = rows[np.argsort(submit, kind="stable")]
    return [jobs[at] for at in rows], rows


def _spread(values: Floats, rows: NDArray[np.int64], result: RunResult) -> Floats:
    spread = np.full(len(result.jobs), np.nan)
    spread[rows] = values
    return spread


def _processors(result: RunResult) -> int:
    pools = result.cluster.pools
    if len(pools) != 1 or not pools[0].flat:
        raise UserError("relaxed fair start times: expected one flat pool, found nodes or several pools")
    return pools[0].processors


def _scheduler(result: RunResult) -> tuple[str, str, int]:
    """Policy and order as names of the drains' constants, and the machine's processors."""
    processors = _processors(result)
    enabled = dict(result.plugins)
    policies = [name for name in enabled if name in _POLICIES]
    orders = [name for name in enabled if name in _ORDERS]
    others = [name for name in enabled if name not in {*_HARMLESS, *_POLICIES, *_ORDERS}]
    if others or len(policies) != 1 or len(orders) > 1:
        found = ", ".join(enabled) or "no plugin"
        raise UserError(
            f"fair start times by drains: expected one of {', '.join(_POLICIES)} and at most one of "
            f"{', '.join(_ORDERS)}; found {found}"
        )
    policy, options = policies[0], enabled[policies[0]]
    names = {
        "fcfs": "STRICT",
        "strict": "STRICT",
        "greedy": "GREEDY",
        "easy": "EASY",
        "conservative": "REBUILT",
    }
    kind = names[policy]
    if policy == "conservative":
        if options.get("depth") is not None:
            raise UserError("fair start times by drains: a drain cannot repeat conservative with a depth")
        if options.get("guarantees") == "keep":
            kind = "KEPT"
    order = (
        {"shortest-first": "SHORTEST", "largest-xfactor": "XFACTOR"}[orders[0]] if orders else "SUBMISSION"
    )
    return kind, order, processors
