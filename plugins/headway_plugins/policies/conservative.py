"""Conservative backfilling: a booking for every job, so nobody is delayed by a later one.

A. Mu'alem and D. Feitelson: Utilization, Predictability, Workloads, and User Runtime Estimates in
Scheduling the IBM SP2 with Backfilling. IEEE TPDS 12(6), 2001, section 2.

Jobs are booked in queue order, each at the earliest time at which it fits the profile of running
jobs and earlier bookings; those whose time is now start. The bookings are made anew in each cycle,
so that a job that ends early lets everybody move forward in queue order. Where only arrivals
happened since the last cycle the bookings would come out the same, so they are kept and only the
new jobs are booked.
"""

from __future__ import annotations

from itertools import islice

from headway.decisions import Start
from headway.hookspecs import Plugin, hookimpl
from headway.view import View


class Conservative(Plugin):
    """Conservative backfilling: a booking for every queued job, in queue order."""

    @hookimpl
    def schedule(self, view: View) -> list[Start]:
        first = len(view.queue) - view.fresh if view.fresh >= 0 else 0
        for job in islice(view.queue, first, None):
            if view.start(job, "fits before all bookings of earlier jobs") is None:
                view.book(job)
        return view.made
