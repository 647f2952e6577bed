"""A job in sentences: what it asks for, why it waits, what it waits for, and when it is expected to start."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from headway.decisions import Decision, Migrate, SwapTiers
from headway.inquiry.arrays import array_lines
from headway.inquiry.before import before_in_words
from headway.inquiry.bookings import planned_head
from headway.inquiry.inquiry import Inquiry
from headway.inquiry.outlook import sooner_line
from headway.inquiry.queued import waits, without_place
from headway.inquiry.reports import BeforeReport, SoonerReport
from headway.inquiry.sooner import sooner
from headway.inquiry.waiting import in_words
from headway.model import Placement
from headway.scheduler import Scheduler
from headway.state import Job, Status
from headway.state.choices import pools_of
from headway.state.occupation import BACKGROUND, FOREGROUND
from headway.state.records import ON_NODES

#: Parts of a job that are shown.
_PARTS = 8

_VERBS = {
    Status.RUNNING: "runs",
    Status.SUSPENDED: "is suspended",
    Status.STARTING: "is being started",
}


def find_job(scheduler: Scheduler, job_id: str) -> Job | None:
    """The job of this id; of ``7+1``, a component, the heterogeneous job 7 that it belongs to."""
    jobs = scheduler.state.jobs
    whole, plus, offset = job_id.partition("+")
    job = jobs.get(job_id)
    if job is None and plus and offset.isdecimal() and whole in jobs and jobs[whole].request.parts:
        return jobs[whole]
    return job


def explain(
    scheduler: Scheduler,
    job_id: str,
    clock: Callable[[float], str],
    wished: Sequence[Decision] = (),
) -> list[str]:
    """Sentences about a job, or the elements of an array, as the scheduler knows them after its last step;
    [] if it knows none.

    ``wished`` are that step's decisions, where they are not carried out.
    """
    inquiry = Inquiry(scheduler, clock, wished)
    job = find_job(scheduler, job_id)
    return array_lines(inquiry, job_id) if job is None else job_lines(inquiry, job)


def why_not_started(scheduler: Scheduler, job: Job, clock: Callable[[float], str]) -> str:
    """Why a job waits, without its place in the queue, in the sentences of :func:`explain`."""
    return " ".join(waits(Inquiry(scheduler, clock), job, without_place))


def job_lines(
    inquiry: Inquiry,
    job: Job,
    helps: Sequence[SoonerReport] | None = None,
    ahead: BeforeReport | None = None,
) -> list[str]:
    """Sentences about a job. ``helps``: what would let it start now, ``ahead``: the jobs before it; of both
    None: that is found out."""
    clock = inquiry.clock
    lines = [_asks(inquiry, job)]
    if inquiry.state.predict is not None:
        lines.extend(_not_predicted(inquiry, job))
        lines.append(_predicted(inquiry, job))
    if (start := inquiry.wished_starts.get(job.id)) is not None:
        place = _where(start.placement, start.tier)
        place += f" in pool {start.pool!r}" if start.pool else ""
        return [*lines, f"It would be started now{place}: {inquiry.told(start.reason) or 'it fits'}."]
    if job.status in ON_NODES:
        # A move that would be decided now counts from then on; it has not been carried out.
        placement, tier, _ = inquiry.state.before_move.get(job.id, (job.placement, job.tier, None))
        return [
            *lines,
            f"It {_VERBS[job.status]}{_where(placement, tier)}, {_expected(job, clock)}.",
            *_suspended(inquiry, job),
            *_moved(inquiry, job),
            *_sited(inquiry, job),
        ]
    return [*lines, *waits(inquiry, job), *_outlook(inquiry, job, helps, ahead), *_sited(inquiry, job)]


def _outlook(
    inquiry: Inquiry, job: Job, helps: Sequence[SoonerReport] | None, ahead: BeforeReport | None
) -> Iterator[str]:
    """Its earliest start where it is the first of the queue and not booked; which jobs are before it; what
    would let it start now."""
    if (why := inquiry.unfinished.get(job.id)) is not None:
        yield f"When it is planned to start is not worked out{why}."
    if job.status is Status.PENDING and inquiry.queue(job.domain)[0] is job:
        planned = planned_head(inquiry.scheduler, job.domain)
        if planned is not None:
            yield f"As the first of the queue it can start at {inquiry.clock(planned.start)}, or earlier."
    yield from before_in_words(inquiry, job, ahead)
    if told := sooner_line(sooner(inquiry, job) if helps is None else helps):
        yield told


def _sited(inquiry: Inquiry, job: Job) -> Iterator[str]:
    """Why a job of a federation goes to another site, or does not."""
    if inquiry.state.catalogue is not None:
        for _, said in inquiry.said(job, "site", inquiry.clock):
            yield f"{said}."


def _asks(inquiry: Inquiry, job: Job) -> str:
    """What a job asks for, where, and since when."""
    request = job.request
    asks = f"{job.processors} processors"
    if request.nodes:
        asks += f" on {request.nodes} nodes"
    if request.parts:
        sizes = " and ".join(str(part.processors) for part in request.parts[:_PARTS])
        more = f" and {len(request.parts) - _PARTS} more parts" if len(request.parts) > _PARTS else ""
        apart = "together"
        if request.parts_apart:
            apart += f" and each on {request.parts_apart} of its own"
        asks += f" ({sizes}{more}, {apart})"
    asks += f" for {job.estimate:.0f} s"
    where = in_words([job.pool] if job.status in ON_NODES else pools_of(job))
    first = f"Job {job.id} of {job.user or 'an unknown user'} asks for {asks} in {where}"
    return f"{first}; it was submitted at {inquiry.clock(job.submit_time)}."


def _expected(job: Job, clock: Callable[[float], str]) -> str:
    """When a job on nodes is expected to end."""
    if math.isinf(job.expected_end):
        return "and nobody knows when it will end"
    return f"expected to end by {clock(job.expected_end)}"


def _suspended(inquiry: Inquiry, job: Job) -> Iterator[str]:
    """For which job this job is suspended, and when it runs again."""
    if job.status is not Status.SUSPENDED:
        return
    for _, said in inquiry.said(job, "suspension", inquiry.clock):
        yield f"{said}."


def _where(placement: Placement, tier: str) -> str:
    """Where a job runs or would run, after its verb."""
    nodes = ", ".join(name for name, _ in placement)
    behind = " in the background" if tier == BACKGROUND else ""
    return f"{behind} on {nodes}" if nodes else behind


def _moved(inquiry: Inquiry, job: Job) -> list[str]:
    """What would become now of a job that has its processors already."""
    lines = []
    for decision in inquiry.wished:
        if isinstance(decision, SwapTiers) and job.id in (decision.job_id, decision.other_job_id):
            tier = FOREGROUND if job.id == decision.job_id else BACKGROUND
            what = f"moved to the {tier} of its own processors"
        elif isinstance(decision, Migrate) and job.id == decision.job_id:
            what = "begun again" if decision.restart else "moved, to go on"
            what += _where(decision.placement or job.placement, decision.tier or job.tier)
        else:
            continue
        lines.append(f"It would be {what} now: {inquiry.told(decision.reason) or 'the policy has it so'}.")
    return lines


def _not_predicted(inquiry: Inquiry, job: Job) -> Iterator[str]:
    """Which plugins could have predicted how long it runs, and why they do not."""
    for name, said in inquiry.said(job, "no prediction"):
        if name != job.predicted_by:
            yield f"Plugin {name!r} does not predict it: {said}."


def _predicted(inquiry: Inquiry, job: Job) -> str:
    """The job's predicted runtime, the plugin that predicts it, and the plugin's reason."""
    name = job.predicted_by
    if not name:
        return f"No plugin predicts how long it runs: it is planned with {job.expected_runtime:.0f} s."
    why = dict(inquiry.said(job, "prediction")).get(name)
    because = f": {why}" if why else ""
    return (
        f"Plugin {name!r} predicts that it runs for {job.expected_runtime:.0f} s{because}. "
        f"It is planned with that, and may run for {job.estimate:.0f} s."
    )
