"""Which jobs are before a job in its queue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, islice
from operator import attrgetter

from headway.inquiry.inquiry import Inquiry
from headway.inquiry.reports import BeforeReport
from headway.state import Job, Status
from headway.state.queues import place_of

#: Jobs that are named, at most.
_NAMED = 5


def before(inquiry: Inquiry, job: Job) -> BeforeReport | None:
    """The jobs before it; None: it is in no queue. Of a job of several pools, in the pool that it faces."""
    if job.status is not Status.PENDING or job.id in inquiry.wished_starts:
        return None
    queue = inquiry.queue(job.domain)
    place = place_of(queue, job)
    sums = inquiry.sums.setdefault(job.domain.name, [0])
    if len(sums) <= place:
        more = [other.processors for other in islice(queue, len(sums) - 1, place)]
        sums.extend(islice(accumulate(more, initial=sums[-1]), 1, None))
    named = tuple([other.id for other in islice(_seen(inquiry, job, queue, place), _NAMED)])
    return BeforeReport(place, sums[place], named)


def _seen(inquiry: Inquiry, job: Job, queue: Sequence[Job], place: int) -> Iterator[Job]:
    """The jobs before the place that may be seen, in the order of the queue."""
    domain = job.domain
    if inquiry.seen is None or queue is not domain.queue:
        return filter(inquiry.sees, islice(queue, place))
    here = (
        other
        for other in inquiry.seen
        if other.status is Status.PENDING
        and (other.id in domain.shared if other.choices else other.domain is domain)
        and other.order < job.order
    )
    return iter(sorted(here, key=attrgetter("order")))


def before_in_words(inquiry: Inquiry, job: Job, found: BeforeReport | None = None) -> list[str]:
    """The same as a sentence; [] if it is in no queue, or the first in it. ``found``: the report."""
    found = before(inquiry, job) if found is None else found
    if found is None or not found.jobs:
        return []
    are = "1 job is" if found.jobs == 1 else f"{found.jobs} jobs are"
    said = f"{are} before it in the queue, for {found.processors} processors together"
    if found.named:
        several = len(found.named) > 1
        of_yours = "" if inquiry.sees_all else (" your jobs" if several else " your job")
        among = ("" if len(found.named) == found.jobs else " among them") if of_yours else ""
        more = " and others" if not of_yours and found.jobs > len(found.named) else ""
        said += f":{among}{of_yours} {', '.join(found.named)}{more}"
    return [f"{said}."]
