"""Time goes on in a copy of a scheduler that nothing else needs (:mod:`headway.service.apart`).

Each job runs as long as it is planned with, and no other job comes. What is decided is carried out at once as
long as it is starts; what any other decision would lead to, no such copy can know.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from headway.decisions import Annotate, Decision, Start, Tell
from headway.events import Event, JobEnded, JobStarted
from headway.resources.profile import next_after
from headway.scheduler import Scheduler
from headway.state import Job, State

_INF = math.inf


class OutOfTime(BaseException):
    """The time for an answer is over; no plugin's mistake, so no :class:`Exception`."""


def unforeseeable(decisions: Sequence[Decision]) -> Decision | None:
    """The first of these decisions of which it is not known what follows; None: there is none."""
    return next((one for one in decisions if not isinstance(one, Start | Annotate | Tell)), None)


def steps_from(
    scheduler: Scheduler, decisions: Sequence[Decision]
) -> Iterator[tuple[float, Sequence[Decision]]]:
    """The steps that follow the one in which ``decisions`` were made: the time of each (absolute seconds) and
    what is decided. Ends where nothing more happens, and behind a decision of which it is not known what
    follows."""
    state = scheduler.state
    now = state.now
    while unforeseeable(decisions) is None:
        news: list[Event] = []
        for one in decisions:
            if isinstance(one, Start):
                news.append(JobStarted(now, one.job_id, one.placement, one.tier, one.frequency, one.pool))
        if not news:
            moment = _next_moment(scheduler)
            if moment == _INF:
                return
            now = max(moment, now)
            news = [JobEnded(now, other.id) for other in _over(state, now)]
        decisions = scheduler.step(now, news)
        yield now, decisions


def _next_moment(scheduler: Scheduler) -> float:
    """When a job ends as planned or the scheduler has something to do; infinity: never."""
    state = scheduler.state
    ends = [domain.running[0][0] for domain in state.domains.values() if domain.running]
    due = scheduler.next_wakeup()
    # What outlives its time ends at any moment.
    return max(min([*ends, _INF if due is None else due]), next_after(state.now))


def _over(state: State, now: float) -> list[Job]:
    """The jobs that end by now as planned."""
    over: dict[str, Job] = {}
    for domain in state.domains.values():
        for end, _, _, job in domain.running:
            if end > now:
                break
            over[job.id] = job
    return list(over.values())
