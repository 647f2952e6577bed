"""What the algorithms make of a batch, side by side, and what to do: which jobs are made smaller, and why.

Dutot and others 2005. The advice compares with plain LTF, where every job runs as large as asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headway.report.quantities import duration
from headway_plugins.moldable.algorithms import ALGORITHMS
from headway_plugins.moldable.schedules import Placed, Schedule
from headway_plugins.moldable.tasks import Floats, Task, lower_bound

#: The algorithm that everything is compared with.
PLAIN = "LTF"


@dataclass(frozen=True)
class Plans:
    """All algorithms on a batch."""

    tasks: tuple[Task, ...]
    processors: int
    #: Seconds.
    bound: float
    schedules: dict[str, Schedule]

    @property
    def best(self) -> str:
        """The algorithm whose schedule ends first; of several the first, but no job is made smaller for
        nothing: as asked for wins a tie."""
        plain = self.schedules[PLAIN].makespan
        best = min(self.schedules, key=lambda name: self.schedules[name].makespan)
        return best if self.schedules[best].makespan < plain else PLAIN


def plans(tasks: Sequence[Task], processors: int, free_at: Sequence[float] | Floats | None = None) -> Plans:
    """The schedules of all algorithms, and the bound. ``free_at``: when each processor is free, seconds
    from now."""
    found = {name: algorithm(tasks, processors, free_at) for name, algorithm in ALGORITHMS.items()}
    return Plans(tuple(tasks), processors, lower_bound(tasks, processors, free_at), found)


def shrunk(tasks: Sequence[Task], schedule: Schedule) -> list[Placed]:
    """The tasks with fewer processors than processes in the schedule, in order of their starts."""
    return [entry for entry in schedule.entries if entry.size < tasks[entry.task].processes]


def why(task: Task, size: int, name: str, schedule: Schedule, processors: int) -> str:
    """Why an algorithm gives a task that size, for a person."""
    if size == processors and task.processes > processors:
        cause = f"there are only {processors}"
    elif schedule.width and size == max(schedule.width, task.least):
        cause = f"{name} gives no job more than {schedule.width}"
    elif schedule.guess:
        cause = f"the least with which it can end within {duration(2 * schedule.guess)}"
    else:
        cause = f"{name} leaves the least idle time so"
    more = size * task.time_on(size) - task.processes * task.time
    wasted = f", {100 * more / (task.processes * task.time):.0f} % more work" if more > 0 else ""
    slower = f"take {task.factor(size):g} times as long{wasted}"
    return f"{task.processes} processes on {size} processors {slower}: {cause}"


def advice(found: Plans) -> str:
    """What to do, in a sentence or two."""
    if not found.tasks:
        return "There is nothing to plan."
    best, plain = found.schedules[found.best], found.schedules[PLAIN]
    if found.best == PLAIN:
        ends = f"the batch ends in {duration(plain.makespan)}, and no plan ends it earlier"
        return f"Leave all jobs as they are: {ends}."
    earlier = f"{100 * (1 - best.makespan / plain.makespan):.1f} % earlier than with all jobs as they are"
    ends = f"the batch ends in {duration(best.makespan)}, {earlier} ({duration(plain.makespan)})"
    count = len(shrunk(found.tasks, best))
    some = f"{count} {'job' if count == 1 else 'jobs'}"
    if best.width:
        return f"Shrink every moldable job above {best.width} processors to {best.width} ({some}): {ends}."
    return f"Run the jobs as {found.best} plans, {some} of them on fewer processors: {ends}."
