"""Reports of what is booked."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from headway.inquiry.inquiry import Inquiry, Sees, everything, served_order
from headway.inquiry.pages import page
from headway.inquiry.reports import BookingPage, BookingReport, finite
from headway.model import Placement
from headway.scheduler import Scheduler
from headway.state import Domain, Job, Status
from headway.view import Booking


def booking_page(inquiry: Inquiry, pool: str, first: int, count: int, sees: Sees = everything) -> BookingPage:
    """Some of the bookings in a pool and in the pools that it shares nodes with, "": in all pools; of jobs
    that may be seen."""
    found = (
        booking
        for domain in inquiry.state.domains.values()
        if not pool or pool in domain.pool_names
        for booking in inquiry.scheduler.views[domain.name].bookings
        if sees(booking.job)
    )
    made, then = page(found, booking_report, first, count, nodes=lambda report: len(report.placement))
    return BookingPage(made, then)


def planned_starts(scheduler: Scheduler) -> Iterator[tuple[str, float]]:
    """The jobs that wait and have a planned start, and the earliest of each (absolute seconds)."""
    found: dict[str, float] = {}
    for view in scheduler.views.values():
        for booking in view.bookings:
            start = booking.start
            if booking.job.status is Status.PENDING and start < found.get(booking.job.id, math.inf):
                found[booking.job.id] = start
    for domain in scheduler.state.domains.values():
        if (planned := planned_head(scheduler, domain)) is not None:
            found.setdefault(planned.job.id, planned.start)
    return iter(found.items())


class Planned(NamedTuple):
    """When a job is to start (absolute seconds), and where."""

    job: Job
    start: float
    placement: Placement = ()


def planned_head(scheduler: Scheduler, domain: Domain) -> Planned | None:
    """The first job of a queue that nothing is booked for, with the earliest start that it can have; None: it
    is booked, or not known.

    A policy may leave the first job without a booking as long as no other job could start before it; it would
    be booked for that very time. In monitor mode what is wished for is not taken, so nothing is known beside
    that.
    """
    view = scheduler.views[domain.name]
    if not domain.queue or scheduler.wished or domain.news.due:
        return None
    head = served_order(scheduler, domain)[0]
    if head.veto or head.processors > head.pool.total:
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
