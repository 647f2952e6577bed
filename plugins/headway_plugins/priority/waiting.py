"""The jobs that wait, and a page of them for a user's question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from headway.model.questions import Question
from headway.state import Job, State, Status
from headway_plugins.priority.reports import Wanted

#: Of a job that is on no nodes.
WAITS = (Status.PENDING, Status.WAITING)


def waiting(state: State) -> Iterator[Job]:
    """The jobs that are on no nodes, in the order in which the state came to know them."""
    return (job for job in state.jobs.values() if job.status in WAITS)


def waiting_page(question: Question, asked: Wanted, state: State) -> tuple[Sequence[Job], int | None]:
    """Jobs that wait and that the asking user may see, of a job or an array if one is named; and where the
    next page begins."""
    found = (job for job in waiting(state) if question.may_see(job.user))
    if asked.job:
        name = question.full_job_id(asked.job)
        found = (job for job in found if name in (job.id, job.description.array_id))
    jobs = list(islice(found, asked.first, asked.first + asked.count + 1))
    more = len(jobs) > asked.count
    return jobs[: asked.count], asked.first + asked.count if more else None
