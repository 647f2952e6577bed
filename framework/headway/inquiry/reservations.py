"""Reports of reservations."""

from __future__ import annotations

from msgspec.structs import replace

from headway.inquiry.inquiry import Inquiry
from headway.inquiry.pages import page
from headway.inquiry.reports import ReservationPage, ReservationReport
from headway.model import Reservation


def reservation_page(inquiry: Inquiry, first: int, count: int) -> ReservationPage:
    """``count`` reservations that are not over, from the place ``first`` on, as the cluster lists them.

    Whom one is for, and why, is told to users that may know of all jobs; so is the id of one that is kept for
    a job, since it names the job.
    """
    now, sees_all = inquiry.state.now, inquiry.sees_all

    def report(one: Reservation) -> ReservationReport:
        name = one.id if sees_all or not one.job_id else ""
        told = ReservationReport(name, one.start, one.end, one.pool, one.processors, one.nodes)
        if not sees_all:
            return told
        return replace(told, users=one.users, accounts=one.accounts, reason=one.reason)

    kept = (one for one in inquiry.state.reservations.values() if one.end > now)
    return ReservationPage(*page(kept, report, first, count, nodes=lambda made: len(made.nodes)))
