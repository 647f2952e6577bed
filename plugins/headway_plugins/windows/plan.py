"""A window planned: which jobs are taken on, which are left out and why, and how it will go.

Zhou and others 2005: the selection (phase 1) and, as the forecast, the dispatching (phase 2) of the selected
jobs with the lengths that are believed.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
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
    #: By how much the selection may miss the best selection; 0: not at all.
    gap: float
    #: The chosen jobs, in their order, dispatched.
    forecast: Outcome

    @property
    def left_out(self) -> tuple[int, ...]:
        """The jobs that could end in time, and are not chosen."""
        out = {*self.chosen, *self.too_long}
        return tuple(number for number in range(len(self.jobs)) if number not in out)

    @property
    def ratio(self) -> float:
        """The performance ratio: what the forecast earns, over ``most``."""
        return self.forecast.reward / self.most if self.most else 1.0


@dataclass(frozen=True)
class Choice:
    """The jobs to take on, of jobs that can all end in time; numbers name them."""

    #: r, and what of r P D is left for the jobs that have not begun, processor-seconds.
    share: float
    capacity: float
    #: The jobs among them that have begun.
    chosen: tuple[int, ...]
    #: Work of the jobs that have not begun, processor-seconds.
    work: float
    gap: float


def choose(
    jobs: Sequence[Staged],
    begun: Collection[int],
    processors: int,
    deadline: float,
    others: float,
    *,
    order: OrderName,
    share: float | None,
    caution: float,
) -> Choice:
    """The set that earns most within what is left of a window of ``deadline`` seconds.

    ``begun``: jobs that go on, whatever they earn; ``others``: processor-seconds of the window that other
    jobs have. ``share``: r; None: from ``caution`` and the longest critical path
    (:func:`headway_plugins.windows.staged.fill`). With PRIO nothing is selected: all are taken on.
    """
    if share is None:
        share = fill(processors, deadline, longest_path(jobs), caution)
    goes_on = math.fsum(jobs[number].work for number in begun)
    capacity = max(0.0, room(share, processors, deadline) - others - goes_on)
    fresh = [number for number in range(len(jobs)) if number not in begun]
    found = select([jobs[n].work for n in fresh], [jobs[n].worth for n in fresh], capacity)
    new = fresh if order == "PRIO" else [fresh[at] for at in found.chosen]
    work = math.fsum(jobs[number].work for number in new)
    return Choice(share, capacity, tuple(sorted({*begun, *new})), work, found.gap)


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
    """Plan a window of ``deadline`` seconds on an empty machine. ``share`` and ``caution``: see
    :func:`choose`."""
    able = fitting(jobs, deadline)
    choice = choose(
        [jobs[number] for number in able], (), processors, deadline, 0.0,
        order=order, share=share, caution=caution,
    )  # fmt: skip
    chosen = [able[at] for at in choice.chosen]
    forecast = dispatch([jobs[n] for n in chosen], processors, deadline, ORDERS[order], rng=rng)
    return plan_of(jobs, processors, deadline, choice, chosen, forecast)


def plan_of(
    jobs: Sequence[Staged],
    processors: int,
    deadline: float,
    choice: Choice,
    chosen: Sequence[int],
    forecast: Outcome,
) -> Plan:
    """A window of ``deadline`` seconds in which the jobs ``chosen`` are taken on, and what comes of it.

    ``choice``: how they were chosen, of the jobs that can end in time; ``forecast``: of the chosen jobs.
    """
    able = fitting(jobs, deadline)
    most = select(
        [jobs[number].work for number in able],
        [jobs[number].worth for number in able],
        room(1.0, processors, deadline),
    )
    too_long = tuple(sorted(set(range(len(jobs))) - {*able, *chosen}))
    return Plan(
        tuple(jobs), processors, deadline, choice.share, choice.capacity, tuple(chosen), too_long,
        most.reward + most.gap, choice.gap, forecast,
    )  # fmt: skip


def why_out(job: Staged, deadline: float, chosen_work: float, capacity: float) -> str:
    """Why a job is not in the set, for a person. ``chosen_work`` and ``capacity`` in processor-seconds."""
    if job.path > deadline:
        return f"its stages take {duration(job.path)}, and the window has {duration(deadline)}"
    if job.work > capacity:
        return (
            f"not in the set: the job alone needs {job.work / capacity:.2f} of the part that may be filled"
            if capacity
            else "not in the set: nothing of the window is left to be filled"
        )
    needed = (chosen_work + job.work) / capacity
    return f"not in the set: with this job the set would need {needed:.2f} of the part that may be filled"


def out_of(plan: Plan, number: int) -> str:
    """Why a job of a plan is left out."""
    work = math.fsum(plan.jobs[chosen].work for chosen in plan.chosen)
    return why_out(plan.jobs[number], plan.deadline, work, plan.capacity)
