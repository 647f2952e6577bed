"""Which jobs are before a job in its queue."""

from __future__ import annotations

from headway.inquiry.inquiry import Inquiry
from headway.inquiry.reports import BeforeReport
from headway.state import Job, Status

#: Jobs that are named, at most.
_NAMED = 5


def before(inquiry: Inquiry, job: Job) -> BeforeReport | None:
    """The jobs before it; None: it is in no queue. Of a job of several pools, in the pool that it faces."""
    if job.status is not Status.PENDING or job.id in inquiry.wished_starts:
        return None
    queue = inquiry.queue(job.domain)
    ahead = queue[: queue.index(job)]
    sees, named = inquiry.sees, list[str]()
    for other in ahead:
        if sees(other):
            named.append(other.id)
            if len(named) == _NAMED:
                break
    return BeforeReport(len(ahead), sum([other.processors for other in ahead]), tuple(named))


def before_in_words(inquiry: Inquiry, job: Job) -> list[str]:
    """The same as a sentence; [] if it is in no queue, or the first in it."""
    found = before(inquiry, job)
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
