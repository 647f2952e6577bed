"""EASY backfilling: the head of the queue is booked, and a job that does not delay it may overtake it.

D. Lifka: The ANL/IBM SP Scheduling System. JSSPP 1995. A. Mu'alem and D. Feitelson: Utilization,
Predictability, Workloads, and User Runtime Estimates in Scheduling the IBM SP2 with Backfilling.
IEEE TPDS 12(6), 2001, section 2.

Jobs start from the head of the queue while they fit. The first that does not fit is booked: its
*shadow time* is the earliest time at which enough processors are free by the expected ends of the
running jobs, where every end up to and including the shadow time counts, and the *extra
processors* are the processors that it leaves free then. The jobs behind it are tried in queue order.
A job starts if it fits now and either is expected to end by the shadow time (now + runtime <=
shadow) or fits in the extra processors, which shrink as such jobs start.

``backfill: shortest-first`` tries them in the order of their expected runtimes (SJBF; D. Tsafrir, Y. Etsion,
D. G. Feitelson: Backfilling Using System-Generated Predictions Rather Than User Runtime Estimates. IEEE TPDS
18(6), 2007); of equally long jobs the first in the queue.

Pools that share nodes have one queue and one head. With ``bookings_per_pool`` the first waiting job of each
of them is booked as well, so that no pool waits for another's turn to have a booking. A job of several pools
counts for the first of them that could start it, in whichever it is booked.

With ``bookings: N`` the first N waiting jobs are booked, not only the first one, and a job starts if it
delays none of them (EASY with N reservations; Maui's ``RESERVATIONDEPTH``). ``backfill: shortest-first`` is
then about the jobs behind the last booked job. :mod:`.tuning` describes the other options.

Where only arrivals happened since the last cycle, what was refused then would be refused again
(the booking stands, nothing became free, and every expected end moved later with the clock), so
only the new jobs are tried.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Literal

from pydantic import Field

from headway.decisions import Decision
from headway.hookspecs import Plugin, hookimpl
from headway.plugins import Again, Study, Traits
from headway.state import Job
from headway.view import Booking, View
from headway_plugins.policies.tuning import Tuning, serve, why_not

_INF = float("inf")


class EasyOptions(Tuning):
    """Options of EASY."""

    bookings: int = Field(
        default=1,
        ge=1,
        le=1_000_000,
        description="number of waiting jobs that are booked, from the head of the queue",
    )
    bookings_per_pool: bool = Field(
        default=False,
        description="where pools share nodes, book the first waiting job of each pool, too",
    )
    backfill: Literal["in-order", "shortest-first"] = Field(
        default="in-order", description="order in which the jobs behind the head are tried"
    )


class Easy(Plugin):
    """EASY backfilling: one booking for the head of the queue, backfill in queue order."""

    traits = Traits(ask_again=Again.DOMAIN, study=Study(backfills=True))
    Options = EasyOptions

    def __init__(self, options: EasyOptions | None = None) -> None:
        super().__init__(options or EasyOptions())
        self._shortest = self.options.backfill == "shortest-first"
        per_pool = self.options.bookings_per_pool
        self._one = self.options.bookings == 1 and not self.options.in_part and not per_pool
        self._resolution = self.options.resolution or 0.0

    @hookimpl
    def schedule(self, view: View) -> list[Decision]:
        if view.resolution != self._resolution:
            view.coarsen(self._resolution)
        if not self._one:
            self._serve(view)
            return view.made
        queue, domain = view.queue, view.domain
        booking = view.booked(queue[0]) if view.fresh >= 0 else None
        if booking is not None:
            first = len(queue) - view.fresh
        else:
            first = 0
            for job in queue:
                if job.processors > domain.free or view.start(job, "first in the queue") is None:
                    break
                first += 1
            if first == len(queue) or not domain.free:
                # No job waits, or nothing is left to backfill: no booking is needed.
                return view.made
            booking = view.book(queue[first])
            first += 1
        free = domain.free
        shadow, now = booking.start, view.now
        # A job inside its own reservation delays no job, nor does a job whose booking another plugin made:
        # of these only the view can tell.
        counts = not domain.reservations and not view.prepared
        extra = booking.extra if counts else domain.total
        behind: Iterable[Job] = islice(queue, first, None)
        if self._shortest:
            behind = sorted((job for job in behind if job.processors <= free), key=_runtime)
        for job in behind:
            processors = job.processors
            if (
                processors <= free
                and (now + job.expected_runtime <= shadow or processors <= extra)
                and view.start(job, why_backfilled(booking, job, now)) is not None
            ):
                if counts:
                    extra = booking.extra
                free = domain.free
                if not free:
                    break
        return view.made

    def _serve(self, view: View) -> None:
        """Serve the queue where it is not a single booking and all jobs behind it."""
        bookings, queue, per_pool = self.options.bookings, view.queue, self.options.bookings_per_pool
        if self._shortest or self.options.in_part or per_pool:
            serve(
                view, self.options, bookings, lambda job: _why(job, view),
                shortest=self._shortest, per_pool=per_pool,
            )  # fmt: skip
        else:
            new = queue if view.fresh < 0 else queue[len(queue) - view.fresh :]
            view.serve(new, f"delays none of the first {bookings} waiting jobs", bookings)

    @hookimpl
    def explain(self, job: Job, question: str, view: View) -> str | None:
        """Why the options keep a job waiting."""
        return None if question != "waiting" else why_not(job, view, self.options, self.options.bookings)


def _why(job: Job, view: View) -> str:
    """The reason of a job's start, told before it is tried."""
    bookings = view.bookings
    if not bookings:
        return "first in the queue" if view.queue[0] is job else "nothing is booked before it"
    if len(bookings) == 1:
        return why_backfilled(bookings[0], job, view.now)
    return f"backfilled: delays none of the {len(bookings)} jobs that are booked"


def _runtime(job: Job) -> float:
    return job.expected_runtime


def may_backfill(booking: Booking, job: Job, view: View) -> bool:
    """Whether ``job`` fits and does not delay the booked head, as far as counts tell.

    A job inside its own reservation delays no job, nor does a job whose booking another plugin made:
    of these only the view can tell.
    """
    return job.processors <= view.free and (
        view.now + job.expected_runtime <= booking.start
        or job.processors <= booking.extra
        or bool(view.domain.reservations)
        or view.prepared > 0
    )


def why_backfilled(booking: Booking, job: Job, now: float) -> str:
    """The reason of a backfilled job's start, told before it is tried."""
    head = booking.job.id
    if booking.start == _INF:
        return f"backfilled: no expected end makes room for job {head}, so no job is delayed"
    if now + job.expected_runtime <= booking.start:
        return f"backfilled: ends by {booking.when}, when job {head} is to start"
    return f"backfilled: needs no processor that job {head} will need at {booking.when}"
