"""Moldable jobs in a queue: planned as a batch by A1, A2, A3, A4 or LTF, and started as planned.

P.-F. Dutot, M. A. S. Netto, A. Goldman, F. Kon: Scheduling Moldable BSP Tasks. JSSPP 2005. The paper plans
a batch on an empty machine; here the pending jobs of a pool are the batch, and running jobs are there until
they are expected to end. On a pool that is empty, with exact estimates, that is the paper's case.

A job is moldable if it says so (attribute ``moldable``: the least processors that it bears; True: 1), or
with ``jobs: all``. All other jobs are in the plan, too, at their own size. A job that asks for a number of
nodes, or for a number of processors on each, keeps its size.

Decisions on what the paper leaves open:

- A job is resized only when the plan starts it. Then its size and its limit are changed (limit x the factor
  by which it takes longer), and it starts once the cluster shows both. Its processors are kept for it
  meanwhile.
- Planned again, started jobs left as they are, when the batch or the pool is not what was planned with any
  more: a job came, went, changed, or ended at another time than expected; at most once in
  ``replan_interval``.
- A job that was made smaller is planned with what it asked for at first, so it may get back what was taken.
- A job that cannot start when its time has come (nodes in pieces, a reservation, a job that runs late) is
  booked; the jobs behind it start if they do not delay it.
- A limit beyond the pool's longest is not asked for: sizes that would need such a limit are left out.
- A change that the cluster refuses is taken back with what belongs to it, and the job is rigid from then
  on.
- Of a program (user, name, processes) the true cost of sharing is learned from jobs that completed, at full
  size and smaller: t(p) is ``stretch`` times as long as the model says wherever a processor has several
  processes. A limit is never cut because of that.
- In emulation a smaller job runs as the model says, times ``emulated_stretch``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
import pydantic

from headway.decisions import Decision, Resize, SetTimeLimit
from headway.events import (
    DecisionFailed,
    Event,
    JobChanged,
    JobEnded,
    JobRequeued,
    JobStarted,
    JobSubmitted,
    JobSuspended,
)
from headway.hookspecs import Plugin, hookimpl
from headway.inputs.durations import as_seconds
from headway.model import Request
from headway.plugins import Traits
from headway.state import Domain, Job, State, Status
from headway.state.choices import pools_of
from headway.view import View
from headway_plugins.moldable.advice import why
from headway_plugins.moldable.algorithms import ALGORITHMS
from headway_plugins.moldable.tasks import Floats, Task

#: The attribute of a moldable job: the least number of processors that it bears.
MOLDABLE = "moldable"
#: Seconds by which a job may end beside its time without a new plan.
TOLERANCE = 1.0
#: Seconds: what a job that should be over already is expected to run on; and what stands for "forever".
SOON, FOREVER = 1.0, 3660 * 86400.0
#: Seconds after which a change that the cluster took and does not show is asked for again.
PATIENCE = 60.0
#: Seconds by which limits may differ that batch systems keep in minutes.
ROUNDED = 60.0
#: Seconds: tasks of no time are no tasks.
LEAST_TIME = 1e-3
#: Of how many programs something is remembered, and of how many runs of each.
PROGRAMS, RUNS = 10_000, 10


class MoldableOptions(pydantic.BaseModel):
    """Options of the policy for moldable jobs."""

    model_config = pydantic.ConfigDict(extra="forbid")

    algorithm: Literal["A1", "A2", "A3", "A4", "LTF"] = pydantic.Field(
        default="A1", description="algorithm that plans the batch; LTF leaves every job as it is"
    )
    jobs: Literal["marked", "all"] = pydantic.Field(
        default="marked", description="which jobs are moldable: jobs that are marked so, or all jobs"
    )
    least: int = pydantic.Field(
        default=1, ge=1, description="no job gets fewer processors than this, unless it asked for fewer"
    )
    processes_per_processor: int = pydantic.Field(
        default=0, ge=0, description="most processes on a processor; 0: any number"
    )
    replan_interval: Annotated[float, pydantic.BeforeValidator(as_seconds)] = pydantic.Field(
        default=30.0, ge=0, description="least seconds between two plans"
    )
    depth: int = pydantic.Field(
        default=1000, ge=1, description="number of waiting jobs that are planned, from the head of the queue"
    )
    learn_from: int = pydantic.Field(
        default=3,
        ge=0,
        description="number of runs of a program, at full size and smaller, from which its measured cost is "
        "used; 0: never",
    )
    emulated_stretch: float = pydantic.Field(
        default=1.0,
        gt=0,
        description="in emulation: factor on the runtime that the model predicts for a smaller job",
    )


@dataclass(frozen=True)
class Asked:
    """What a job asked for before it was resized."""

    processes: int
    #: Its limit, and how long it was expected to run, seconds.
    limit: float
    runtime: float


@dataclass
class _Plan:
    """What was planned of a pool."""

    made: float
    total: int
    #: By job: what was planned with, when it starts (absolute seconds), and its size.
    tasks: dict[str, Task]
    starts: dict[str, tuple[float, int]]
    reasons: dict[str, str]
    stale: bool = False


@dataclass
class _Seen:
    """Runs of a program: seconds at full size, and seconds a process of a processor when it was smaller."""

    full: deque[float] = field(default_factory=lambda: deque(maxlen=RUNS))
    shared: deque[float] = field(default_factory=lambda: deque(maxlen=RUNS))

    def stretch(self, enough: int) -> float:
        """How much longer than the model says it takes; 1 as long as too little is known."""
        if not enough or min(len(self.full), len(self.shared)) < enough:
            return 1.0
        return (sum(self.shared) / len(self.shared)) / (sum(self.full) / len(self.full))


def resizable(request: Request) -> bool:
    """Whether its number of processors can be changed alone."""
    return not (
        request.nodes
        or request.processors_per_node
        or request.processors_per_chunk > 1
        or request.exclusive
        or request.parts
        or request.required_nodes
    )


def least_of(job: Job, everybody: bool) -> int:
    """The least processors that a job says it bears; 0: it is not moldable."""
    if not resizable(job.request):
        return 0
    said = job.attribute(MOLDABLE)
    if said is True or (said is None and everybody):
        return 1
    return said if isinstance(said, int) and said > 0 else 0


class Moldable(Plugin):
    """Plans the pending jobs of a pool as a batch of moldable jobs."""

    Options = MoldableOptions
    traits = Traits(
        needs=(Resize, SetTimeLimit),
        observes=(
            JobSubmitted, JobChanged, JobStarted, JobEnded, JobRequeued, JobSuspended, DecisionFailed,
        ),
        paper="P.-F. Dutot, M. A. S. Netto, A. Goldman, F. Kon: Scheduling Moldable BSP Tasks, JSSPP 2005",
    )  # fmt: skip

    def __init__(self, options: MoldableOptions | None = None) -> None:
        super().__init__(options or MoldableOptions())
        self._plans: dict[str, _Plan] = {}
        #: Jobs that were resized -> what they had asked for.
        self._asked: dict[str, Asked] = {}
        #: Changes that were decided: job -> size, limit, when.
        self._wished: dict[str, tuple[int, float, float]] = {}
        #: Jobs that stay as they are, because the cluster refused a change; and what is to be taken back.
        self._rigid: set[str] = set()
        self._undo: list[Resize | SetTimeLimit] = []
        #: Jobs that are larger than their pool, by arrival.
        self._wide: dict[str, None] = {}
        #: Running jobs that were planned: pool, and expected end.
        self._expected: dict[str, tuple[str, float]] = {}
        #: Running moldable jobs: program, processes of a processor, start.
        self._runs: dict[str, tuple[str, int, float]] = {}
        self._seen: dict[str, _Seen] = {}
        self._state: State | None = None
        #: The next start of each pool for which a step was asked for by the clock.
        self._woken: dict[str, float] = {}

    # ------------------------------------------------------------------ what happens

    @hookimpl
    def startup(self, state: State) -> None:
        self._state = state

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        if isinstance(event, JobSubmitted | JobChanged):
            self._described(event.job.id, state)
        elif isinstance(event, JobStarted):
            if (run := self._runs.get(event.job_id)) is not None:
                self._runs[event.job_id] = (*run[:2], event.time)
        elif isinstance(event, JobEnded):
            self._ended(event)
        elif isinstance(event, JobRequeued):
            self._runs.pop(event.job_id, None)
            self._make_stale(event.job_id)
        elif isinstance(event, JobSuspended):
            self._runs.pop(event.job_id, None)
        elif isinstance(event, DecisionFailed):
            self._failed(event)

    def _described(self, job_id: str, state: State) -> None:
        """A job is new, or described anew, perhaps because we had it changed."""
        job = state.jobs.get(job_id)
        if job is None:
            return
        asked, wished = self._asked.get(job_id), self._wished.get(job_id)
        if asked is not None and job.entries is None:
            sizes = {asked.processes, *((wished[0],) if wished else ())}
            limits = [asked.limit, *((wished[1],) if wished else ())]
            size, limit = job.request.processors, job.request.walltime
            if size not in sizes or all(abs(limit - one) > ROUNDED for one in limits):
                # The job was changed without headway: that is what it asks for now.
                del self._asked[job_id]
                self._wished.pop(job_id, None)
        self._wide.pop(job_id, None)
        if job.entries is None and job.request.processors > job.pool.total and self._least(job):
            self._wide[job_id] = None
            job.domain.touch()

    def _ended(self, event: JobEnded) -> None:
        job_id = event.job_id
        run = self._runs.pop(job_id, None)
        if run is not None and event.outcome == "completed":
            program, share, start = run
            seen = self._seen.setdefault(program, _Seen())
            (seen.full if share == 1 else seen.shared).append(max(event.time - start, 0.0) / share)
            if len(self._seen) > PROGRAMS:
                del self._seen[next(iter(self._seen))]
        pool, end = self._expected.pop(job_id, ("", 0.0))
        if not pool or abs(event.time - end) > TOLERANCE:
            self._make_stale(job_id, pool)
        for known in (self._asked, self._wished, self._wide):
            known.pop(job_id, None)
        self._rigid.discard(job_id)

    def _make_stale(self, job_id: str, pool: str = "") -> None:
        """What was planned with is not so any more."""
        for name, plan in self._plans.items():
            if not pool or name == pool or job_id in plan.starts:
                plan.stale = True

    def _failed(self, event: DecisionFailed) -> None:
        decision = event.decision
        if not isinstance(decision, Resize | SetTimeLimit):
            return
        job_id = decision.job_id
        asked = self._asked.get(job_id)
        if asked is None or job_id in self._rigid:
            return
        self._rigid.add(job_id)
        self._wished.pop(job_id, None)
        self._make_stale(job_id)
        said = f"it stays as it was asked for: the cluster refused a change ({event.message})"
        if isinstance(decision, Resize):
            self._undo.append(SetTimeLimit(job_id, asked.limit, said))
        else:
            self._undo.append(Resize(job_id, asked.processes, (), said))

    # ------------------------------------------------------------------ the batch

    def _least(self, job: Job) -> int:
        return 0 if job.id in self._rigid else least_of(job, self.options.jobs == "all")

    def asked_for(self, job: Job) -> Asked:
        """What a job asked for before it was resized."""
        asked = self._asked.get(job.id)
        if asked is not None:
            return asked
        request = job.request
        return Asked(request.processors, request.walltime, job.expected_runtime)

    def task(self, job: Job) -> Task:
        """A job as a task of the batch."""
        asked, options = self.asked_for(job), self.options
        processes, time = asked.processes, max(asked.runtime, LEAST_TIME)
        said = self._least(job)
        if not said:
            return Task(processes, time, processes, most=_most_of(job))
        least = max(said, options.least)
        if options.processes_per_processor:
            least = max(least, -(-processes // options.processes_per_processor))
        seen = self._seen.get(f"{job.user}\n{job.name}\n{processes}")
        stretch = seen.stretch(options.learn_from) if seen is not None else 1.0
        longest = job.pool.description.max_walltime
        if longest and asked.limit > 0:
            share = int(longest / (asked.limit * max(stretch, 1.0)) * (1 + 1e-9))
            least = max(least, -(-processes // max(share, 1)))
        most = _most_of(job)
        return Task(processes, time, min(least, processes), stretch if stretch > 0 else 1.0, most)

    def batch(self, state: State, domain: Domain) -> list[Job]:
        """The jobs of a pool that are planned, in service order; then jobs that are larger than the pool."""
        jobs = [job for job in domain.queue[: self.options.depth] if job.status is Status.PENDING]
        for job_id in self._wide:
            job = state.jobs.get(job_id)
            if (
                job is not None
                and job.domain is domain
                and job.status is Status.WAITING
                and job.obstacle is not None
            ):
                jobs.append(job)
        return jobs

    def _make(self, state: State, domain: Domain, jobs: Sequence[Job]) -> _Plan:
        now = state.now
        free_at = frontier(domain, now)
        total = len(free_at)
        tasks = {job.id: self.task(job) for job in jobs}
        planned = [job.id for job in jobs if _is_held(tasks[job.id], total)]
        name = self.options.algorithm
        batch = [tasks[job_id] for job_id in planned]
        schedule = ALGORITHMS[name](batch, total, free_at) if total else ALGORITHMS[name]((), 1, None)
        starts, reasons = {}, {}
        for entry in schedule.entries:
            job_id, task = planned[entry.task], batch[entry.task]
            starts[job_id] = now + entry.start, entry.size
            if entry.size < task.processes:
                reasons[job_id] = why(task, entry.size, name, schedule, total)
        return _Plan(now, domain.total, tasks, starts, reasons)

    def _current(self, state: State, domain: Domain) -> _Plan | None:
        """The pool's plan, made again if it may and must be."""
        jobs = self.batch(state, domain)
        if not jobs:
            self._plans.pop(domain.name, None)
            return None
        plan = self._plans.get(domain.name)
        if plan is not None and self._holds(plan, domain, jobs):
            return plan
        if plan is not None and state.now < plan.made + self.options.replan_interval:
            state.wake_at(plan.made + self.options.replan_interval, domain)
            return plan
        plan = self._plans[domain.name] = self._make(state, domain, jobs)
        return plan

    def _holds(self, plan: _Plan, domain: Domain, jobs: Sequence[Job]) -> bool:
        if plan.stale or plan.total != domain.total:
            return False
        for job in jobs:
            known, asked = plan.tasks.get(job.id), self.asked_for(job)
            if known is None or (job.id not in plan.starts and _is_held(known, plan.total)):
                return False
            # What is learned meanwhile is no reason for a new plan.
            if (known.processes, known.time) != (asked.processes, max(asked.runtime, LEAST_TIME)):
                return False
        return True

    # ------------------------------------------------------------------ decisions

    @hookimpl
    def react(self, state: State) -> Iterator[Decision]:
        undo, self._undo = self._undo, []
        for decision in undo:
            if decision.job_id in state.jobs:
                yield decision
        for domain in state.domains.values():
            if not domain.news.due:
                continue
            plan = self._current(state, domain)
            if plan is None:
                continue
            self._wake_for(domain, plan, state)
            for job_id, (start, size) in list(plan.starts.items()):
                job = state.jobs.get(job_id)
                if job is not None and job.entries is None and due(start, state.now):
                    yield from self._resized(job, size, plan, state)

    def _wake_for(self, domain: Domain, plan: _Plan, state: State) -> None:
        """Have a step come at the next planned start; a job larger than the pool waits outside its queue."""
        first = min((start for start, _ in plan.starts.values() if not due(start, state.now)), default=None)
        if first is not None and self._woken.get(domain.name) != first:
            self._woken[domain.name] = first
            state.wake_at(first, domain)

    def _resized(self, job: Job, size: int, plan: _Plan, state: State) -> Iterator[Decision]:
        """Give a job that is to start its planned size, and the limit that belongs to it."""
        asked, task, now = self.asked_for(job), plan.tasks[job.id], state.now
        if job.id in self._rigid and size != asked.processes:
            # The plan is older than the refusal.
            return
        factor = max(task.factor(size), float(-(-task.processes // size)))
        limit = asked.limit * factor
        if self._shows(job, size, limit):
            return
        wished = self._wished.get(job.id)
        if wished is not None and wished[:2] == (size, limit) and now < wished[2] + PATIENCE:
            return
        self._asked.setdefault(job.id, asked)
        self._wished[job.id] = size, limit, now
        state.wake_at(now + PATIENCE, job.pool)
        reason = plan.reasons.get(job.id) or f"{size} processors again, as it was asked for"
        if job.request.processors != size:
            yield Resize(job.id, size, (), reason)
        if abs(job.request.walltime - limit) > 1e-6 * limit:
            yield SetTimeLimit(job.id, limit, f"{factor:g} times the limit that it was given: {reason}")

    @staticmethod
    def _shows(job: Job, size: int, limit: float) -> bool:
        """Whether the cluster shows the job with this size and limit, which it may have rounded up."""
        return job.request.processors == size and -1e-6 * limit <= job.request.walltime - limit <= ROUNDED

    @hookimpl
    def schedule(self, view: View) -> list[Decision]:
        view.forget()
        plan, state = self._plans.get(view.domain.name), self._state
        if plan is None or state is None:
            return view.made
        now = view.now
        for job_id, (start, size) in sorted(plan.starts.items(), key=lambda item: item[1][0]):
            if not due(start, now):
                break
            job = state.jobs.get(job_id)
            if job is None or job.status is not Status.PENDING:
                continue
            asked, task = self.asked_for(job), plan.tasks[job_id]
            limit = asked.limit * max(task.factor(size), float(-(-task.processes // size)))
            reason = plan.reasons.get(job_id) or f"as {self.options.algorithm} plans"
            if self._shows(job, size, limit) and view.start(job, reason) is not None:
                self._expected[job_id] = view.domain.name, now + job.expected_runtime
                if self._least(job):
                    program, share = f"{job.user}\n{job.name}\n{task.processes}", -(-task.processes // size)
                    self._runs[job_id] = program, share, now
                del plan.starts[job_id]
            else:
                view.book(job)
        return view.made

    @hookimpl
    def predict_runtime(self, job: Job) -> float | None:
        asked = self._asked.get(job.id)
        if asked is None or job.processors >= asked.processes:
            return None
        return self.task(job).factor(job.processors) * asked.runtime

    # ------------------------------------------------------------------ what is kept, what is measured

    @hookimpl
    def checkpoint(self) -> dict[str, Any]:
        return {
            "asked": {k: [a.processes, a.limit, a.runtime] for k, a in self._asked.items()},
            "wished": {k: list(w) for k, w in self._wished.items()},
            "rigid": sorted(self._rigid),
            "runs": {k: list(run) for k, run in self._runs.items()},
            "seen": {k: [list(seen.full), list(seen.shared)] for k, seen in self._seen.items()},
        }

    @hookimpl
    def restore(self, saved: dict[str, Any]) -> None:
        self._asked = {
            k: Asked(int(p), float(limit), float(t)) for k, (p, limit, t) in saved["asked"].items()
        }
        self._wished = {k: (int(s), float(limit), float(t)) for k, (s, limit, t) in saved["wished"].items()}
        self._rigid = set(saved["rigid"])
        self._runs = {k: (str(p), int(share), float(t)) for k, (p, share, t) in saved["runs"].items()}
        self._seen = {
            k: _Seen(deque(full, RUNS), deque(shared, RUNS)) for k, (full, shared) in saved["seen"].items()
        }

    @hookimpl
    def register_physics(self) -> _SharedProcessors:
        return _SharedProcessors(self._asked, self.options.emulated_stretch)


class _SharedProcessors:
    """In emulation: a job on fewer processors than it has processes takes ceil(n / p) times as long."""

    def __init__(self, asked: dict[str, Asked], stretch: float) -> None:
        self._asked, self._stretch = asked, stretch

    def rate(self, execution: Any, now: float) -> float:
        """A factor on the job's speed."""
        asked = self._asked.get(execution.job.id)
        if asked is None:
            return 1.0
        share = -(-asked.processes // execution.job.request.processors)
        return 1.0 if share <= 1 else 1.0 / (share * self._stretch)


def due(start: float, now: float) -> bool:
    """Whether a planned time has come; sums of times are not exact."""
    return start <= now + 1e-6 * max(1.0, abs(start) * 1e-3)


def _most_of(job: Job) -> int | None:
    """Where pools share nodes: the processors of the largest of the job's pools there; None: its pool is all
    that there is."""
    domain = job.domain
    if len(domain.pools) == 1:
        return None
    return max(pool.total for pool in pools_of(job) if pool.domain is domain)


def _is_held(task: Task, processors: int) -> bool:
    """Whether a task ever fits on so many processors."""
    return task.least <= task.largest(processors)


def frontier(domain: Domain, now: float) -> Floats:
    """When each processor of a pool is free, seconds from now."""
    sizes, ends = [], []
    for end, _, size, _ in domain.running:
        sizes.append(size)
        ends.append(min(max(end - now, SOON), FOREVER))
    taken = np.repeat(np.array(ends, np.float64), np.array(sizes, np.int64))
    return np.concatenate([np.zeros(max(domain.free, 0)), taken])
