"""A job array in sentences: what its elements do, in groups."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from headway.inquiry.inquiry import Inquiry
from headway.inquiry.queued import in_queues
from headway.state import Job, Status
from headway.state.records import ON_NODES

#: Spans of an array's numbers that are shown of a group of elements.
_SPANS = 10


def elements_of(inquiry: Inquiry, array_id: str) -> list[Job]:
    """The elements of a job array that are not over, by their numbers."""
    jobs, array = inquiry.state.jobs, inquiry.state.arrays.get(array_id)
    elements = [jobs[job_id] for job_id in array.left if job_id in jobs] if array is not None else []
    elements.sort(key=lambda job: (job.description.array_index or 0, job.seq))
    return elements


def array_lines(inquiry: Inquiry, array_id: str) -> list[str]:
    """Sentences about the elements of a job array that are not over; [] if there are none."""
    elements = elements_of(inquiry, array_id)
    if not elements:
        return []
    count = f"{len(elements)} element{'s' if len(elements) > 1 else ''}"
    lines = [f"Job array {array_id} of {elements[0].user or 'an unknown user'}: {count} not over."]
    groups: dict[str, list[Job]] = {}
    for job in elements:
        groups.setdefault(_what(inquiry, job), []).append(job)
    for what, jobs in sorted(groups.items(), key=lambda group: group[1][0].description.array_index or 0):
        lines.append(f"{what}: {_numbers(jobs)}.")
    first = _first(inquiry, groups.get("In the queue", ()))
    if first is not None:
        told = " ".join(in_queues(inquiry, first))
        lines.append(f"The first of these is {first.id}. {told}")
    return lines


def _first(inquiry: Inquiry, jobs: Sequence[Job]) -> Job | None:
    """The job that is furthest ahead in its queue."""
    waiting = set(jobs)
    places = (
        next(((at, job) for at, job in enumerate(inquiry.queue(domain)) if job in waiting), None)
        for domain in dict.fromkeys([job.domain for job in jobs])
    )
    return min((place for place in places if place is not None), key=itemgetter(0), default=(0, None))[1]


def _what(inquiry: Inquiry, job: Job) -> str:
    """What an element does."""
    if job.id in inquiry.wished_starts:
        return "Would be started now"
    if job.status is Status.PENDING:
        return "In the queue"
    if job.status in ON_NODES:
        return "On nodes"
    return f"Cannot start: {inquiry.told(inquiry.state.why_waiting(job, inquiry.clock))}"


def _numbers(jobs: Sequence[Job]) -> str:
    """``3, 5-9 (6 elements)`` for the elements of an array, in order of their numbers."""
    spans: list[list[int]] = []
    for number in (job.description.array_index or 0 for job in jobs):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    shown = [str(first) if first == last else f"{first}-{last}" for first, last in spans[:_SPANS]]
    more = ", ..." if len(spans) > _SPANS else ""
    return f"{', '.join(shown)}{more}{f' ({len(jobs)} elements)' if len(jobs) > 1 else ''}"
