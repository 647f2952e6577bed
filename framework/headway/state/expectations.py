"""How long jobs are expected to run: the predictor's answer, never more than the estimate."""

from __future__ import annotations

from bisect import bisect_right

from headway.state.facts import Facts
from headway.state.occupation import FOREGROUND, expected_end, set_expected_end
from headway.state.records import ON_NODES, Job, PoolState, RunningEntry


def predict(state: Facts, job: Job) -> None:
    """Ask the predictor; there must be one."""
    assert state.predict is not None
    seconds = state.predict(job)
    if seconds is not None:
        job.expected_runtime = min(max(seconds, 1.0), job.estimate) if job.estimate > 0 else seconds


def set_expectation(state: Facts, job: Job) -> None:
    """The expected runtime and end that follow from the job's estimate."""
    job.expected_runtime = job.estimate
    if state.predict is not None:
        predict(state, job)
    if job.entries is not None:
        start = job.start_time if job.start_time is not None else state.now
        set_expected_end(state, job, expected_end(job, start))
    else:
        job.pool.by_size = None


def expect_again(state: Facts, job: Job) -> None:
    """A start is off: its frequency, its tier, and how long it would have taken there, are forgotten."""
    job.start_time, job.frequency, job.tier, job.pace = None, None, FOREGROUND, None
    job.leaving = False
    set_expectation(state, job)


def leave(state: Facts, job: Job) -> None:
    """A job on nodes was told to go: it is expected to at any moment."""
    if job.status in ON_NODES:
        job.leaving = True
        set_expected_end(state, job, expected_end(job, state.now))


def go_on(state: Facts, job: Job | None) -> None:
    """It does not go after all: it is expected to end as it was before."""
    if job is not None and job.leaving:
        job.leaving = False
        set_expectation(state, job)
        job.pool.touch()


def expect(state: Facts, job: Job, runtime: float) -> None:
    """A job that begins at this instant is expected to run for ``runtime`` seconds.

    Its own pool is being looked at and need not look again; others on its nodes must.
    """
    pool = job.pool
    looked = pool.changed, pool.fresh, pool.arrivals
    job.expected_runtime, job.predicted_by = runtime, ""
    set_expected_end(state, job, state.now + runtime)
    pool.changed, pool.fresh, pool.arrivals = looked


def next_outlived(state: Facts) -> float | None:
    """When the next running job outlives what it was predicted, in pools where that may let another start.

    It follows from the ends that are expected now, so a prediction that came true or was corrected costs no
    look.
    """
    due = None
    for pool in state.pools.values():
        running = pool.running
        if not running or not (pool.queue or pool.background):
            continue
        first = bisect_right(running, state.now, key=_end) if running[0][0] <= state.now else 0
        for at in range(first, len(running)):
            end, _, _, job = running[at]
            if due is not None and end >= due:
                break
            if end < _limit(state, job) and job.pace is None:
                if _may_start(state, pool):
                    due = end
                break
    return due


def look_at_outlived(state: Facts) -> None:
    """Have pools looked at where a job has just outlived what it was predicted."""
    now = state.now
    for pool in state.pools.values():
        running = pool.running
        if not running or running[0][0] > now or pool.changed:
            continue
        for end, _, _, job in running:
            if end > now:
                break
            if job.pace is None and not job.leaving and _limit(state, job) > now:
                if _may_start(state, pool):
                    pool.touch()
                break


def _may_start(state: Facts, pool: PoolState) -> bool:
    """Whether somebody waits there who is no larger than what is free: else no expected end matters yet."""
    if state.ask_always or pool.background:
        return bool(pool.queue or pool.background)
    free = pool.free
    return free > 0 and any(job.processors <= free for job in pool.queue)


def _end(entry: RunningEntry) -> float:
    return entry[0]


def _limit(state: Facts, job: Job) -> float:
    """When the cluster ends a running job (absolute seconds)."""
    return (job.start_time if job.start_time is not None else state.now) + job.paused + job.estimate


def overdue(state: Facts, pool: PoolState) -> None:
    """Jobs that outlive a prediction are predicted again; without a later end they fall back to their
    estimate, and then their end is "any moment".

    What a cluster tells how far it is has no such moment: its news says when it is expected. Who was told to
    go stays expected at any moment.
    """
    if all(job.pace is not None or job.leaving for end, _, _, job in pool.running if end <= state.now):
        return
    pool.touch()
    for _, _, _, job in list(pool.running):
        if job.expected_end > state.now:
            break
        if job.pace is not None or job.leaving:
            continue
        begin = (job.start_time if job.start_time is not None else state.now) + job.paused
        limit = begin + job.estimate
        if limit > state.now and limit > job.expected_end:
            set_expected_end(state, job, _again(state, job, begin, limit))


def _again(state: Facts, job: Job, begin: float, limit: float) -> float:
    """When a job that outlived what it was predicted is expected to end: as the predictor says now, if that
    is yet to come, and by its limit."""
    if state.predict is None:
        return limit
    seconds = state.predict(job)
    if seconds is None or not state.now < begin + seconds < limit:
        job.predicted_by = ""
        return limit
    job.expected_runtime = seconds
    return begin + seconds
