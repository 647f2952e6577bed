"""Jobs that wait for other jobs: what each kind of dependency asks for."""

from __future__ import annotations

from headway.model import Dependency
from headway.state.facts import Facts
from headway.state.records import ON_NODES, Job, Status

_RUNNING = Status.RUNNING
_SUSPENDED = Status.SUSPENDED


def unmet_dependencies(state: Facts, job: Job) -> str:
    """What a job still depends on, as a sentence; "" if nothing. Registers for the news."""
    description = job.description
    if not description.dependencies:
        return ""
    unmet = []
    for dependency in description.dependencies:
        met = is_met(state, job, dependency)
        if met and description.any_dependency:
            return ""
        if not met:
            unmet.append(dependency)
    if not unmet:
        return ""
    for dependency in unmet:
        # Of namesakes any may be the last, so each job's news is looked at.
        key = "" if dependency.kind == "singleton" else dependency.job_id
        waiting = state.dependants.setdefault(key, [])
        if job not in waiting:
            waiting.append(job)
    words = " or " if description.any_dependency else " and "
    return "it waits for " + words.join(
        f"job {d.job_id} ({d.kind}{_too_late(state, d)})" if d.kind != "singleton" else "its namesakes"
        for d in unmet
    )


def _too_late(state: Facts, dependency: Dependency) -> str:
    """What else is to be said of an unmet dependency: that it can never be met."""
    outcome = state.outcomes.get(dependency.job_id)
    if outcome is None or dependency.job_id in state.jobs:
        return ""
    return f", which can never be: it is over, {outcome}"


def is_met(state: Facts, job: Job, dependency: Dependency) -> bool:
    """Whether one dependency of ``job`` asks for nothing any more."""
    kind = dependency.kind
    if kind == "singleton":
        return not any(
            other is not job
            and other.name == job.name
            and other.user == job.user
            and other.id.startswith(dependency.job_id)
            and (other.status in ON_NODES or other.seq < job.seq)
            for other in state.jobs.values()
        )
    other = state.jobs.get(dependency.job_id)
    if other is not None:
        return kind == "started" and other.status in (_RUNNING, _SUSPENDED)
    outcome = state.outcomes.get(dependency.job_id)
    if outcome is None:
        # Unknown to us: it ended before we came (the batch system forgot it), so only the
        # kinds that any end satisfies can be called met.
        return kind in ("ended", "started")
    if kind == "completed":
        return outcome == "completed"
    if kind == "failed":
        return outcome in ("failed", "timed out", "node failure")
    return kind in ("ended", "started")
