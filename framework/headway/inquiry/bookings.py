"""Reports of what is booked."""

from __future__ import annotations

import math
from collections.abc import Iterator

from headway.inquiry.inquiry import Inquiry
from headway.inquiry.jobs import Sees, everything
from headway.inquiry.pages import page
from headway.inquiry.reports import BookingPage, BookingReport, finite
from headway.scheduler import Scheduler
from headway.state import Status
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
    """The jobs that wait and have a booking, and their earliest planned starts (absolute seconds)."""
    found: dict[str, float] = {}
    for view in scheduler.views.values():
        for booking in view.bookings:
            start = booking.start
            if booking.job.status is Status.PENDING and start < found.get(booking.job.id, math.inf):
                found[booking.job.id] = start
    return iter(found.items())


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
