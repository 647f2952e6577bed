"""Moldable tasks: what they cost on fewer processors than they have processes, and the lower bound.

P.-F. Dutot, M. A. S. Netto, A. Goldman, F. Kon: Scheduling Moldable BSP Tasks. JSSPP 2005, section 2. A
task has ``req`` processes and takes t on as many processors. On p of them some have several processes:
t(p) = ceil(req / p) t. Its work p t(p) is never below req t, and is that where p divides req.

Decisions on what the paper leaves open:

- Only sizes are looked at for which no smaller one has the same time (:meth:`Task.sizes`).
- A task may have a least size: its program, or memory, bears no more processes a processor. A rigid task's is
  its size.
- A program may be known to pay more, or less, for sharing processors than the model says: then t(p) is
  ``stretch`` times as long wherever a processor has several of its processes, and its work is that of the
  cheapest size.
- Processors may be taken for some time yet (*frontier*: when each is free, seconds from now). The bound is
  then the level to which the batch's work fills them, where the paper has the mean work of a processor.
- The paper prints the mean with the times alone; its own words are "total workload", so each counts with its
  processors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Task:
    """A program of ``processes`` processes that takes ``time`` seconds on as many processors.

    Raises ValueError for a task without processes or work, or with a least size beyond them.
    """

    processes: int
    time: float
    #: It never gets fewer processors.
    least: int = 1
    #: How much longer it takes than the model says where a processor has several processes; 1: not at all.
    stretch: float = 1.0
    #: It never gets more processors; None: as many as there are.
    most: int | None = None

    def __post_init__(self) -> None:
        if self.processes < 1:
            raise ValueError(f"expected at least 1 process, found {self.processes}")
        if not 0 < self.time < float("inf"):
            raise ValueError(f"expected a time above 0 seconds, found {self.time:g}")
        if not 1 <= self.least <= self.processes:
            raise ValueError(f"expected a least size of 1 to {self.processes}, found {self.least}")
        if not 0 < self.stretch < float("inf"):
            raise ValueError(f"expected a stretch above 0, found {self.stretch:g}")

    def factor(self, size: int) -> float:
        """How many times as long it takes on ``size`` processors as on one for each process."""
        share = -(-self.processes // size)
        return share * self.stretch if share > 1 else 1.0

    def time_on(self, size: int) -> float:
        """Seconds on ``size`` processors: t(p)."""
        return self.factor(size) * self.time

    def sizes(self, processors: int) -> tuple[int, ...]:
        """Its *interesting allocations* on a machine of so many processors, ascending: no smaller size takes
        the same time. None if it never fits."""
        return tuple(_sizes(self.processes, self.least, self.largest(processors)).tolist())

    def largest(self, processors: int) -> int:
        """The most processors that it can use of so many."""
        return min(self.processes, processors if self.most is None else min(self.most, processors))

    def work(self, processors: int) -> float:
        """Processor-seconds at the cheapest of its sizes there: w. With a stretch of 1 and a least size of 1
        that is processes x time."""
        return min(size * self.time_on(size) for size in self.sizes(processors))


@lru_cache(maxsize=65536)
def _sizes(processes: int, least: int, most: int) -> Ints:
    size = np.arange(least, most + 1, dtype=np.int64)
    share = -(-processes // size)
    kept = np.ones(len(size), bool)
    kept[1:] = share[1:] != share[:-1]
    found = size[kept]
    found.setflags(write=False)
    return found


class Candidates:
    """All sizes of all tasks as arrays, one entry a task and size, sizes ascending within a task.

    Raises ValueError if a task fits on no number of the processors.
    """

    def __init__(self, tasks: Sequence[Task], processors: int) -> None:
        self.tasks = tasks
        self.processors = processors
        sizes = [_sizes(task.processes, task.least, task.largest(processors)) for task in tasks]
        for number, found in enumerate(sizes):
            if not len(found):
                raise ValueError(
                    f"task {number}: expected a least size of at most {processors} processors, found "
                    f"{tasks[number].least}"
                )
        counts = np.array([len(found) for found in sizes], np.int64)
        #: Where each task's entries begin; which task an entry is of.
        self.first: Ints = np.cumsum(counts) - counts
        self.task: Ints = np.repeat(np.arange(len(tasks)), counts)
        self.size: Ints = np.concatenate(sizes) if tasks else np.zeros(0, np.int64)
        self.processes: Ints = np.array([task.processes for task in tasks], np.int64)
        #: Seconds with a processor for each process; what sharing adds.
        self.full: Floats = np.array([task.time for task in tasks], np.float64)
        self.stretch: Floats = np.array([task.stretch for task in tasks], np.float64)
        self.least: Ints = np.array([task.least for task in tasks], np.int64)
        self.largest: Ints = np.array([task.largest(processors) for task in tasks], np.int64)
        #: Seconds, and processor-seconds, of each entry.
        self.time: Floats = self.times(self.task, self.size)
        self.area: Floats = self.size * self.time
        #: Processor-seconds of each task at its cheapest size.
        self.work: Floats = np.minimum.reduceat(self.area, self.first) if tasks else np.zeros(0)

    def times(self, task: Ints, size: Ints) -> Floats:
        """Seconds of these tasks on these numbers of processors."""
        share = -(-self.processes[task] // size)
        return np.where(share > 1, share * self.stretch[task], 1.0) * self.full[task]

    def wasted(self, task: Ints, size: Ints) -> Floats:
        """Processor-seconds beyond each task's work."""
        return size * self.times(task, size) - self.work[task]


def frontier_of(processors: int, free_at: Sequence[float] | Floats | None) -> Floats:
    """When each processor is free, seconds from now, at least 0; by default all now.

    Raises ValueError if it is not said of each processor."""
    if processors < 1:
        raise ValueError(f"expected at least 1 processor, found {processors}")
    if free_at is None:
        return np.zeros(processors)
    found = np.maximum(np.asarray(free_at, np.float64), 0.0)
    if found.shape != (processors,):
        raise ValueError(f"expected a time for each of {processors} processors, found {found.shape}")
    return found


def level(work: float, frontier: Floats) -> float:
    """The least time by which the processors, each from when it is free, can have done so much work: seconds
    from now, for processor-seconds. On an empty machine that is work / processors."""
    if work <= 0:
        return 0.0
    free = np.sort(frontier)
    number = np.arange(1, len(free) + 1)
    filled = (work + np.cumsum(free)) / number
    # The first k processors suffice as soon as the next one is not free before.
    enough = np.append(filled[:-1] <= free[1:], True)
    return float(filled[int(np.argmax(enough))])


def lower_bound(
    tasks: Sequence[Task], processors: int, free_at: Sequence[float] | Floats | None = None
) -> float:
    """Seconds before which no schedule of the tasks ends.

    ``free_at``: when each processor is free, seconds from now. On an empty machine the paper's (repaired)
    max(sum of works / m, largest t(min(req, m))).
    """
    return bound_of(Candidates(tasks, processors), frontier_of(processors, free_at))


def bound_of(candidates: Candidates, frontier: Floats) -> float:
    """:func:`lower_bound` of these candidates."""
    if not len(candidates.tasks):
        return 0.0
    free = np.sort(frontier)
    ends = free[candidates.size - 1] + candidates.time
    longest = np.minimum.reduceat(ends, candidates.first).max()
    return max(level(float(candidates.work.sum()), free), float(longest))


def spread(processes: int, size: int) -> tuple[int, ...]:
    """How many processes each of ``size`` processors gets: they differ by at most one."""
    share, more = divmod(processes, size)
    return (share + 1,) * more + (share,) * (size - more)


def superstep_time(
    work: Sequence[Sequence[float]], traffic: Sequence[Sequence[float]], gap: float, latency: float
) -> float:
    """Time of a bulk-synchronous run: the sum over supersteps of max w + g max h + l.

    ``work`` and ``traffic``: of each superstep what each processor computes (w), and how many bytes it
    sends or receives (h). ``gap``: g, the cost of a byte; ``latency``: l, of a barrier. The paper lists the
    parameters; the sum is the model's standard reading.
    """
    return sum(
        max(w, default=0.0) + gap * max(h, default=0.0) + latency
        for w, h in zip(work, traffic, strict=True)
    )  # fmt: skip
