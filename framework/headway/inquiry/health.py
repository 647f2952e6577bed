"""Whether what must always hold does hold of a scheduler: looked at anew from its records, on demand.

A line that is not in order is a mistake of headway's, or of whoever changed the cluster beside it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from headway.inquiry.inquiry import Inquiry
from headway.inquiry.reports import HealthCheck
from headway.state import Job, Status
from headway.state.reasons import reason_of

#: A planned start, or a moment at which the scheduler wants to be asked, may have passed by so many seconds;
#: in batch mode by two cycles, if these are longer.
LATE = 60.0
#: Nodes and jobs that a line names.
_NAMED = 3

_REPORT = "report it, with the daemon's log; headway run started again begins from the cluster's own state"


def state_checks(inquiry: Inquiry, now: float, cycle: float | None) -> list[HealthCheck]:
    """What holds of the state. ``now``: absolute seconds by the daemon's clock; ``cycle``: of batch mode,
    seconds."""
    late = max(LATE, 2 * cycle) if cycle else LATE
    return [
        nodes_given_once(inquiry),
        jobs_known(inquiry),
        plans_ahead(inquiry, late),
        asked_in_time(inquiry, now, late),
    ]


def nodes_given_once(inquiry: Inquiry) -> HealthCheck:
    """No node has more processors in use than it has."""
    table, state = inquiry.state.nodes, inquiry.state
    used: Counter[str] = Counter()
    running = 0
    for job in state.running_jobs():
        running += 1
        if not job.behind and not job.lends:
            for name, processors in job.placement:
                used[name] += processors
    over = [
        f"{name} has {count} of {table.descriptions[name].processors} processors in use"
        for name, count in used.items()
        if name in table.descriptions and count > table.descriptions[name].processors
    ]
    # A flat pool has no nodes: its processors are counted.
    for domain in state.domains.values():
        if domain.flat and (taken := sum([entry[2] for entry in domain.running])) > domain.total:
            over.append(f"pool {domain.name} has {taken} of {domain.total} processors in use")
    good = f"{running} jobs on {len(used)} nodes, no processor twice"
    return _check("nodes given once", over, good, "squeue -w NODE (qstat, bjobs) says which jobs are there")


def jobs_known(inquiry: Inquiry) -> HealthCheck:
    """Each job that is on no nodes is in a queue, or has a reason to wait: no job is forgotten."""
    queued = {job.id for domain in inquiry.state.domains.values() for job in domain.queue}
    lost: list[Job] = []
    waiting = 0
    for job in inquiry.state.jobs.values():
        if job.status is Status.PENDING:
            forgotten = job.id not in queued
        elif job.status is Status.WAITING:
            forgotten = reason_of(inquiry.state, job) is None
        else:
            continue
        waiting += 1
        if forgotten:
            lost.append(job)
    said = [f"{inquiry.called(job)} is in no queue, and waits for nothing" for job in lost]
    return _check(
        "jobs known", said, f"each of {waiting} waiting jobs is in a queue or has a reason", _REPORT
    )


def plans_ahead(inquiry: Inquiry, late: float) -> HealthCheck:
    """No job that waits is planned to start in the past of the last cycle."""
    now, past, planned = inquiry.state.now, [], 0
    for view in inquiry.scheduler.views.values():
        for booking in view.made_bookings:
            if booking.job.status is not Status.PENDING or not math.isfinite(booking.start):
                continue
            planned += 1
            if booking.start < now - late:
                ago = now - booking.start
                past.append(f"{inquiry.called(booking.job)} was planned to start {ago:.0f} s before now")
    return _check("plans ahead", past, f"{planned} planned starts, none in the past", _REPORT)


def asked_in_time(inquiry: Inquiry, now: float, late: float) -> HealthCheck:
    """The scheduler was asked when it wanted to be: no cycle is overdue."""
    due, last = inquiry.scheduler.next_wakeup(), inquiry.state.now
    overdue = [] if due is None or now <= due + late else [f"a cycle has been due for {now - due:.0f} s"]
    return _check("last cycle", overdue, f"{max(0.0, now - last):.0f} s ago, none is overdue", _REPORT)


def _check(name: str, wrong: Sequence[str], good: str, remedy: str) -> HealthCheck:
    if not wrong:
        return HealthCheck(name, True, good)
    more = f" and {len(wrong) - _NAMED} more" if len(wrong) > _NAMED else ""
    return HealthCheck(name, False, "; ".join(wrong[:_NAMED]) + more, remedy)
