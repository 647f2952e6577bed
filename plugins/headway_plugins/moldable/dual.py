"""A4: moldable tasks by dual approximation, never longer than twice the optimum.

P.-F. Dutot, M. A. S. Netto, A. Goldman, F. Kon: Scheduling Moldable BSP Tasks. JSSPP 2005, sections 3.3 and
4, after Hochbaum and Shmoys. A guess w either gives a schedule of at most 2w or shows that w is below the
optimum: each task gets the least size at which it takes at most 2w. Tasks above one processor start now on
processors of their own, the rest go, the longest first, to the processor that is free first. Bisection
finds the smallest guess that succeeds.

Decisions on what the paper leaves open:

- Success has not been proven to be monotone in w, so the best schedule seen is the answer.
- ``eps`` is absolute, in seconds; by default a millionth of the first guess.
- Where processors are taken yet (a frontier), a task's size is the least at which it could end by 2w on the
  processors that are free first. Tasks above one processor get theirs in turn, the task that must start
  soonest first, and must end by 2w too. Without a frontier that is the paper's algorithm; the factor 2 is
  proven for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace

import numpy as np

from headway_plugins.moldable.schedules import Placed, Schedule, listed
from headway_plugins.moldable.tasks import Candidates, Floats, Ints, Task, frontier_of

#: Why a guess fails, as the paper numbers the cases of its proof.
NO_SIZE = "no size of a task is fast enough"
TOO_WIDE = "case 1: the tasks above one processor do not fit beside each other"
NONE_LEFT = "case 2: no processor is left for the tasks of one"
TOO_LATE = "case 3: a task of one processor would end after twice the guess"
#: With least sizes.
LIST_TOO_LATE = "the list would end after twice the guess"


@dataclass(frozen=True)
class Attempt:
    """What a guess came to: a schedule, or why there is none."""

    entries: Sequence[Placed] = ()
    failure: str = ""
    #: The sizes that were tried, by task; empty if there are none.
    sizes: tuple[int, ...] = ()


def attempt(
    tasks: Sequence[Task],
    processors: int,
    guess: float,
    free_at: Sequence[float] | Floats | None = None,
) -> Attempt:
    """try(w): a schedule of at most 2w seconds, or why there is none."""
    return _Guessing(Candidates(tasks, processors), frontier_of(processors, free_at)).attempt(guess)


def dual(
    tasks: Sequence[Task],
    processors: int,
    free_at: Sequence[float] | Floats | None = None,
    *,
    eps: float | None = None,
) -> Schedule:
    """A4: the best schedule of a bisection over guesses.

    ``eps``: seconds; the makespan is at most 2 x optimum + eps on an empty machine.
    """
    if not tasks:
        return Schedule(())
    frontier = frontier_of(processors, free_at)
    guessing = _Guessing(Candidates(tasks, processors), frontier)
    # All as small as they may be, in turn behind all that runs: that succeeds.
    low, high = 0.0, float(frontier.max()) + sum(task.time_on(task.least) for task in tasks)
    gap = 1e-6 * high if eps is None else eps
    found = guessing.attempt(high)
    best, length = found.entries, max(entry.end for entry in found.entries)
    smallest = high
    while high - low > gap / 2:
        middle = (low + high) / 2
        found = guessing.attempt(middle)
        if found.failure:
            low = middle
            continue
        smallest = high = middle
        end = max(entry.end for entry in found.entries)
        if end <= length:
            best, length = found.entries, end
    return Schedule(tuple(best), f"all end within twice {smallest:.6g} s", guess=smallest)


class _Guessing:
    """Tries guesses on a batch."""

    def __init__(self, candidates: Candidates, frontier: Floats) -> None:
        self._candidates = candidates
        self._free = np.sort(frontier)
        self._soonest: Floats = self._free[candidates.size - 1] + candidates.time
        self._rest = -np.arange(len(candidates.size))
        self._bound_below = bool((candidates.least > 1).any())

    def attempt(self, guess: float) -> Attempt:
        candidates, free = self._candidates, self._free
        limit = 2.0 * guess
        processors = candidates.processors
        fast = self._soonest <= limit
        # The first fast entry of each task: entries count down, so that the first is the largest.
        firsts = np.maximum.reduceat(np.where(fast, self._rest, -len(fast)), candidates.first)
        if (firsts == -len(fast)).any():
            return Attempt(failure=NO_SIZE)
        entry: Ints = -firsts
        size, time = candidates.size[entry], candidates.time[entry]
        sizes = tuple(size.tolist())
        if self._bound_below:
            order = np.lexsort((-time, size == 1))
            found = listed(size, time, order, free, limit)
            if found is None:
                return Attempt(failure=LIST_TOO_LATE, sizes=sizes)
            return Attempt(found, sizes=sizes)
        large = np.flatnonzero(size > 1)
        wide = int(size[large].sum())
        small = np.flatnonzero(size == 1)
        if wide > processors:
            return Attempt(failure=TOO_WIDE, sizes=sizes)
        if wide == processors and len(small):
            return Attempt(failure=NONE_LEFT, sizes=sizes)
        entries: list[Placed] = []
        taken = 0
        for task in large[np.argsort(-time[large], kind="stable")].tolist():
            takes = float(time[task])
            start = float(free[taken + sizes[task] - 1])
            taken += sizes[task]
            if start + takes > limit:
                return Attempt(failure=TOO_WIDE, sizes=sizes)
            entries.append(Placed(task, start, start + takes, sizes[task]))
        if len(small) == 0:
            return Attempt(entries, sizes=sizes)
        # Seen without placing any task: they have more work than their processors can do by then.
        if float(time[small].sum()) > float(np.maximum(limit - free[taken:], 0.0).sum()) * (1 + 1e-9):
            return Attempt(failure=TOO_LATE, sizes=sizes)
        left = free[taken:].tolist()
        heapify(left)
        longest = small[np.argsort(-time[small], kind="stable")]
        for task, takes in zip(longest.tolist(), time[longest].tolist(), strict=True):
            start = left[0]
            end = start + takes
            if end > limit:
                return Attempt(failure=TOO_LATE, sizes=sizes)
            heapreplace(left, end)
            entries.append(Placed(task, start, end, 1))
        return Attempt(entries, sizes=sizes)
