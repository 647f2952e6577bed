"""Planned starts of the jobs that wait, after each cycle, in a share of all time.

Bookings that a policy owes are made from the head of the queue on, as for a question. They stay made until
the queue is planned anew; so the longer a plan stands the more of it is known. A job whose booking is owed
keeps for a while the start that was known last: what is shown of it does not come and go.
"""

from __future__ import annotations

import math
from contextlib import suppress

from headway.inquiry.bookings import planned_head
from headway.inquiry.spare_time import SpareTime
from headway.scheduler import Scheduler
from headway.state import Status
from headway.view.holes import starts_made
from headway.view.owed import Enough

#: Seconds for which a job keeps a planned start that is not worked out again.
KEPT = 600.0


class PlannedStarts:
    """What is known of the planned starts of one scheduler's jobs."""

    def __init__(self, spare: SpareTime | None = None) -> None:
        """``spare``: processor time for bookings that are owed."""
        self._spare = spare if spare is not None else SpareTime()
        #: Job -> its planned start, as it was told last.
        self._told: dict[str, float] = {}
        #: Of these, the jobs whose start was not worked out again: since when (absolute seconds).
        self._since: dict[str, float] = {}

    def after_cycle(self, scheduler: Scheduler) -> dict[str, float]:
        """The jobs that wait and have a planned start, and the earliest of each (absolute seconds)."""
        found = self._known(scheduler)
        since = dict[str, float]()
        for job_id in self._told.keys() - found.keys():
            noted = self._since.get(job_id, scheduler.state.now)
            if self._stays(scheduler, job_id, noted):
                found[job_id], since[job_id] = self._told[job_id], noted
        self._told, self._since = found, since
        return found

    def _known(self, scheduler: Scheduler) -> dict[str, float]:
        found: dict[str, float] = {}
        check = self._spare.check()
        # A queue that owes many leaves no time for those that owe few.
        for view in sorted(scheduler.views.values(), key=lambda view: view.owed):
            with suppress(Enough):
                view.make_owed(check)
            for job, start in starts_made(view):
                if job.status is Status.PENDING and start < found.get(job.id, math.inf):
                    found[job.id] = start
        for domain in scheduler.state.domains.values():
            if (planned := planned_head(scheduler, domain)) is not None:
                found.setdefault(planned.job.id, planned.start)
        return found

    def _stays(self, scheduler: Scheduler, job_id: str, noted: float) -> bool:
        """Whether a start that is not worked out now may still be what is planned."""
        job, now = scheduler.state.jobs.get(job_id), scheduler.state.now
        if job is None or job.status is not Status.PENDING or scheduler.views[job.domain.name].owed == 0:
            return False
        return self._told[job_id] > now and now - noted < KEPT
