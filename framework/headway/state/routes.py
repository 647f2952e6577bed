"""Pending jobs that are sent to another pool: on their way they start nowhere."""

from __future__ import annotations

from headway.decisions import Route
from headway.errors import StateError
from headway.state.facts import Facts
from headway.state.moves import Undo
from headway.state.queues import leave_queue
from headway.state.records import Job, Status
from headway.state.waiting import queue_or_wait


def pending_job(state: Facts, job_id: str) -> Job:
    """The job, which is pending; :class:`headway.errors.StateError` if it is not."""
    job = state.jobs.get(job_id)
    if job is None:
        raise StateError(f"job {job_id} is not known")
    if job.status not in (Status.PENDING, Status.WAITING):
        raise StateError(f"job {job.id} is {job.status.value}")
    return job


def route(state: Facts, decision: Route) -> Undo:
    """The job is on its way to that pool.

    Raises :class:`headway.errors.StateError`, and changes nothing, if the job is not pending or on its way
    already, or if there is no such pool, or it is the job's own.
    """
    job = pending_job(state, decision.job_id)
    if job.bound_for:
        raise StateError(f"job {job.id} is on its way to pool {job.bound_for!r} already")
    if decision.pool not in state.pools:
        raise StateError(f"there is no pool {decision.pool!r}")
    if decision.pool in job.description.pools or decision.pool == job.pool.name:
        raise StateError(f"job {job.id} is in pool {decision.pool!r} already")
    _set_out(state, job, decision.pool)
    return lambda: stays(state, job)


def _set_out(state: Facts, job: Job, pool: str) -> None:
    leave_queue(state, job)
    job.bound_for, job.unconditional = pool, False
    job.domain.touch()
    queue_or_wait(state, job)


def stays(state: Facts, job: Job | None) -> None:
    """The job is not on its way any more, and stays where it is."""
    if job is None or not job.bound_for:
        return
    job.settle()
    if job.status in (Status.PENDING, Status.WAITING):
        leave_queue(state, job)
        job.domain.touch()
        queue_or_wait(state, job)
