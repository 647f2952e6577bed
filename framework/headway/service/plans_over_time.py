"""What the daemon has planned for jobs that wait, over time, and how good it was: a bounded record in memory.

After each cycle the bookings that it made are looked at, and no others. A job whose planned start is within
a minute of what is on record costs a look-up. The record is not in the journal: it begins anew with the
daemon's process, and says since when it is kept.
"""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from time import thread_time

import numpy as np

from headway.events import Event, JobEnded, JobRequeued, JobStarted
from headway.inquiry.bookings import planned_head
from headway.inquiry.inquiry import first_served
from headway.inquiry.reports import PlanAccuracy, PlanChange, PlanHistory
from headway.scheduler import Scheduler
from headway.state import Job, State, Status
from headway.view import Booking, View
from headway.view.owed import Enough, short_of_time

#: Seconds: a planned start that moved by less is the same.
SAME = 60.0
#: Changes of one job that are kept, beside its first planned start.
CHANGES = 7
#: Jobs of a pool that began last, by which planned starts are judged; and how few say nothing.
JUDGED, FEWEST = 100, 5
HOUR = 3600.0
#: Bookings that a policy owes are made for the record at most so often (seconds), and only if that is likely
#: to take no more seconds of processor time than this; what one takes before that is known.
_OWED_EVERY, _OWED_SECONDS, _OWED_GUESS = 60.0, 0.1, 0.0005

#: So many jobs may be on record that are gone, beside as many as there are.
_SPARE = 1000

#: First planned at, for, then of each change that is kept: at, for; and how many changes there were.
_Plans = array
#: Seconds between the first planned start and the start; the same of an hour before the start, if known.
_Error = tuple[float, float | None]


class PlansOverTime:
    """Planned starts of the jobs that wait, and what became of those of jobs that began."""

    def __init__(self, met: Callable[[Job, float, float], None] | None = None) -> None:
        """``met`` is told of each job that begins and had a planned start: the job, the first planned
        start and the start (absolute seconds)."""
        self._met = met
        #: Absolute seconds; None: before the first cycle.
        self.since: float | None = None
        self._plans: dict[str, _Plans[float]] = {}
        self._changes: dict[str, int] = {}
        self._errors: dict[str, deque[_Error]] = {}
        #: Domain -> how many bookings it had when they were looked at last, and the last of them.
        self._looked: dict[str, tuple[int, Booking | None]] = {}
        #: Domain -> the first job of its queue when that was looked at last, and when that is due again.
        self._heads: dict[str, tuple[str, float]] = {}
        self._owed_next, self._owed_each = -math.inf, _OWED_GUESS

    # ------------------------------------------------------------------ what happens

    def happened(self, events: Iterable[Event], state: State) -> None:
        """What a cycle was told, after its step."""
        for event in events:
            if isinstance(event, JobStarted):
                self._started(event, state)
            elif isinstance(event, JobEnded | JobRequeued):
                self._forget(event.job_id)

    def _started(self, event: JobStarted, state: State) -> None:
        plans = self._plans.get(event.job_id)
        job = state.jobs.get(event.job_id)
        if plans is not None and job is not None:
            errors = self._errors.setdefault(job.pool.name, deque(maxlen=JUDGED))
            at_hour = self._in_force(event.job_id, event.time - HOUR)
            if self._met is not None:
                self._met(job, plans[1], event.time)
            errors.append(
                (abs(event.time - plans[1]), None if at_hour is None else abs(event.time - at_hour))
            )
        self._forget(event.job_id)

    def _forget(self, job_id: str) -> None:
        self._plans.pop(job_id, None)
        self._changes.pop(job_id, None)

    def _in_force(self, job_id: str, time: float) -> float | None:
        """The planned start that the job had then; None: none, or not known any more."""
        plans = self._plans[job_id]
        found = None
        for at in range(0, len(plans), 2):
            if plans[at] <= time:
                found = at
        gap = self._changes.get(job_id, 0) > CHANGES
        return None if found is None or (gap and not found) else plans[found + 1]

    # ------------------------------------------------------------------ what is planned

    def planned(self, scheduler: Scheduler) -> None:
        """Between two steps: note the bookings that were made since this was called last."""
        now = scheduler.state.now
        if self.since is None:
            self.since = now
        self._make_owed(scheduler.views.values(), now)
        for view in scheduler.views.values():
            for booking in self._fresh(view):
                if math.isfinite(booking.start) and booking.job.status is Status.PENDING:
                    self.note(booking.job.id, booking.start, now)
        self._note_heads(scheduler, now)
        if len(self._plans) > 2 * len(scheduler.state.jobs) + _SPARE:
            # Of jobs that ended between two runs no end was told.
            for job_id in self._plans.keys() - scheduler.state.jobs.keys():
                self._forget(job_id)

    def _fresh(self, view: View) -> Sequence[Booking]:
        """The bookings of a domain that are made and were not looked at yet."""
        name, bookings = view.domain.name, view.made_bookings
        count, last = self._looked.get(name, (0, None))
        if count > len(bookings) or (count and bookings[count - 1] is not last):
            # Not what was looked at, with some more behind it.
            count = 0
        self._looked[name] = len(bookings), bookings[-1] if bookings else None
        return bookings[count:]

    def _make_owed(self, views: Iterable[View], now: float) -> None:
        """Have the bookings made that a policy owes in all domains, now and then, where that is cheap."""
        if now < self._owed_next:
            return
        owing = [view for view in views if view.owed]
        owed = sum([view.owed for view in owing])
        if not owed or owed * self._owed_each > _OWED_SECONDS:
            return
        began, check = thread_time(), short_of_time(_OWED_SECONDS)
        for view in owing:
            with suppress(Enough):
                view.make_owed(check)
        made = owed - sum([view.owed for view in owing])
        if made > 0:
            self._owed_each = (thread_time() - began) / made
        self._owed_next = now + _OWED_EVERY

    def _note_heads(self, scheduler: Scheduler, now: float) -> None:
        """Of the first job of a queue that is not booked: once it is the first, and then once a minute."""
        for domain in scheduler.state.domains.values():
            if not domain.queue:
                continue
            head = first_served(scheduler, domain)
            known, due = self._heads.get(domain.name, ("", now))
            if head.id != known or now >= due:
                self._heads[domain.name] = head.id, now + SAME
                if (planned := planned_head(scheduler, domain)) is not None:
                    self.note(head.id, planned.start, now)

    def note(self, job_id: str, start: float, now: float) -> None:
        """A job is planned to start at ``start``, as of ``now`` (absolute seconds)."""
        plans = self._plans.get(job_id)
        if plans is None:
            self._plans[job_id] = array("d", (now, start))
        elif abs(start - plans[-1]) >= SAME:
            self._changes[job_id] = self._changes.get(job_id, 0) + 1
            if len(plans) == 2 * (CHANGES + 1):
                del plans[2:4]
            plans.extend((now, start))

    # ------------------------------------------------------------------ what is told

    def of(self, job_id: str) -> PlanHistory | None:
        """A job's planned starts over time; None: none was planned yet."""
        plans = self._plans.get(job_id)
        if plans is None:
            return None
        latest = tuple([PlanChange(*plans[at : at + 2]) for at in range(2, len(plans), 2)])
        return PlanHistory(plans[0], plans[1], self._changes.get(job_id, 0), latest, self.since or 0.0)

    def kept_in(self, pool: str) -> PlanAccuracy | None:
        """How good planned starts were in a pool; None: too few jobs with one have begun."""
        errors = self._errors.get(pool, ())
        if len(errors) < FEWEST:
            return None
        half, most = _quantiles(error for error, _ in errors)
        at_hour = [error for _, error in errors if error is not None]
        report = PlanAccuracy(pool, len(errors), half, most)
        if len(at_hour) < FEWEST:
            return report
        half_at, most_at = _quantiles(at_hour)
        return PlanAccuracy(pool, len(errors), half, most, len(at_hour), half_at, most_at)

    def __len__(self) -> int:
        """The jobs on record."""
        return len(self._plans)


def _quantiles(errors: Iterable[float]) -> Iterator[float]:
    return (float(found) for found in np.quantile(list(errors), (0.5, 0.9)))
