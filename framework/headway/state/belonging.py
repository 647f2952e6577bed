"""Which reservation a job belongs into: the job names it, or headway keeps it for the job alone."""

from __future__ import annotations

from headway.model import FOR_JOB, Reservation
from headway.state.facts import Facts
from headway.state.records import Job


def kept_for(state: Facts, job: Job) -> Reservation | None:
    """The reservation that headway keeps for this job alone. The job may use it, and other nodes too."""
    found = state.reservations.get(FOR_JOB + job.id) if state.reservations else None
    return found if found is not None and found.ours else None


def confining(state: Facts, job: Job) -> Reservation | None:
    """The reservation that the job names and whose nodes or processors alone it may use."""
    own = state.reservations.get(job.description.reservation)
    return None if own is not None and own.only_licences else own


def inside(state: Facts, job: Job) -> str:
    """The reservation that takes nothing from the job: the job names it, or it is kept for the job."""
    named = job.description.reservation
    if named or not state.reservations:
        return named
    kept = kept_for(state, job)
    return kept.id if kept is not None else ""
