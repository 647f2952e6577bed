"""What happens to a job while it is on nodes: pauses, other nodes, another tier."""

from __future__ import annotations

from headway import events as ev
from headway.state.expectations import go_on, leave
from headway.state.facts import Facts
from headway.state.lending import come_back, lend, resumed_as_decided
from headway.state.moves import relocated
from headway.state.news import Unnoticed
from headway.state.occupation import expected_end, move, set_expected_end
from headway.state.records import ON_NODES, Pace, Status

_RUNNING = Status.RUNNING
_SUSPENDED = Status.SUSPENDED


def suspended(state: Facts, event: ev.JobSuspended) -> None:
    """The job was stopped, and keeps its processors until a plugin has it lend them. A job that was told to
    go for good goes all the same."""
    job = state.known(event.job_id, "suspended")
    if job is not None and job.status in ON_NODES:
        job.status = _SUSPENDED
        job.suspended_since = event.time
        if job.aside:
            go_on(state, job)


def resumed(state: Facts, event: ev.JobResumed) -> None:
    """It runs again: its expected end moves by the pause."""
    job = state.known(event.job_id, "resumed")
    if job is not None and job.status is _SUSPENDED:
        job.status = _RUNNING
        if job.suspended_since is not None:
            pause = event.time - job.suspended_since
            job.paused += pause
            if job.pace is not None:
                job.pace = Pace(event.time, job.done(event.time), job.pace.rate, job.pace.resumes)
            job.suspended_since = None
            if job.lends:
                come_back(state, job)
            elif job.id in state.returning:
                resumed_as_decided(state, job)
            elif job.start_time is not None:
                set_expected_end(state, job, expected_end(job, job.start_time))


def leaving(state: Facts, event: ev.JobLeaving) -> None:
    """It is over: it is expected to give back what it has at any moment."""
    job = state.known(event.job_id, "leaving")
    if job is not None:
        leave(state, job)


def migrated(state: Facts, event: ev.JobMigrated) -> None:
    """The job is on other nodes, or has a new size; it may be in another tier, or have begun again."""
    job = state.known(event.job_id, "migrated")
    if job is None or job.start_time is None or job.id in state.bundles:
        return
    state.before_growth.pop(job.id, None)
    if event.restarted and job.id not in state.before_move:
        job.pace = Pace(event.time, 0.0, 1.0)
    lends = job.lends
    if event.tier or job.id in state.before_move:
        relocated(state, job, event.placement, event.tier or job.tier)
    else:
        move(state, job, event.placement)
    if lends:
        lend(state, job)


def tier_changed(state: Facts, event: ev.JobTierChanged) -> None:
    """The job is in another tier."""
    job = state.known(event.job_id, "moved between tiers")
    if job is not None:
        if job.entries is None:
            job.tier = event.tier
        else:
            relocated(state, job, (), event.tier)


def pace_changed(state: Facts, event: ev.JobPaceChanged) -> None:
    """It goes faster or slower. That alone is no reason to ask a policy: its processors are taken as
    before."""
    job = state.known(event.job_id, "at another pace")
    if job is None:
        return
    job.pace = Pace(event.time, event.done, event.rate, event.resumes)
    if job.entries is not None and job.start_time is not None:
        with Unnoticed([there for there, _ in job.entries]):
            set_expected_end(state, job, expected_end(job, job.start_time))


def usage_measured(state: Facts, event: ev.JobUsageMeasured) -> None:
    """How much of its processors it uses."""
    job = state.known(event.job_id, "measured")
    if job is not None:
        job.measured_cpu = event.cpu
        if state.tenants is not None and job.entries is not None:
            state.tenants.measured(job)
