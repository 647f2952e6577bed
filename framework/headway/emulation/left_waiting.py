"""Why jobs still wait at the end of a run, grouped by reason."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from headway.inquiry import why_not_started
from headway.results import LeftWaiting
from headway.scheduler import Scheduler
from headway.state import Status

#: Jobs that are asked about; the others count without a reason.
_EXAMINED = 1_000

#: What differs between jobs that wait for the same: their numbers and other jobs' numbers.
_NUMBERS = re.compile(r"\d[\w.:\[\]-]*")


def left_waiting(
    scheduler: Scheduler, jobs: Iterable[str], clock: Callable[[float], str]
) -> list[LeftWaiting]:
    """Why each of these jobs waits, as the scheduler knows it after its last step; most jobs first.

    Reasons that differ by numbers only (of jobs, processors, times) are the same.
    """
    groups: dict[str, LeftWaiting] = {}
    for examined, job_id in enumerate(jobs):
        job = scheduler.state.jobs.get(job_id)
        if job is None or job.status not in (Status.PENDING, Status.WAITING):
            continue
        if examined < _EXAMINED:
            why = why_not_started(scheduler, job, clock)
        else:
            why = f"Not examined: only the first {_EXAMINED} jobs are examined."
        alike = _NUMBERS.sub("#", why)
        known = groups.get(alike, LeftWaiting(0, job_id, why))
        groups[alike] = LeftWaiting(known.jobs + 1, known.first, known.why)
    return sorted(groups.values(), key=lambda group: -group.jobs)
