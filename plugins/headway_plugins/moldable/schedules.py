"""Schedules of a batch of moldable tasks, and the two ways in which lists of tasks are placed.

Dutot and others 2005, section 3. The paper calls A1 "list scheduling" and says no more; decisions:

- :func:`listed` is Graham's: now, and whenever something ends, the list is scanned and every task starts that
  fits on what is idle. With it A1 comes out as published; where each task in turn takes the processors that
  are free first (:meth:`Frontier.place`) it loses to A2 everywhere.
- :meth:`Frontier.place`: a task starts when enough processors are free. Of the processors that are free by
  then it takes the processors that were freed last, so that the least idle time is left before it; then the
  first processors.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from headway_plugins.moldable.tasks import Floats, Ints

_INF = float("inf")


class Placed(NamedTuple):
    """A task on ``size`` processors, in seconds from now."""

    task: int
    start: float
    end: float
    size: int


@dataclass(frozen=True)
class Schedule:
    """Where and when each task of a batch runs, in order of its start, larger tasks first."""

    entries: tuple[Placed, ...]
    #: In one line, what the algorithm settled on, such as its width limit.
    chosen: str = ""
    #: A1's width limit; 0: not A1's.
    width: int = 0
    #: A4's smallest guess that succeeded, seconds; 0: not A4's.
    guess: float = 0.0
    makespan: float = field(init=False)

    def __post_init__(self) -> None:
        ordered = sorted(self.entries, key=lambda entry: (entry.start, -entry.size, entry.task))
        object.__setattr__(self, "entries", tuple(ordered))
        object.__setattr__(self, "makespan", max((entry.end for entry in ordered), default=0.0))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Each task's processors, by its number."""
        found = {entry.task: entry.size for entry in self.entries}
        return tuple(found[task] for task in range(len(found)))


class Frontier:
    """When each processor is free; tasks are placed behind that."""

    def __init__(self, frontier: Floats) -> None:
        self.free_at = frontier.copy()

    def place(self, task: int, size: int, time: float) -> Placed:
        """The task as early as it can start."""
        free = self.free_at
        start = float(np.partition(free, size - 1)[size - 1])
        open_by_then = np.flatnonzero(free <= start)
        # Stable: of equals the processors with the lowest numbers.
        latest = open_by_then[np.argsort(-free[open_by_then], kind="stable")[:size]]
        free[latest] = start + time
        return Placed(task, start, start + time, size)


def listed(
    size: Ints, time: Floats, order: Ints, frontier: Floats, most: float = _INF
) -> list[Placed] | None:
    """Graham's list: start whatever fits in the order of the list, now and whenever processors are given
    back.

    ``size`` and ``time``: of each task; ``order``: the list. None as soon as it is seen that the end would be
    after ``most``.
    """
    count, processors = len(order), len(frontier)
    sizes, times, tasks = size[order].tolist(), time[order].tolist(), order.tolist()
    # Of each size the places in the list, the next place last; and the next place of each size.
    waiting: list[list[int]] = [[] for _ in range(processors + 1)]
    for place in range(count - 1, -1, -1):
        waiting[sizes[place]].append(place)
    heads = np.array([places[-1] if places else count for places in waiting], np.int64)
    smallest = np.minimum.reduce
    # No size below it waits.
    least = min(sizes, default=1)
    running = [at for at in np.sort(frontier).tolist() if at > 0]
    not_yet = len(running)
    free = processors - not_yet
    # Processor-seconds: of the batch, and what it can no longer use.
    needed, lost = float((size[order] * time[order]).sum()), 0.0
    enough = most * processors * (1 + 1e-9)
    entries: list[Placed] = []
    now = 0.0
    left = count
    ends: list[tuple[float, int]] = []
    # The frontier is sorted already; tasks' ends are a heap of their own.
    nth = 0
    while True:
        while free >= least:
            place = int(smallest(heads[: free + 1]))
            if place == count:
                break
            taken = sizes[place]
            end = now + times[place]
            if end > most:
                return None
            entries.append(Placed(tasks[place], now, end, taken))
            left -= 1
            places = waiting[taken]
            places.pop()
            if places:
                heads[taken] = places[-1]
            else:
                heads[taken] = count
                while least <= processors and not waiting[least]:
                    least += 1
            free -= taken
            heappush(ends, (end, taken))
        if not left:
            return entries
        then = min(ends[0][0] if ends else _INF, running[nth] if nth < len(running) else _INF)
        lost += (free + not_yet) * (then - now)
        if needed + lost > enough:
            return None
        now = then
        while ends and ends[0][0] == now:
            free += heappop(ends)[1]
        while nth < len(running) and running[nth] == now:
            free += 1
            not_yet -= 1
            nth += 1
