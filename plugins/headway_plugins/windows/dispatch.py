"""Phase 2: tasks of the selected jobs onto processors, never leaving a processor idle that could work.

Zhou and others 2005, section 3.2. Whenever a processor is free and a task may run, a task starts; rewards do
not matter any more. Which:

=======  ==========================================================
LCPF     of the job with the longest critical path
STCPU    of the job with the least work
RANDOM   any, each as likely
PRIO     of the job with the most urgent priority (the baseline)
=======  ==========================================================

Decisions on what the paper leaves open:

- LCPF goes by the critical path that the job has at the beginning (``remaining``: by what is left of it,
  which comes out otherwise: see the experiments).
- Within a job tasks start as they are listed; of equal jobs the first goes first.
- RANDOM draws among tasks, not jobs.
- Jobs that can no longer end by the deadline go on (``drop_hopeless``: they start nothing more). What ends at
  the deadline is in time. The run is cut there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from headway_plugins.windows.staged import Staged

Floats = NDArray[np.float64]

OrderName = Literal["LCPF", "STCPU", "RANDOM", "PRIO"]
#: Draws that are made at once.
_DRAWS = 4096


class Key(Protocol):
    """A job's place: smaller keys first."""

    def __call__(self, job: Staged) -> float: ...


#: By name; None: tasks at random.
ORDERS: dict[str, Key | None] = {
    "LCPF": lambda job: -job.path,
    "STCPU": lambda job: job.work,
    "RANDOM": None,
    "PRIO": lambda job: job.priority,
}


class Began(NamedTuple):
    """A task that was started. Jobs, stages and tasks are counted from 0, times are seconds."""

    job: int
    stage: int
    task: int
    start: float
    end: float


@dataclass(frozen=True)
class Outcome:
    """What became of a window."""

    #: When each job ended, seconds from the beginning; infinite: not by the deadline.
    ends: tuple[float, ...]
    #: What the jobs earned that ended in time.
    reward: float
    #: Processor-seconds until the deadline: of all tasks, and of jobs that did not end in time.
    busy: float
    wasted: float
    #: Processor-seconds until the deadline in which processors had nothing to do.
    idle: float
    began: tuple[Began, ...] = ()

    @property
    def completed(self) -> int:
        """How many jobs ended in time."""
        return sum(end < math.inf for end in self.ends)


def dispatch(
    jobs: Sequence[Staged],
    processors: int,
    deadline: float,
    key: Key | None,
    *,
    rng: np.random.Generator | None = None,
    remaining: bool = False,
    drop_hopeless: bool = False,
    record: bool = False,
    started: Sequence[int] | None = None,
    free_at: Sequence[float] = (),
) -> Outcome:
    """Run the jobs from 0 until the deadline (seconds).

    ``key``: one of :data:`ORDERS`; None: at random, drawn from ``rng``. ``record``: list every task that
    began. ``started``: of each job how many tasks of its first stage, the first ones, run at 0 already.
    ``free_at``: until when each processor is busy that another job has.
    """
    if processors < 1:
        raise ValueError(f"expected at least 1 processor, found {processors}")
    if key is None and rng is None:
        raise ValueError("expected a generator for random tasks, found none")
    ready: _Ready
    if key is None:
        assert rng is not None
        ready = _AtRandom(jobs, rng)
    else:
        ready = _ByKey(jobs, key, remaining)
    begun = [0] * len(jobs) if started is None else started
    for number, first in enumerate(begun):
        ready.open(number, 0, first)
    return _run(jobs, processors, deadline, ready, drop_hopeless, record, begun, free_at)


class _Ready(Protocol):
    """The tasks that may run."""

    def open(self, job: int, stage: int, first: int = 0) -> None:
        """A job's stage begins; tasks before ``first`` have started."""

    def take(self) -> tuple[int, int]:
        """Job and number of the task that goes next; (-1, 0): there is none."""
        ...

    def drop(self, job: int) -> None:
        """Nothing more of this job."""


class _ByKey:
    """Jobs with tasks to start, by key; tasks in turn."""

    def __init__(self, jobs: Sequence[Staged], key: Key, remaining: bool) -> None:
        self._jobs = jobs
        self._keys = [key(job) for job in jobs]
        self._remaining = remaining
        #: Key, job.
        self._heap: list[tuple[float, int]] = []
        #: Of each job: tasks of its open stage, and how many have started.
        self._count = [0] * len(jobs)
        self._next = [0] * len(jobs)

    def open(self, job: int, stage: int, first: int = 0) -> None:
        stages = self._jobs[job].stages
        self._count[job], self._next[job] = len(stages[stage]), first
        if first >= len(stages[stage]):
            return
        key = -_path(stages[stage:]) if self._remaining else self._keys[job]
        heappush(self._heap, (key, job))

    def take(self) -> tuple[int, int]:
        if not self._heap:
            return -1, 0
        job = self._heap[0][1]
        task = self._next[job]
        self._next[job] = task + 1
        if task + 1 == self._count[job]:
            heappop(self._heap)
        return job, task

    def drop(self, job: int) -> None:
        kept = [entry for entry in self._heap if entry[1] != job]
        if len(kept) < len(self._heap):
            heapify(kept)
            self._heap = kept


class _AtRandom:
    """Tasks to start, each as likely."""

    def __init__(self, jobs: Sequence[Staged], rng: np.random.Generator) -> None:
        self._jobs, self._rng = jobs, rng
        self._tasks: list[tuple[int, int]] = []
        self._draws: list[float] = []

    def open(self, job: int, stage: int, first: int = 0) -> None:
        self._tasks += [(job, task) for task in range(first, len(self._jobs[job].stages[stage]))]

    def take(self) -> tuple[int, int]:
        tasks = self._tasks
        if not tasks:
            return -1, 0
        if not self._draws:
            self._draws = self._rng.random(_DRAWS).tolist()
        at = int(self._draws.pop() * len(tasks))
        tasks[at], tasks[-1] = tasks[-1], tasks[at]
        return tasks.pop()

    def drop(self, job: int) -> None:
        self._tasks = [task for task in self._tasks if task[0] != job]


def _path(stages: Sequence[Sequence[float]]) -> float:
    return sum(max(stage) for stage in stages)


def _started_before(jobs: Sequence[Staged], started: Sequence[int]) -> list[Began]:
    """The tasks that run at 0 already: of each job the first so many of its first stage."""
    return [
        Began(number, 0, task, 0.0, job.stages[0][task])
        for number, job in enumerate(jobs)
        for task in range(started[number])
    ]


def _run(
    jobs: Sequence[Staged],
    processors: int,
    deadline: float,
    ready: _Ready,
    drop_hopeless: bool,
    record: bool,
    started: Sequence[int],
    free_at: Sequence[float],
) -> Outcome:
    count = len(jobs)
    ends = [math.inf] * count
    used = [0.0] * count
    #: The open stage of each job, its tasks' seconds, how many have not ended, and the path behind it.
    stage = [0] * count
    lengths = [job.stages[0] for job in jobs]
    left = [len(job.stages[0]) for job in jobs]
    behind = [_path(job.stages[1:]) for job in jobs]
    hopeless = [False] * count
    reward = 0.0
    at_first = _started_before(jobs, started)
    began = at_first.copy() if record else []
    #: When what runs ends, and of which job it is; -1: of a job that is not in the list.
    running = [(end, -1) for end in free_at] + [(one.end, one.job) for one in at_first]
    heapify(running)
    for one in at_first:
        used[one.job] += min(one.end, deadline)
    take = ready.take
    now, free = 0.0, processors - len(running)
    while True:
        while free > 0 and now < deadline:
            job, task = take()
            if job < 0:
                break
            length = lengths[job][task]
            end = now + length
            if drop_hopeless and end + behind[job] > deadline:
                hopeless[job] = True
                ready.drop(job)
                continue
            used[job] += length if end <= deadline else deadline - now
            if record:
                began.append(Began(job, stage[job], task, now, end))
            heappush(running, (end, job))
            free -= 1
        if not running or running[0][0] > deadline:
            break
        now = running[0][0]
        # All tasks that end at the same instant, then the tasks that start.
        while running and running[0][0] == now:
            _, job = heappop(running)
            free += 1
            if job < 0:
                continue
            left[job] -= 1
            if left[job] or hopeless[job]:
                continue
            after = stage[job] + 1
            stages = jobs[job].stages
            if after == len(stages):
                ends[job] = now
                reward += jobs[job].worth
                continue
            stage[job], lengths[job], left[job] = after, stages[after], len(stages[after])
            behind[job] = _path(stages[after + 1 :])
            ready.open(job, after)
    busy = math.fsum(used)
    wasted = math.fsum(spent for spent, end in zip(used, ends, strict=True) if end == math.inf)
    return Outcome(tuple(ends), reward, busy, wasted, processors * deadline - busy, tuple(began))
