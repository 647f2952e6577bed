"""Conservative backfilling: a booking for every job, so nobody is delayed by a later one.

A. Mu'alem and D. Feitelson: Utilization, Predictability, Workloads, and User Runtime Estimates in
Scheduling the IBM SP2 with Backfilling. IEEE TPDS 12(6), 2001, section 2.

Jobs are booked in queue order, each at the earliest time at which it fits the profile of running
jobs and earlier bookings; those whose time is now start. The bookings are made anew in each cycle,
so that a job that ends early lets everybody move forward in queue order. Where only arrivals
happened since the last cycle the bookings would come out at the same times, so they are kept, on
their nodes, and only the new jobs are served. (A placement that looks at how full nodes are might
choose others by then.)

Ours: with the option ``depth`` only so many waiting jobs are booked, the first ones. Those behind them
start where they fit before all bookings. With a depth of 1 that is EASY.
"""

from __future__ import annotations

import pydantic

from headway.decisions import Decision
from headway.hookspecs import Plugin, hookimpl
from headway.view import View


class ConservativeOptions(pydantic.BaseModel):
    """Options of conservative backfilling."""

    model_config = pydantic.ConfigDict(extra="forbid")

    depth: int | None = pydantic.Field(
        default=None,
        ge=1,
        description="how many waiting jobs are booked, the first ones; the rest may only start where they "
        "fit before all bookings (default: all are booked)",
    )


class Conservative(Plugin):
    """Conservative backfilling: a booking for every queued job, in queue order."""

    Options = ConservativeOptions

    def __init__(self, options: ConservativeOptions | None = None) -> None:
        super().__init__(options or ConservativeOptions())

    @hookimpl
    def schedule(self, view: View) -> list[Decision]:
        new = view.queue if view.fresh < 0 else view.queue[len(view.queue) - view.fresh :]
        view.serve(new, "fits before all bookings of earlier jobs", self.options.depth)
        return view.made
