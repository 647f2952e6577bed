"""Why a job waits, what it waits for, and when it is expected to start."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headway.decisions import Decision, Start
from headway.scheduler import Scheduler
from headway.state import Job, Status
from headway.view import Booking, View

_INF = float("inf")


def explain(
    scheduler: Scheduler,
    job_id: str,
    clock: Callable[[float], str],
    wished: Sequence[Decision] = (),
) -> list[str]:
    """Sentences about a job as the scheduler knows it after its last step; [] if it knows no such job.

    ``wished`` are that step's decisions, where nobody carries them out.
    """
    job = scheduler.state.jobs.get(job_id)
    if job is None:
        return []
    request = job.request
    asks = f"{job.processors} processors"
    if request.nodes:
        asks += f" on {request.nodes} nodes"
    asks += f" for {job.estimate:.0f} s"
    first = f"Job {job.id} of {job.user or 'an unknown user'} asks for {asks} in pool {job.pool.name!r}"
    lines = [f"{first}; it was submitted at {clock(job.submit_time)}."]
    for decision in wished:
        if isinstance(decision, Start) and decision.job_id == job_id:
            where = ", ".join(name for name, _ in decision.placement)
            lines.append(
                f"It would be started now{' on ' + where if where else ''}: {decision.reason or 'it fits'}."
            )
            return lines
    if job.status in (Status.RUNNING, Status.SUSPENDED, Status.STARTING):
        where = ", ".join(name for name, _ in job.placement)
        verb = {"running": "runs", "suspended": "is suspended", "starting": "is being started"}[
            job.status.value
        ]
        lines.append(
            f"It {verb}{' on ' + where if where else ''}, expected to end by {clock(job.expected_end)}."
        )
        return lines
    reason = scheduler.state.why_waiting(job, clock)
    if reason:
        lines.append(f"It cannot start: {reason}.")
        return lines
    lines.extend(_in_queue(scheduler, job, clock))
    return lines


def _in_queue(scheduler: Scheduler, job: Job, clock: Callable[[float], str]) -> list[str]:
    pool = job.pool
    view = scheduler.views[pool.name]
    lines = []
    place = pool.queue.index(job)
    lines.append(
        f"It is number {place + 1} of {len(pool.queue)} in the queue; "
        f"{pool.free} of {pool.total} processors are free."
    )
    if job.processors > pool.total:
        lines.append(f"It needs more processors than the {pool.total} that are usable now (nodes are down).")
        return lines
    due = scheduler.next_cycle
    if due is not None and pool.changed:
        lines.append(f"Something happened since the queue was examined; it is examined next at {clock(due)}.")
        return lines
    booking = view.booked(job)
    if job.veto:
        lines.append(f"The policy would start it, but a plugin vetoes that: {job.veto}.")
    elif booking is not None:
        lines.append(_booked(view, booking, clock))
    elif job.processors > pool.free:
        lines.append(f"It waits for {job.processors - pool.free} more processors.")
    elif view.bookings:
        head = view.bookings[0]
        if pool.flat:
            lines.append(
                f"It would fit now, but would delay job {head.job.id}, for which processors are kept from "
                f"{clock(head.start)} on."
            )
        else:
            lines.append(
                "Enough processors are free, but no nodes fit its request without delaying job "
                f"{head.job.id}, for which nodes are kept from {clock(head.start)} on."
            )
    elif place:
        lines.append(f"The policy serves job {pool.queue[0].id} first.")
    elif not pool.flat:
        lines.append("Enough processors are free, but not on nodes that fit its request.")
    return lines


def _booked(view: View, booking: Booking, clock: Callable[[float], str]) -> str:
    if booking.start == _INF:
        return "No running job's end will make room for it: it waits for nodes or for a reservation to go."
    until = [entry for entry in view.running if entry[0] <= booking.start]
    names = ", ".join(f"{e[3].id} (by {clock(e[0])})" for e in until[-5:])
    more = f" and {len(until) - 5} more" if len(until) > 5 else ""
    waits = f" It waits for the end of job {names}{more}." if until else ""
    return f"Processors are kept for it from {clock(booking.start)} on.{waits}"
