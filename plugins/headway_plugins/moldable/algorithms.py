"""The four batch schedulers for moldable tasks, by name, and plain LTF.

P.-F. Dutot, M. A. S. Netto, A. Goldman, F. Kon: Scheduling Moldable BSP Tasks. JSSPP 2005, section 3.

``A1``   largest task first with a width limit: every limit from 1 to m is tried (:func:`largest_first`)
``A2``   least idle time, and the largest task where each placement would add some (:func:`least_idle`)
``A3``   least idle time always
``A4``   dual approximation: at most twice the optimum (:mod:`.dual`)
``LTF``  A1 with the limit m: no task is made smaller

Decisions on what the paper leaves open:

- Ties: the smaller limit; for A2 and A3 the placement that wastes less, the larger task, the lower number,
  the smaller size.
- *Idle time* is the box's: m x Cmax less the processor-time placed. Only so can a placement reduce it, and
  step 2 of A2 be reached; holes alone are never added to by a task on one processor.
- The largest task is the task of most work (``largest="time"``: the longest).
- Where processors are taken yet, their time is part of the box.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import nextafter
from typing import Literal

import numpy as np

from headway_plugins.moldable.dual import dual
from headway_plugins.moldable.schedules import Frontier, Placed, Schedule, listed
from headway_plugins.moldable.tasks import Candidates, Floats, Ints, Task, frontier_of, level

_INF = float("inf")

Placing = Literal["listed", "frontier"]
Largest = Literal["work", "time"]


def largest_first(
    tasks: Sequence[Task],
    processors: int,
    free_at: Sequence[float] | Floats | None = None,
    *,
    placing: Placing = "listed",
) -> Schedule:
    """A1: of largest-first lists with all width limits the list that ends first.

    A limit whose schedule cannot be better is given up as soon as that is seen, which changes nothing about
    the answer.
    """
    candidates, frontier = Candidates(tasks, processors), frontier_of(processors, free_at)
    if not tasks:
        return Schedule(())
    widths = [_Width(candidates, width, frontier) for width in range(1, processors + 1)]
    best: list[Placed] = []
    makespan, chosen = _INF, 0
    for width in sorted(widths, key=lambda width: (width.bound, width.limit)):
        # The smaller limit wins a tie.
        most = makespan if width.limit < chosen else nextafter(makespan, 0.0)
        if width.bound > most * (1 + 1e-9):
            continue
        found = width.schedule(frontier, placing, most)
        if found is None:
            continue
        end = max(entry.end for entry in found)
        if end <= most:
            best, makespan, chosen = found, end, width.limit
    return Schedule(tuple(best), f"no job above {chosen} processors", width=chosen)


def with_width(
    tasks: Sequence[Task],
    processors: int,
    width: int,
    free_at: Sequence[float] | Floats | None = None,
    *,
    placing: Placing = "listed",
) -> Schedule:
    """Largest task first with a width limit (the paper's maxnprocs)."""
    candidates, frontier = Candidates(tasks, processors), frontier_of(processors, free_at)
    if not tasks:
        return Schedule(())
    found = _Width(candidates, width, frontier).schedule(frontier, placing)
    assert found is not None
    return Schedule(tuple(found), f"no job above {width} processors", width=width)


def plain_ltf(
    tasks: Sequence[Task], processors: int, free_at: Sequence[float] | Floats | None = None
) -> Schedule:
    """Largest task first, as large as asked for."""
    return with_width(tasks, processors, processors, free_at)


class _Width:
    """The batch with a width limit."""

    def __init__(self, candidates: Candidates, limit: int, frontier: Floats) -> None:
        self.limit = limit
        every = np.arange(len(candidates.tasks))
        self.size: Ints = np.minimum(candidates.largest, np.maximum(limit, candidates.least))
        self.time: Floats = candidates.times(every, self.size)
        self.work: Floats = self.size * self.time
        #: No schedule of these sizes ends before.
        self.bound = max(level(float(self.work.sum()), frontier), float(self.time.max()))

    def schedule(self, frontier: Floats, placing: Placing, most: float = _INF) -> list[Placed] | None:
        """The list's schedule; None if it would end after ``most``."""
        order = np.argsort(-self.work, kind="stable")
        if placing == "listed":
            return listed(self.size, self.time, order, frontier, most)
        processors = Frontier(frontier)
        return [processors.place(int(task), int(self.size[task]), float(self.time[task])) for task in order]


def least_idle(
    tasks: Sequence[Task],
    processors: int,
    free_at: Sequence[float] | Floats | None = None,
    *,
    always: bool = False,
    largest: Largest = "work",
) -> Schedule:
    """A2; with ``always`` A3: task after task where it leaves the least idle time."""
    candidates, frontier = Candidates(tasks, processors), frontier_of(processors, free_at)
    machine = Frontier(frontier)
    # Candidates in the order in which ties are broken, so that the first smallest candidate wins.
    wasted = candidates.wasted(candidates.task, candidates.size)
    order = np.lexsort((candidates.size, candidates.task, -candidates.work[candidates.task], wasted))
    task, size = candidates.task[order], candidates.size[order]
    time, area = candidates.time[order], candidates.area[order]
    gone = np.zeros(len(task))
    alive = len(task)
    by_size = candidates.full if largest == "time" else candidates.work
    # For step 2: all by number where they are equal.
    queue = np.argsort(-by_size, kind="stable").tolist()
    unplaced = set(queue)
    nth = 0
    end = float(frontier.max())
    placed = float(frontier.sum())
    entries: list[Placed] = []
    for _ in range(len(tasks)):
        free = np.sort(machine.free_at)
        ends = free[size - 1] + time
        idle = processors * np.maximum(end, ends) - (placed + area) + gone
        best = int(idle.argmin())
        now_idle = processors * end - placed
        if always or idle[best] <= now_idle + 1e-9 * processors * end:
            which, on, takes = int(task[best]), int(size[best]), float(time[best])
        else:
            while queue[nth] not in unplaced:
                nth += 1
            which = queue[nth]
            on = tasks[which].largest(processors)
            takes = tasks[which].time_on(on)
        entry = machine.place(which, on, takes)
        entries.append(entry)
        end = max(end, entry.end)
        placed += on * takes
        unplaced.discard(which)
        mine = task == which
        gone[mine] = _INF
        alive -= int(mine.sum())
        if alive < len(task) / 2:
            kept = gone == 0
            task, size, time, area, gone = task[kept], size[kept], time[kept], area[kept], gone[kept]
    return Schedule(tuple(entries))


def least_idle_always(
    tasks: Sequence[Task], processors: int, free_at: Sequence[float] | Floats | None = None
) -> Schedule:
    """A3."""
    return least_idle(tasks, processors, free_at, always=True)


Algorithm = Callable[[Sequence[Task], int, "Sequence[float] | Floats | None"], Schedule]

#: By name, as the paper has them.
ALGORITHMS: dict[str, Algorithm] = {
    "A1": largest_first,
    "A2": least_idle,
    "A3": least_idle_always,
    "A4": dual,
    "LTF": plain_ltf,
}
