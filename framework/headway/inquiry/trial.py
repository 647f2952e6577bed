"""When a job would start that is not submitted: the scheduler is given the job, and its plan is read.

This uses a scheduler up: what is tried here must be a copy that nothing else needs
(:mod:`headway.service.apart`). In return the answer is the scheduler's own, whatever plugins are enabled:
predictions, order, limits, bookings, reservations and vetoes count as they would.

Where the step makes no start and no booking for the job, because the policy books only some jobs, time goes
on in the copy: each job runs as long as it is planned with, no other job comes, and the first step that
starts the job tells. What no such copy can know ends that, with a time before which the job does not start.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from headway.decisions import Decision, Start
from headway.events import JobSubmitted
from headway.inquiry.going_on import steps_from
from headway.inquiry.inquiry import Inquiry
from headway.inquiry.reports import TrialReport
from headway.inquiry.waiting import why_in_queue, why_outside
from headway.model import JobDescription, Placement
from headway.scheduler import Scheduler
from headway.state import Job, Status
from headway.state.choices import facing_pool, pools_of
from headway.state.queues import place_of
from headway.view.holes import planned
from headway.view.owed import all_of_them

_INF = math.inf
_LAST_NUMBER = re.compile(r"[0-9]{1,18}(?=[^0-9]*\Z)")


def next_id(scheduler: Scheduler) -> str:
    """An id for a job that comes after all jobs, numbered as they are."""
    jobs = scheduler.state.jobs
    last = max(jobs.values(), key=lambda job: job.seq).id if jobs else ""
    found = _LAST_NUMBER.search(last)
    name = f"{last[: found.start()]}{int(found[0]) + 1}{last[found.end() :]}" if found else "1"
    while name in jobs:
        name += "0"
    return name


def as_before(scheduler: Scheduler, description: JobDescription) -> JobDescription:
    """The job; of its account and QOS what is not said as the user's latest job has it."""
    mine = [job for job in scheduler.state.jobs.values() if job.user == description.user]
    if not mine or (description.account and description.qos):
        return description
    last = max(mine, key=lambda job: job.seq).description
    return replace(description, account=description.account or last.account, qos=description.qos or last.qos)


def trial(
    inquiry: Inquiry, now: float, description: JobDescription, found: Callable[[TrialReport], None]
) -> None:
    """Submit a job to the inquiry's scheduler at ``now`` and see when it starts. ``found`` is told what is
    known so far, each time better; the last is the answer.
    :class:`headway.inquiry.going_on.OutOfTime` may end it at any moment."""
    scheduler = inquiry.scheduler
    decisions = scheduler.step(now, [JobSubmitted(now, description)])
    state = scheduler.state
    job = state.jobs[description.id]
    so_far = TrialReport(
        " or ".join(pool.name for pool in pools_of(job)), "later", account=job.account,
        qos=job.description.qos,
    )  # fmt: skip
    if never := _never(job):
        found(replace(so_far, outcome="never", why=inquiry.told(never)))
        return
    if (start := _start_of(decisions, job)) is not None:
        found(_started(inquiry, so_far, job, start, now, "now"))
        return
    outside = why_outside(inquiry, job)
    if outside is not None:
        so_far = replace(so_far, waits_because=outside.kind, why=" ".join(outside.sentences))
    else:
        queue = job.domain.queue
        so_far = replace(so_far, position=place_of(queue, job) + 1, queue_length=len(queue))
        found(replace(so_far, not_before=now, why="The plan could not be made up to this job in time."))
        first = _planned(scheduler, job)
        if first is not None:
            so_far = replace(so_far, outcome="planned", start=first[0], placement=first[1])
            found(so_far)
        cause = why_in_queue(inquiry, job)
        so_far = replace(
            so_far, waits_because=cause.kind, why=" ".join(cause.sentences), waits_for=cause.jobs
        )
        if first is not None:
            found(so_far)
            return
    found(replace(so_far, not_before=now))
    if not scheduler.monitors:
        _foresee(inquiry, job, decisions, so_far, found)


def _never(job: Job) -> str:
    """Why the job can never start as it is; "" if it can."""
    pool = job.pool.description
    if job.refusal:
        return job.refusal
    if job.obstacle is not None and not job.obstacle.passing:
        return job.obstacle.why
    if 0 < pool.max_walltime < job.estimate:
        return f"it asks for {job.estimate:g} s, and pool {pool.name!r} runs jobs for {pool.max_walltime:g} s"
    return ""


def _planned(scheduler: Scheduler, job: Job) -> tuple[float, Placement] | None:
    """The earliest start that is planned for the job in any of its pools; None: none is."""
    found = []
    for pool in pools_of(job):
        with facing_pool(job, pool):
            made = planned(scheduler.views[job.domain.name], job, all_of_them)
        if made is not None and made[0] < _INF:
            found.append(made)
    return min(found, default=None, key=lambda one: one[0])


def _start_of(decisions: Sequence[Decision], job: Job) -> Start | None:
    return next((one for one in decisions if isinstance(one, Start) and one.job_id == job.id), None)


def _started(
    inquiry: Inquiry, so_far: TrialReport, job: Job, start: Start, at: float, outcome: str
) -> TrialReport:
    return replace(
        so_far, pool=start.pool or job.pool.name, outcome=outcome, start=at, placement=start.placement,
        why=so_far.why or inquiry.told(start.reason),
    )  # fmt: skip


# ---------------------------------------------------------------------- time goes on


def _foresee(
    inquiry: Inquiry,
    job: Job,
    made: Sequence[Decision],
    so_far: TrialReport,
    found: Callable[[TrialReport], None],
) -> None:
    """Let time go on until the job starts, or what follows cannot be known."""
    for now, decisions in steps_from(inquiry.scheduler, made):
        if (start := _start_of(decisions, job)) is not None:
            found(_started(inquiry, so_far, job, start, now, "foreseen"))
            return
        if job.status is Status.ENDED:
            return
        found(replace(so_far, not_before=now))
