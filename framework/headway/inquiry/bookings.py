"""Reports of what is booked."""

from __future__ import annotations

import math
from typing import NamedTuple

from headway.inquiry.inquiry import Inquiry, Sees, everything, first_served
from headway.inquiry.pages import page
from headway.inquiry.reports import BookingPage, BookingReport, finite
from headway.model import Placement
from headway.scheduler import Scheduler
from headway.state import Domain, Job
from headway.view import Booking
from headway.view.holes import is_made, planned
from headway.view.owed import Enough, TooLarge


class Planned(NamedTuple):
    """When a job is to start (absolute seconds), and where."""

    job: Job
    start: float
    placement: Placement = ()


def booking_of(inquiry: Inquiry, job: Job) -> Planned | None:
    """What is booked for a job in the pool that it faces; None: nothing, or that is not worked out yet
    (:attr:`Inquiry.unfinished`)."""
    view = inquiry.scheduler.views[job.domain.name]
    try:
        found = planned(view, job, inquiry.check)
    except Enough as enough:
        inquiry.unfinished[job.id] = _why(enough)
        return None
    return None if found is None else Planned(job, *found)


def _why(enough: Enough) -> str:
    """What to say behind "is not worked out", of a booking that was not made."""
    if isinstance(enough, TooLarge):
        return ": on so many nodes, beside so many running jobs, that takes too long for an answer"
    return " yet: that is done from the head of the queue on, little by little, anew when the plan changes"


def all_are_made(inquiry: Inquiry, domain: Domain) -> bool:
    """Make the bookings that are owed in a domain; whether all are made."""
    try:
        inquiry.scheduler.views[domain.name].make_owed(inquiry.check)
    except Enough:
        return False
    return True


def first_booked(inquiry: Inquiry, domain: Domain) -> Planned | None:
    """The booking of a domain that was made first; None: there is none."""
    view = inquiry.scheduler.views[domain.name]
    if view.owed:
        return booking_of(inquiry, domain.queue[0]) if domain.queue else None
    return next((Planned(one.job, one.start, one.placement) for one in view.bookings), None)


def booking_page(inquiry: Inquiry, pool: str, first: int, count: int, sees: Sees = everything) -> BookingPage:
    """Some of the bookings in a pool and in the pools that it shares nodes with, "": in all pools; of jobs
    that may be seen, and as far as they are made."""
    domains = [one for one in inquiry.state.domains.values() if not pool or pool in one.pool_names]
    for domain in domains:
        all_are_made(inquiry, domain)
    views = [inquiry.scheduler.views[domain.name] for domain in domains]
    found = (booking for view in views for booking in view.made_bookings if sees(booking.job))
    made, then = page(found, booking_report, first, count, nodes=lambda report: len(report.placement))
    return BookingPage(made, then, sum(view.owed for view in views))


def planned_head(scheduler: Scheduler, domain: Domain) -> Planned | None:
    """The first job of a queue that nothing is booked for, with the earliest start that it can have; None: it
    is booked, or not known.

    A policy may leave the first job without a booking as long as no other job could start before it, or owe
    the booking; it would be booked for that very time. In monitor mode what is wished for is not taken, so
    nothing is known beside that.
    """
    view = scheduler.views[domain.name]
    if not domain.queue or scheduler.wished or domain.news.due:
        return None
    head = first_served(scheduler, domain)
    if head.veto or head.processors > head.pool.total or is_made(view, head):
        return None
    generator = view.rng.bit_generator
    drawn = generator.state
    found = view.opening(head)
    # A plugin that places jobs may draw: the next cycle's draws are as if nobody had asked.
    generator.state = drawn
    if found is None or not view.now < found[0] < math.inf:
        return None
    return Planned(head, *found)


def booking_report(booking: Booking) -> BookingReport:
    """A booking."""
    job = booking.job
    return BookingReport(
        job.id,
        job.pool.name,
        job.processors,
        finite(booking.start),
        finite(booking.start + job.expected_runtime),
        job.user,
        booking.placement,
    )
