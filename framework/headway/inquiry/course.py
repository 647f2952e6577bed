"""What becomes of the jobs that wait under one policy: their starts, and the processors that are busy.

This uses a scheduler up, as a :mod:`headway.inquiry.trial` does.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from itertools import chain

import msgspec

from headway.decisions import Decision, Start
from headway.events import Event
from headway.inquiry.going_on import steps_from, unforeseeable
from headway.inquiry.inquiry import Inquiry
from headway.scheduler import Scheduler
from headway.state import Job, State, Status

#: Points of a curve, at most: beyond that every other point is left out.
_POINTS = 20_000


class Course(msgspec.Struct):
    """What is known of a course, so far."""

    plugins: tuple[str, ...] = ()
    #: Job -> its start (absolute seconds), of the jobs that were asked for.
    starts: dict[str, float] = {}
    #: The time of the last step (absolute seconds).
    reached: float = 0.0
    #: Nothing more happens, or all that were asked for have started.
    complete: bool = False
    #: Why it is not known any further.
    ended: str = ""
    #: (Time, processors that are busy from then on).
    busy: list[tuple[float, int]] = []
    #: Processors that were usable when it began.
    processors: int = 0


def waiting_jobs(inquiry: Inquiry) -> list[Job]:
    """The jobs that wait: queues as the last cycle served them, then jobs outside of them."""
    state = inquiry.state
    queued = [
        job
        for domain in state.domains.values()
        for job in inquiry.queue(domain)
        if job.pool.domain is domain and job.status is Status.PENDING
    ]
    known = {job.id for job in queued}
    waits = (Status.PENDING, Status.WAITING)
    return queued + [job for job in state.jobs.values() if job.status in waits and job.id not in known]


def follow(
    scheduler: Scheduler,
    now: float,
    events: Sequence[Event],
    jobs: Collection[str],
    course: Course,
    deadline: float,
) -> None:
    """Step at ``now`` with the events, let time go on, and note in ``course`` when ``jobs`` start, until
    ``deadline`` (monotonic clock). :class:`headway.inquiry.going_on.OutOfTime` may end it at any moment: what
    the course says is right at each."""
    state = scheduler.state
    course.plugins = tuple(scheduler.plugins.by_name)
    left = set(jobs)
    first = scheduler.step(now, events)
    course.processors = sum(domain.total for domain in state.domains.values())
    for _, decisions in chain([(now, first)], steps_from(scheduler, first)):
        _note(course, state, decisions, left)
        course.ended = _trouble(scheduler, decisions)
        if course.ended:
            return
        if not left:
            break
        if time.monotonic() >= deadline:
            course.ended = "the time for the answer was over"
            return
    course.complete = True


def _note(course: Course, state: State, decisions: Sequence[Decision], left: set[str]) -> None:
    now = state.now
    for one in decisions:
        if isinstance(one, Start) and one.job_id in left:
            left.discard(one.job_id)
            course.starts[one.job_id] = now
    busy = sum(domain.total - domain.free for domain in state.domains.values())
    if course.busy and course.busy[-1][0] == now:
        course.busy[-1] = (now, busy)
    else:
        course.busy.append((now, busy))
        if len(course.busy) > _POINTS:
            del course.busy[1:-1:2]
    course.reached = now


def _trouble(scheduler: Scheduler, decisions: Sequence[Decision]) -> str:
    """Why it is not known what follows from a step; "" if it is."""
    for problem in scheduler.problems:
        # What makes no sense in the events of a copy is nobody's failure.
        if problem.traceback:
            return f"plugin {problem.plugin} failed in its hook {problem.hook}: {problem.message}"
    scheduler.problems.clear()
    if (other := unforeseeable(decisions)) is not None:
        job = getattr(other, "job_id", "")
        about = f" for job {job}" if job else ""
        return f"the decision {type(other).__name__}{about} is made then, and what follows is not foreseen"
    return ""
