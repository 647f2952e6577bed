"""Jobs that wait for other jobs: what each kind of dependency asks for."""

from __future__ import annotations

from headway.model import Dependency
from headway.state.facts import Facts
from headway.state.records import ON_NODES, Job, Status

_INF = float("inf")
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
    """What else is to be said of an unmet dependency: that it can never be met, or when it is."""
    past = state.past.get(dependency.job_id)
    if dependency.kind == "started":
        return f", and {dependency.delay:g} s more" if dependency.delay else ""
    if past is None or _is_there(state, dependency.job_id):
        return ""
    return f", which can never happen: that job is over, {past.outcome}"


def is_met(state: Facts, job: Job, dependency: Dependency) -> bool:
    """Whether one dependency of ``job`` asks for nothing any more."""
    kind, name = dependency.kind, dependency.job_id
    if kind == "singleton":
        return not any(_is_namesake(job, other, name) for other in state.jobs.values())
    if kind == "started":
        start = _start(state, name)
        return start is not None and (not dependency.delay or state.now >= start + dependency.delay)
    if _is_there(state, name):
        return False
    past = state.past.get(name)
    if past is None:
        # Unknown to us: it ended before we came (the batch system forgot it), so only the
        # kinds that any end satisfies can be called met.
        return kind == "ended"
    if kind == "completed":
        return past.outcome == "completed"
    if kind == "failed":
        return past.outcome not in ("completed", "vanished")
    return kind == "ended"


def due_by_clock(state: Facts, job: Job) -> float:
    """When the first delay of a waiting job's dependencies is over (absolute seconds); infinity: only a
    start or an end helps."""
    starts = [(_start(state, each.job_id), each.delay) for each in job.description.dependencies if each.delay]
    due = [start + delay for start, delay in starts if start is not None]
    return min((time for time in due if time > state.now), default=_INF)


def _is_namesake(job: Job, other: Job, among: str) -> bool:
    """Whether a singleton waits for ``other``: it is not in the same array; its id begins with ``among``."""
    return (
        other is not job
        and other.name == job.name
        and other.user == job.user
        and other.id.startswith(among)
        and (other.status in ON_NODES or other.seq < job.seq)
        and not (job.description.array_id and job.description.array_id == other.description.array_id)
    )


def _is_there(state: Facts, name: str) -> bool:
    """Whether a job, or an element of an array, is not over."""
    return name in state.jobs or name in state.arrays


def _start(state: Facts, name: str) -> float | None:
    """When a job, or the last element of an array, started (absolute seconds); None: it has not. An unknown
    job started at any time."""
    array = state.arrays.get(name)
    ids = array.left if array is not None else (name,)
    starts = [] if array is None or array.past is None else [array.past.start]
    for each in ids:
        other = state.jobs.get(each)
        if other is None:
            past = state.past.get(each)
            starts.append(-_INF if past is None else past.start)
        elif other.status not in (_RUNNING, _SUSPENDED) or other.start_time is None:
            return None
        else:
            starts.append(other.start_time)
    return max(starts)
