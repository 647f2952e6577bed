"""How long jobs are expected to run: the predictor's answer, never more than the estimate."""

from __future__ import annotations

from heapq import heappop

from headway.state.choices import domains_of
from headway.state.facts import Facts
from headway.state.news import Unnoticed
from headway.state.occupation import FOREGROUND, expected_end, limit, set_expected_end
from headway.state.records import ON_NODES, Domain, Job, RunningEntry, Status

_INF = float("inf")
_PENDING = Status.PENDING


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
        for domain in domains_of(job):
            domain.by_size = None


def expect_again(state: Facts, job: Job) -> None:
    """A start is off: its frequency, its tier, and how long it would have taken there, are forgotten."""
    job.start_time, job.frequency, job.tier, job.pace = None, None, FOREGROUND, None
    job.gone_by, job.aside, job.expected_end = None, False, _INF
    set_expectation(state, job)


def leave(state: Facts, job: Job, grace: float = 0.0, *, aside: bool = False) -> None:
    """A job on nodes was told to go: it is expected to within ``grace`` seconds and by its limit, then at any
    moment. ``aside``: it is to be suspended, and to lend its processors."""
    if job.status in ON_NODES:
        job.aside = aside
        job.gone_by = state.now + grace
        if job.pace is None:
            job.gone_by = max(state.now, min(job.gone_by, limit(state, job)))
        set_expected_end(state, job, job.gone_by)


def go_on(state: Facts, job: Job | None) -> None:
    """It does not go after all: it is expected to end as it was before."""
    if job is not None and job.leaving:
        job.gone_by, job.aside = None, False
        set_expectation(state, job)
        job.domain.touch()


def expect(state: Facts, job: Job, runtime: float) -> None:
    """A job that begins at this instant is expected to run for ``runtime`` seconds.

    Its own domain is being looked at and need not look again.
    """
    job.expected_runtime, job.predicted_by = runtime, ""
    with Unnoticed((job.domain,)):
        set_expected_end(state, job, state.now + runtime)


def next_wakeup(state: Facts, before: float = _INF) -> float | None:
    """When something becomes due by the clock alone (begin times, reservations, retries, and jobs that
    outlive what they were predicted). ``before``: what becomes due then or later may be left out."""
    due = state.wakeups[0][0] if state.wakeups else None
    if state.predict is None:
        return due
    outlived = next_outlived(state, before)
    if due is None or outlived is None:
        return outlived if due is None else due
    return min(due, outlived)


def next_outlived(state: Facts, before: float = _INF) -> float | None:
    """When the next running job outlives its prediction, in domains where that may let a job start.
    ``before``: what happens then or later may be left out.

    It follows from the ends that are expected now, so a prediction that came true or was corrected costs no
    look.
    """
    due, now = None, state.now
    for domain in state.domains.values():
        predicted = domain.predicted
        while predicted and predicted[0][0] <= now:
            # A job that has outlived its prediction is here again once it is given more time.
            heappop(predicted)
        if not predicted or predicted[0][0] >= before:
            continue
        if not (domain.queue or domain.background) or not _may_start(state, domain):
            continue
        entry = predicted[0]
        while not _is_there(state, entry):
            heappop(predicted)
            if not predicted:
                break
            entry = predicted[0]
        else:
            if due is None or entry[0] < due:
                due = entry[0]
    return due


def note_outlived(state: Facts) -> None:
    """Have domains looked at where a job has just outlived its prediction and that may let another job
    start."""
    now = state.now
    for domain in state.domains.values():
        running = domain.running
        if not running or running[0][0] > now or domain.news.due:
            continue
        for end, _, _, job in running:
            if end > now:
                break
            if job.pace is None and not job.leaving and limit(state, job) > now:
                if _may_start(state, domain):
                    domain.touch()
                break


def _may_start(state: Facts, domain: Domain) -> bool:
    """Whether a job waits there that is no larger than what is free: else no expected end matters yet."""
    if state.ask_always or domain.background:
        return bool(domain.queue or domain.background)
    free = domain.free
    if free < domain.least or free <= 0:
        return False
    small = domain.small
    if small is not None and small.status is _PENDING and small.domain is domain and small.processors <= free:
        return True
    least = None
    for job in domain.queue:
        processors = job.processors
        if processors <= free:
            domain.small = job
            return True
        if least is None or processors < least:
            least = processors
    # No job needs less, until a job comes.
    domain.least = domain.total + 1 if least is None else least
    return False


def _is_there(state: Facts, entry: RunningEntry) -> bool:
    """Whether a job is still expected to end then, before its limit."""
    job = entry[3]
    entries = job.entries
    if not entries or job.pace is not None:
        return False
    if entries[0][1] is not entry and not any(one is entry for _, one in entries):
        return False
    return entry[0] < limit(state, job)


def overdue(state: Facts, domain: Domain) -> None:
    """Jobs that outlive a prediction are predicted again; without a later end they fall back to their
    estimate, and then their end is "any moment".

    A job whose progress the cluster tells has no such moment: the news says when its end is expected. A job
    that was told to go stays expected at any moment. A job that stands still cannot have ended: it ends at
    the earliest when what is left of it is done, if it goes on now.

    The domain is to be looked at from scratch then. To be called where a job's expected end has come.
    """
    now = state.now
    over, standing = [], []
    for entry in domain.running:
        if entry[0] > now:
            break
        job = entry[3]
        if job.stands_still and not job.leaving:
            standing.append(job)
        elif job.pace is None and not job.leaving:
            over.append(job)
    domain.news.ends_moved()
    for job in standing:
        left = job.expected_runtime - job.done(now)
        if left > 0.0:
            set_expected_end(state, job, now + left)
    for job in over:
        begin = (job.start_time if job.start_time is not None else now) + job.paused
        latest = begin + job.estimate
        if latest > now and latest > job.expected_end:
            set_expected_end(state, job, _again(state, job, begin, latest))


def _again(state: Facts, job: Job, begin: float, latest: float) -> float:
    """When a job that outlived what it was predicted is expected to end: as the predictor says now, if that
    is yet to come, and by its limit."""
    if state.predict is None:
        return latest
    seconds = state.predict(job)
    if seconds is None or not state.now < begin + seconds < latest:
        job.predicted_by = ""
        return latest
    job.expected_runtime = seconds
    return begin + seconds
