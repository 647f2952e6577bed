"""Bundles of subjobs (:mod:`headway.model.bundles`): what the guard lets be submitted and moved."""

from __future__ import annotations

from headway.decisions import Migrate, SubmitSubjob
from headway.errors import StateError
from headway.model import JobDescription
from headway.model.bundles import parent_of
from headway.state.facts import Facts
from headway.state.records import ON_NODES


def whole(state: Facts, job: JobDescription) -> str:
    """The job of which ``job`` is a subjob; "" if it is no subjob.

    Any user can say so of a job; the job is a subjob only if its parent is the same user's.
    """
    known = state.jobs.get(parent_of(job))
    return known.id if known is not None and known.description.user == job.user else ""


def guard_subjob(state: Facts, decision: SubmitSubjob) -> None:
    """Raise :class:`StateError` if the subjob's job is not known, or is no larger than the subjob."""
    job, parent = decision.job, state.jobs.get(decision.parent_id)
    if parent is None:
        raise StateError(f"job {decision.parent_id} is not known")
    if parent_of(job) != parent.id:
        raise StateError(f"job {job.id} does not say that it is a subjob of job {parent.id}")
    if job.id in state.jobs:
        raise StateError(f"job {job.id} exists")
    if not 0 < job.request.processors < parent.processors:
        raise StateError(
            f"subjob {job.id} asks for {job.request.processors} processors; expected 1 to "
            f"{parent.processors - 1}, fewer than job {parent.id}"
        )


def guard_bundle(state: Facts, decision: Migrate) -> None:
    """Raise :class:`StateError` if the application would run on processors that its bundle has not."""
    if not decision.placement:
        raise StateError(
            f"job {decision.job_id} runs as a bundle: its move must name the members that it uses"
        )
    for name, processors in decision.placement:
        member = state.jobs.get(name)
        if member is None or decision.job_id not in (name, whole(state, member.description)):
            raise StateError(f"job {name} is not in the bundle of job {decision.job_id}")
        if member.status not in ON_NODES:
            raise StateError(f"job {name} is {member.status.value}, not running")
        if not 0 < processors <= member.processors:
            raise StateError(f"job {name} has {member.processors} processors, not {processors}")
