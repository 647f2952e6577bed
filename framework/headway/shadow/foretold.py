"""A stretch of the record again, under headway's policy: the same arrivals and true runtimes, on the recorded
cluster with its recorded changes, with starts and ends that take as long as was measured.

What was decided:

- A job runs as long as it ran, wherever it runs. One that was not over at the end of the stretch runs for at
  least as long as it had run, and else for the share of its limit that the stretch's jobs used of theirs.
- A job that was cancelled while it waited never comes: how long it would have run is unknown.
- A job comes as it was when it started, with its last time limit. What its user changed meanwhile was so
  from the beginning.
- Dependencies stand where the job that is waited for is in the stretch, and are left out otherwise.
- Arrivals end with the stretch; what waits then is run to its end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
from numpy.typing import NDArray

from headway.emulation import emulate
from headway.journal.latencies import Latencies
from headway.model import Dependency
from headway.plugins import Catalogue, PluginConfig, traits_of
from headway.plugins.hook_names import hooks_of
from headway.results import RunResult
from headway.shadow.findings import Delay
from headway.shadow.record import Course, Stretch
from headway.workload.jobs import TraceJob

Floats = NDArray[np.float64]

#: Seconds from the decision to the start where headway has started nothing yet.
ASSUMED_START = 2.0


@dataclass(frozen=True)
class Plan:
    """What decides in the emulation, and how long it takes."""

    plugins: Sequence[PluginConfig]
    catalogue: Catalogue
    label: str
    latencies: Latencies = field(default_factory=Latencies)
    cycle: float | None = None
    wait_for_down_nodes: bool = False
    tiers: Mapping[str, int] | None = None
    #: The plugins that begin with what they knew when the stretch began (:func:`remembering`).
    remembering: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Workload:
    """The jobs of a stretch as an emulation takes them."""

    jobs: Sequence[TraceJob]
    #: The course of each job.
    courses: Sequence[Course]
    #: Dependencies on jobs that are not in the stretch.
    dropped_dependencies: int
    #: Jobs that were cancelled while they waited, and jobs of no processors.
    cancelled: int
    sizeless: int


@dataclass(frozen=True)
class Draw:
    """One emulation. One value a job of the workload; seconds since the epoch. NaN: no start, or no end."""

    start: Floats
    end: Floats
    result: RunResult


def remembering(plugins: Sequence[PluginConfig], catalogue: Catalogue) -> frozenset[str]:
    """The plugins that count use or predict runtimes: what they know comes from events alone, whatever
    decided meanwhile. Promises, and plans of other kinds, are those of another schedule."""
    found = set()
    for config in catalogue.expanded(plugins):
        kind = catalogue.get(config.name, config.where)
        held = traits_of(kind).checkpoint
        if held == "counts" or (held != "promises" and "predict_runtime" in hooks_of(kind)):
            found.add(config.name)
    return frozenset(found)


def with_assumed_start(latencies: Latencies) -> Latencies:
    """What watching shows, and :data:`ASSUMED_START` for each start."""
    return msgspec.structs.replace(latencies, start=(ASSUMED_START,))


def delay_of(latencies: Latencies, whence: str, *, assumed: bool = False) -> Delay:
    """What a report says of latencies."""
    start, end = (float(np.median(one)) if one else 0.0 for one in (latencies.start, latencies.end))
    return Delay(start, end, 0 if assumed else len(latencies.start), len(latencies.end), whence)


def workload_of(stretch: Stretch) -> Workload:
    """The jobs of a stretch, in order of submission."""
    waited = [one for one in stretch.courses if not _cancelled(one)]
    came = [one for one in waited if one.job.request.processors > 0]
    names = _names(came)
    known = {*names, *(one.job.array_id for one in came if one.job.array_id)}
    used = _used(came)
    dropped = 0
    pairs = []
    for name, course in zip(names, came, strict=True):
        job = course.job
        kept = tuple(each for each in job.dependencies if _stands(each, known))
        dropped += len(job.dependencies) - len(kept)
        job = msgspec.structs.replace(job, id=name, submit_time=course.submit, dependencies=kept)
        runtime, outcome = _runtime(course, stretch.end, used), _outcome(course)
        pairs.append((TraceJob(job, runtime, outcome), course))
    pairs.sort(key=lambda pair: pair[0].job.submit_time)
    jobs, courses = [job for job, _ in pairs], [course for _, course in pairs]
    return Workload(jobs, courses, dropped, len(stretch.courses) - len(waited), len(waited) - len(came))


def foretell(stretch: Stretch, work: Workload, plan: Plan, seed: int) -> Draw:
    """One emulation of a stretch."""
    saved = {name: state for name, state in stretch.states.items() if name in plan.remembering}
    result = emulate(
        stretch.cluster, work.jobs, plan.plugins, plan.catalogue,
        label=plan.label, seed=seed, start=stretch.begin, running=stretch.running,
        cycle=plan.cycle, wait_for_down_nodes=plan.wait_for_down_nodes, tiers=plan.tiers,
        latencies=plan.latencies or None, happens=stretch.changes, saved=saved,
    )  # fmt: skip
    by_id = {one.job.id: one for one in result.jobs}
    nan = float("nan")
    start, end = np.full(len(work.jobs), nan), np.full(len(work.jobs), nan)
    for at, job in enumerate(work.jobs):
        one = by_id.get(job.job.id)
        if one is not None and one.start_time is not None:
            start[at] = one.start_time
            end[at] = nan if one.end_time is None else one.end_time
    return Draw(start, end, result)


def _cancelled(course: Course) -> bool:
    """It was over without having run."""
    return course.start is None and course.end is not None


def _names(courses: Sequence[Course]) -> list[str]:
    """An id for each, which is its own but for a job that came again after it was over."""
    taken: set[str] = set()
    names = []
    for course in courses:
        name = course.job.id
        while name in taken:
            name += "'"
        taken.add(name)
        names.append(name)
    return names


def _stands(dependency: Dependency, known: set[str]) -> bool:
    return dependency.kind == "singleton" or dependency.job_id in known


def _used(courses: Sequence[Course]) -> float:
    """The share of their limits that the jobs used that are over; 1 if none is."""
    over = [(one.runtime, one.job.request.walltime) for one in courses if one.runtime is not None]
    asked = sum(limit for _, limit in over)
    return min(sum(runtime for runtime, _ in over) / asked, 1.0) if asked > 0 else 1.0


def _runtime(course: Course, end: float, used: float) -> float:
    if (runtime := course.runtime) is not None:
        return runtime
    guess = used * course.job.request.walltime
    if course.start is None:
        return guess
    ran = (course.end if course.end is not None else end) - course.start - course.paused
    return max(ran, 0.0 if course.end is not None else guess, 0.0)


def _outcome(course: Course) -> str:
    return course.outcome if course.outcome not in ("", "vanished") else "completed"
