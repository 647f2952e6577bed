"""Reports of jobs."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from msgspec.structs import replace

from headway.inquiry.bookings import Planned, booking_of, planned_head
from headway.inquiry.inquiry import Inquiry, Sees, everything
from headway.inquiry.pages import page
from headway.inquiry.queued import in_queues, without_place
from headway.inquiry.reports import JobPage, JobReport, finite
from headway.inquiry.waiting import why_in_queue, why_outside
from headway.state import Job, PoolState, State, Status
from headway.state.choices import facing_pool, may_run_in, pools_of
from headway.state.queues import place_of
from headway.state.records import ON_NODES, submission


@dataclass(frozen=True)
class Wanted:
    """Which jobs are asked for; "": of any."""

    pool: str = ""
    user: str = ""
    status: str = ""
    account: str = ""
    qos: str = ""
    name: str = ""

    def test(self, state: State) -> Sees | None:
        """Whether a job is wanted, beside its status; None: every job is."""
        pool = state.pools.get(self.pool)
        named = ((what, getattr(self, what)) for what in ("user", "account", "qos", "name"))
        wanted = [(what, value) for what, value in named if value]
        if pool is None and not wanted:
            return None

        def is_wanted(job: Job) -> bool:
            description = job.description
            for what, value in wanted:
                if getattr(description, what) != value:
                    return False
            return pool is None or _is_of(job, pool)

        return is_wanted


def job_report(inquiry: Inquiry, job: Job, position: int | None = None) -> JobReport:
    """A job as it is after the last step. ``position``: its place in the queue, where that is known."""
    common = job_facts(job)
    return common if job.status in ON_NODES else _with_reason(inquiry, job, common, position)


def job_facts(job: Job) -> JobReport:
    """The report of a job without its place and why it waits."""
    on_nodes = job.status in ON_NODES
    several = pools_of(job) if job.choices else ()
    return JobReport(
        id=job.id,
        pool=job.pool.name,
        status=job.status.value,
        processors=job.processors,
        limit=finite(job.estimate),
        expected_runtime=finite(job.expected_runtime),
        submitted=job.submit_time,
        user=job.user,
        account=job.account,
        qos=job.description.qos,
        name=job.name,
        nodes=job.request.nodes,
        pools=tuple([pool.name for pool in several]),
        array=job.description.array_id,
        predicted_by=job.predicted_by,
        started=job.start_time if on_nodes else None,
        expected_end=finite(job.expected_end) if on_nodes else None,
        placement=job.placement if on_nodes else (),
        tier=job.tier,
    )


def _with_reason(inquiry: Inquiry, job: Job, common: JobReport, position: int | None) -> JobReport:
    """The report of a job that waits."""
    said = reason_told(inquiry, job)
    if said.outside:
        return replace(common, waits_because=said.kind, why=said.why, waits_for=said.jobs)
    queue, planned = inquiry.queue(job.domain), planned_start(inquiry, job)
    return replace(
        common,
        position=position if position is not None else place_of(queue, job) + 1,
        queue_length=len(queue),
        planned_start=None if planned is None else finite(planned.start),
        planned_placement=() if planned is None else planned.placement,
        waits_because=said.kind,
        why=said.why,
        waits_for=said.jobs,
    )


class ReasonTold(NamedTuple):
    """Why a job waits, as the asking user is told."""

    kind: str
    why: str
    jobs: tuple[str, ...]
    #: It is in no queue.
    outside: bool


def reason_told(inquiry: Inquiry, job: Job) -> ReasonTold:
    """Why a job waits that is on no nodes."""
    outside = why_outside(inquiry, job)
    if outside is not None:
        return ReasonTold(outside.kind, " ".join(outside.sentences), outside.jobs, True)
    cause = why_in_queue(inquiry, job)
    sentences = in_queues(inquiry, job, without_place) if job.choices else cause.sentences
    return ReasonTold(cause.kind, " ".join(sentences), cause.jobs, False)


def planned_start(inquiry: Inquiry, job: Job) -> Planned | None:
    """When and where the job is planned to start; None: nothing is planned for it."""
    booking = first_booking(inquiry, job)
    if booking is not None:
        return booking
    domain = job.domain
    return planned_head(inquiry.scheduler, domain) if inquiry.queue(domain)[0] is job else None


def first_booking(inquiry: Inquiry, job: Job) -> Planned | None:
    """The earliest of the job's bookings; None if nothing is booked for it."""
    found = []
    for pool in pools_of(job):
        with facing_pool(job, pool):
            booking = booking_of(inquiry, job)
        if booking is not None:
            found.append(booking)
    return min(found, key=lambda booking: booking.start, default=None)


def job_page(
    inquiry: Inquiry,
    wanted: Wanted,
    first: int,
    count: int,
    sees: Sees = everything,
    among: Collection[Job] | None = None,
) -> JobPage:
    """Some of the jobs that are wanted and may be seen; ``among``: no other jobs are."""
    if among is None:
        found = _in_order(inquiry, wanted.status)
    else:
        found = _in_this_order(inquiry, wanted.status, among)
    if (is_wanted := wanted.test(inquiry.state)) is not None:
        found = (one for one in found if is_wanted(one[0]))
    if sees is not everything:
        found = (one for one in found if sees(one[0]))
    made, then = page(
        found,
        lambda one: job_report(inquiry, one[0], one[1]),
        first,
        count,
        nodes=lambda report: len(report.placement) + len(report.planned_placement),
    )
    return JobPage(made, then)


def _is_of(job: Job, pool: PoolState) -> bool:
    """Whether the job runs in the pool, or waits for it."""
    return job.pool is pool if job.status in ON_NODES else may_run_in(job, pool)


def _in_this_order(inquiry: Inquiry, status: str, jobs: Collection[Job]) -> Iterator[tuple[Job, int | None]]:
    """As :func:`_in_order`, of some jobs alone."""
    if status in ("", Status.PENDING.value):
        pending = [job for job in jobs if job.status is Status.PENDING]
        for domain in inquiry.state.domains.values():
            here = [job for job in pending if job.domain is domain]
            queue = inquiry.queue(domain)
            if queue is domain.queue:
                here.sort(key=lambda job: job.order)
                yield from ((job, place_of(domain.queue, job) + 1) for job in here)
            elif here:
                places = {job: at for at, job in enumerate(queue, 1)}
                yield from ((job, places[job]) for job in sorted(here, key=places.__getitem__))
    for group in ((Status.WAITING,), ON_NODES):
        there = [job for job in jobs if job.status in group and status in ("", job.status.value)]
        yield from ((job, None) for job in sorted(there, key=submission))


def _in_order(inquiry: Inquiry, status: str) -> Iterator[tuple[Job, int | None]]:
    """The jobs of a status ("": of any), each with its place in its queue: the queues first, then jobs
    outside of them, then jobs on nodes, both in the order in which they were submitted."""
    state = inquiry.state
    if status in ("", Status.PENDING.value):
        for domain in state.domains.values():
            places = zip(inquiry.queue(domain), itertools.count(1))
            if state.in_several:
                # A job of several pools is told once.
                yield from (one for one in places if one[0].pool.domain is domain)
            else:
                yield from places
    for group in ((Status.WAITING,), ON_NODES):
        asked = [one for one in group if status in ("", one.value)]
        if asked:
            there = [job for job in state.jobs.values() if job.status in asked]
            yield from ((job, None) for job in sorted(there, key=submission))
