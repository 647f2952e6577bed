"""Pending jobs that are bound to a reservation: they run there alone."""

from __future__ import annotations

import msgspec

from headway.decisions import Bind
from headway.errors import StateError
from headway.state.facts import Facts
from headway.state.moves import Undo
from headway.state.queues import leave_queue
from headway.state.records import Job, Status, unconditional
from headway.state.routes import pending_job
from headway.state.waiting import queue_or_wait


def bind(state: Facts, decision: Bind) -> Undo:
    """The job names that reservation.

    Raises :class:`headway.errors.StateError`, and changes nothing, if the job is not pending or on its way to
    another pool, or if there is no such reservation.
    """
    job = pending_job(state, decision.job_id)
    if job.bound_for:
        raise StateError(f"job {job.id} is on its way to pool {job.bound_for!r}")
    name = decision.reservation_id
    kept = state.reservations.get(name)
    if name and kept is None:
        raise StateError(f"there is no reservation {name!r}")
    if kept is not None and kept.job_id not in ("", job.id):
        raise StateError(f"reservation {name!r} is kept for job {kept.job_id} alone")
    before, first = job.description.reservation, job.id not in state.before_binding
    state.before_binding.setdefault(job.id, before)
    _name(state, job, name)

    def undo() -> None:
        if first:
            state.before_binding.pop(job.id, None)
        _name(state, job, before)

    return undo


def _name(state: Facts, job: Job, reservation: str) -> None:
    leave_queue(state, job)
    job.description = msgspec.structs.replace(job.description, reservation=reservation)
    job.unconditional = unconditional(job.description) and not job.bound_for
    job.domain.touch()
    queue_or_wait(state, job)


def not_bound(state: Facts, decision: Bind) -> None:
    """The cluster did not bind the job: the job names what it named before."""
    before = state.before_binding.pop(decision.job_id, None)
    job = state.jobs.get(decision.job_id)
    if job is not None and before is not None and job.status in (Status.PENDING, Status.WAITING):
        _name(state, job, before)
