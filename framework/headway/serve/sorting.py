"""Jobs in another order than that of the queues, which only the picture has.

The daemon sorts nothing: its answers are made between two steps of the scheduler, page by page, and to sort
all jobs would take longer than the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Annotated, Any

import msgspec

from headway.inquiry.reports import JobReport
from headway.service import protocol

#: By what jobs can be sorted.
_FIELDS = {
    name: attrgetter(name) for name in ("submitted", "user", "processors", "name", "account", "pool", "limit")
}
KEYS = (*_FIELDS, "start", "waited")


class JobsInOrder(protocol.Jobs, frozen=True, tag="jobs"):
    """Jobs, as of the socket; ``sort``: by this, "-" before it: the largest first; "": as the queues serve
    them. ``start``: when the job started, or is planned to; ``waited``: until it started, or until now. Jobs
    without it come last, and jobs that are alike in it stand as the queues serve them."""

    sort: Annotated[str, msgspec.Meta(pattern=f"^(-?({'|'.join(KEYS)}))?$")] = ""

    def unsorted(self) -> protocol.Jobs:
        """The same of the daemon, in the order of the queues."""
        told = {name: getattr(self, name) for name in protocol.Jobs.__struct_fields__}
        return protocol.Jobs(**told)


def in_order(
    ids: Iterable[str], by: str, report_of: Callable[[str], JobReport], now: float | None
) -> list[str]:
    """The ids by what :attr:`JobsInOrder.sort` says."""
    value = _value_of(by.removeprefix("-"), now)
    with_value, without = list[tuple[Any, str]](), list[str]()
    for job_id in ids:
        found = value(report_of(job_id))
        if found is None or found == "":
            without.append(job_id)
        else:
            with_value.append((found, job_id))
    # Also from the largest on, jobs that are alike keep their order.
    with_value.sort(key=lambda one: one[0], reverse=by.startswith("-"))
    return [job_id for _, job_id in with_value] + without


def _value_of(name: str, now: float | None) -> Callable[[JobReport], Any]:
    if name == "start":
        return lambda report: report.started if report.started is not None else report.planned_start
    if name == "waited":

        def waited(report: JobReport) -> float | None:
            until = report.started if report.started is not None else now
            return None if until is None else until - report.submitted

        return waited
    return _FIELDS[name]


def moves(known: JobReport, new: JobReport) -> bool:
    """Whether a job that is the same in all lists that are not sorted may stand elsewhere in one that is."""
    return _sorted_by(known) != _sorted_by(new)


_sorted_by = attrgetter("processors", "limit", "planned_start", "started", "submitted")
