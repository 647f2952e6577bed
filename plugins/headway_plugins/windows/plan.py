"""A window planned: who is taken on, who is left out and why, and how it will go.

Zhou and others 2005: the selection (phase 1) and, as the forecast, the dispatching (phase 2) of the selected
jobs with the lengths that are believed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headway.report.quantities import duration
from headway_plugins.windows.dispatch import ORDERS, OrderName, Outcome, dispatch
from headway_plugins.windows.selection import select
from headway_plugins.windows.staged import CAUTION, Staged, fill, fitting, longest_path, room


@dataclass(frozen=True)
class Plan:
    """What to do with a window. Jobs are named by their numbers."""

    jobs: tuple[Staged, ...]
    processors: int
    #: Seconds from the beginning.
    deadline: float
    #: r, and r P D in processor-seconds.
    share: float
    capacity: float
    chosen: tuple[int, ...]
    #: Whose critical path is longer than the window.
    too_long: tuple[int, ...]
    #: What the best selection for the whole window (r = 1) would earn: no schedule earns more.
    most: float
    #: By how much the selection may miss the best one; 0: not at all.
    gap: float
    #: The chosen jobs, in their order, dispatched.
    forecast: Outcome

    @property
    def left_out(self) -> tuple[int, ...]:
        """Who could end in time, and is not chosen."""
        out = {*self.chosen, *self.too_long}
        return tuple(number for number in range(len(self.jobs)) if number not in out)

    @property
    def ratio(self) -> float:
        """The performance ratio: what the forecast earns, over ``most``."""
        return self.forecast.reward / self.most if self.most else 1.0


def plan_window(
    jobs: Sequence[Staged],
    processors: int,
    deadline: float,
    *,
    order: OrderName = "LCPF",
    share: float | None = None,
    caution: float = CAUTION,
    rng: np.random.Generator | None = None,
) -> Plan:
    """Plan a window of ``deadline`` seconds on an empty machine.

    ``share``: r; None: from ``caution`` and the longest critical path
    (:func:`headway_plugins.windows.staged.fill`). With PRIO nothing is selected: every job that can end in
    time is taken on.
    """
    able = fitting(jobs, deadline)
    if share is None:
        share = fill(processors, deadline, longest_path(jobs[number] for number in able), caution)
    capacity = room(share, processors, deadline)
    work = [jobs[number].work for number in able]
    reward = [jobs[number].worth for number in able]
    found = select(work, reward, capacity)
    most = select(work, reward, room(1.0, processors, deadline))
    chosen = able if order == "PRIO" else [able[at] for at in found.chosen]
    taken = [jobs[number] for number in chosen]
    too_long = tuple(sorted(set(range(len(jobs))) - set(able)))
    return Plan(
        tuple(jobs), processors, deadline, share, capacity, tuple(chosen), too_long,
        most.reward + most.gap, found.gap,
        dispatch(taken, processors, deadline, ORDERS[order], rng=rng),
    )  # fmt: skip


def why_out(job: Staged, deadline: float, chosen_work: float, capacity: float) -> str:
    """Why a job is not in the set, for a person. ``chosen_work`` and ``capacity`` in processor-seconds."""
    if job.path > deadline:
        return f"its stages take {duration(job.path)}, and the window has {duration(deadline)}"
    if job.work > capacity:
        return (
            f"not in the set: alone it needs {job.work / capacity:.2f} of what may be filled"
            if capacity
            else "not in the set: nothing of the window is left to be filled"
        )
    needed = (chosen_work + job.work) / capacity
    return f"not in the set: with it the set would need {needed:.2f} of what may be filled"


def out_of(plan: Plan, number: int) -> str:
    """Why a job of a plan is left out."""
    work = math.fsum(plan.jobs[chosen].work for chosen in plan.chosen)
    return why_out(plan.jobs[number], plan.deadline, work, plan.capacity)
