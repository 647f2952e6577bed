"""Dedicated jobs: jobs that must start at a given second, among batch jobs under any policy.

R. Kumar, Z. Shae, H. Jamjoom: Scheduling Batch and Heterogeneous Jobs with Runtime Elasticity in a
Parallel Processing Environment. 2012, section 3.2 and Table III (the suffix -D).

A dedicated job has the attribute ``requested_start`` (absolute seconds). Until then it waits
outside the queue; from then on it stands at the queue's head, before all batch jobs, by requested
start. Its processors are kept for it: the policy's starts may not break the *dedicated freeze*.
With this plugin EASY becomes EASY-D and LOS becomes LOS-D. (Hybrid-LOS handles dedicated jobs by
itself and does not need it.)

Decisions on what the paper leaves open:

- ``freeze: first`` keeps processors for the earliest group of dedicated jobs with the same requested
  start, as in the paper; ``freeze: all`` for every dedicated job within the ``horizon``, which is
  what a real site wants, and the default.
- When a group does not fit at its start, the freeze moves to the earliest time at which all of it
  does. Once due, its jobs are served in turn, each as soon as it can without delaying an earlier
  job; the delay is a metric.
- A group that never fits as a whole is kept for job by job.
- Due jobs come before jobs that are not due yet.
- A requested start in the past at submission is due at once.
- On nodes each job is booked with a placement of its own, so a group may be split over time.
- The batch system keeps its nodes too: see :mod:`headway_plugins.policies.dedicated_reservations`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby, takewhile
from typing import Any, Literal

import numpy as np
import pydantic

from headway.decisions import Decision
from headway.events import Event, JobChanged, JobHeld, JobReleased, JobSubmitted
from headway.hookspecs import Plugin, hookimpl
from headway.model import FOR_JOB
from headway.plugins import Again, Traits
from headway.results import RunResult
from headway.state import Domain, Job, State, Status
from headway.view import Booking, View
from headway_plugins.policies.dedicated_reservations import OBSERVED, DedicatedReservations, ReservingOptions

REQUESTED_START = "requested_start"

_INF = float("inf")
#: The events of which the queue and the reservations take note.
DEDICATED: tuple[type[Event], ...] = (JobSubmitted, JobChanged, JobHeld, JobReleased, *OBSERVED)


def requested_start(job: Job) -> float | None:
    """When a dedicated job must start, absolute seconds; None for a batch job."""
    value = job.attribute(REQUESTED_START)
    return float(value) if value is not None else None


class DedicatedQueue:
    """The dedicated jobs that are not due yet: the paper's W_d."""

    def __init__(self) -> None:
        self._waiting: dict[str, Job] = {}
        #: What was booked last, domain by domain.
        self._booked: dict[str, list[Booking]] = {}

    @property
    def bookings(self) -> list[Booking]:
        """The bookings of all jobs that are kept for."""
        return [booking for booked in self._booked.values() for booking in booked]

    def observe(self, event: Event, state: State) -> None:
        """Take note of dedicated jobs as they arrive or become dedicated."""
        if isinstance(event, JobSubmitted | JobChanged):
            job = state.jobs.get(event.job.id)
            if job is not None and requested_start(job) is not None:
                if job.status is Status.WAITING:
                    self._waiting[job.id] = job
                # It changes what is kept, even if it only came to the queue's tail.
                job.domain.touch()
        elif isinstance(event, JobHeld | JobReleased) and event.job_id in self._waiting:
            self._waiting[event.job_id].domain.touch()

    def ahead(self, domain: Domain, now: float) -> list[Job]:
        """Jobs of ``domain`` that are due after ``now``, by requested start, then arrival."""
        gone = [i for i, job in self._waiting.items() if job.status is not Status.WAITING]
        for job_id in gone:
            del self._waiting[job_id]
        jobs = [
            job
            for job in self._waiting.values()
            if job.domain is domain and not job.barred and (requested_start(job) or 0.0) > now
        ]
        return sorted(jobs, key=lambda job: (requested_start(job), job.seq))

    def keep(self, view: View, freeze: str, horizon: float = _INF) -> None:
        """Book what is due, then what is ahead: its earliest group, or with ``freeze`` "all" each group."""
        booked = self._booked[view.domain.name] = []
        due = list(takewhile(lambda job: requested_start(job) is not None, view.queue))
        ahead = self.ahead(view.domain, view.now)
        # Reservations follow the bookings, so later jobs' reservations yield to earlier jobs' bookings.
        yielding = {FOR_JOB + job.id for job in (*due, *ahead)}
        for job in due:
            yielding.remove(FOR_JOB + job.id)
            booked.append(view.book(job, over=yielding))
        for start, members in groupby(ahead, key=requested_start):
            assert start is not None
            if start > view.now + horizon:
                break
            group = list(members)
            after = start
            if len(group) > 1 and view.domain.flat:
                together = view.profile.earliest(sum(job.processors for job in group), 0.0, start)
                after = together if together != _INF else start
            for job in group:
                yielding.remove(FOR_JOB + job.id)
                booked.append(view.book(job, after=after, over=yielding))
            if freeze == "first":
                break


def dedicated_first(job: Job) -> tuple[int, float]:
    """A place in the queue: due dedicated jobs at its head, by requested start."""
    start = requested_start(job)
    return (1, 0.0) if start is None else (0, start)


def dedicated_delay(result: RunResult) -> dict[str, Any]:
    """How late dedicated jobs started, seconds after their requested start."""
    delays = []
    missing = 0
    for record in result.jobs:
        wanted = (record.job.attributes or {}).get(REQUESTED_START)
        if wanted is None:
            continue
        if record.start_time is None:
            missing += 1
        else:
            delays.append(record.start_time - max(float(wanted), record.job.submit_time))
    if not delays:
        return {"jobs": 0, "not started": missing}
    values = np.asarray(delays)
    return {
        "jobs": len(delays),
        "not started": missing,
        "on time": int((values <= 0).sum()),
        "mean delay": float(values.mean()),
        "longest delay": float(values.max()),
    }


class DedicatedOptions(ReservingOptions):
    """Options of the dedicated queue."""

    freeze: Literal["first", "all"] = pydantic.Field(
        default="all",
        description="reserve processors for the earliest group of dedicated jobs only, or for all groups",
    )
    horizon: float = pydantic.Field(
        default=7 * 86400.0,
        gt=0,
        description="seconds before its start from which processors are reserved for a dedicated job",
    )


class Dedicated(Plugin):
    """A queue of jobs with a requested start (suffix -D): they start on time, whatever the policy."""

    Options = DedicatedOptions
    traits = Traits(
        observes=DEDICATED,
        ask_again=Again.DOMAIN,
        paper=(
            "R. Kumar, Z. Shae, H. Jamjoom: Scheduling Batch and Heterogeneous Jobs with Runtime "
            "Elasticity in a Parallel Processing Environment, 2012"
        ),
    )

    def __init__(self, options: DedicatedOptions) -> None:
        super().__init__(options)
        self._queue = DedicatedQueue()
        self._reservations = DedicatedReservations(options)

    @hookimpl
    def startup(self, state: State, capabilities: frozenset[type]) -> None:
        self._reservations.startup(state, capabilities)

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        self._queue.observe(event, state)
        self._reservations.observe(event, state)
        if isinstance(event, JobSubmitted | JobChanged):
            job = state.jobs.get(event.job.id)
            start = requested_start(job) if job is not None else None
            # Until then nothing is kept for it, and what was booked before does not reckon with it.
            if job is not None and start is not None and start - self.options.horizon > state.now:
                state.wake_at(start - self.options.horizon, job.pool)

    @hookimpl
    def queue_key(self, job: Job) -> tuple[int, float]:
        return dedicated_first(job)

    @hookimpl
    def prepare(self, view: View) -> None:
        self._queue.keep(view, self.options.freeze, self.options.horizon)

    @hookimpl
    def control(self, state: State) -> Iterator[Decision]:
        yield from self._reservations.decide(state, self._queue.bookings)

    @hookimpl
    def register_metrics(self) -> dict[str, Callable[[RunResult], Any]]:
        return {"dedicated jobs": dedicated_delay}
