"""Jobs of stages as they stand in the queue: tasks that name their job and stage."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from headway.state import Job, PoolState
from headway_plugins.windows.staged import Staged

#: The attribute of a task.
WINDOW = "window"
#: Seconds: what a task is expected to take at least.
LEAST = 1e-3
#: Pool, user, name.
Key = tuple[str, str, str]


@dataclass
class Group:
    """A job of stages, as far as its tasks are known."""

    key: Key
    #: Order of arrival.
    number: int
    #: Of each stage the tasks that have not ended, by id.
    left: dict[int, dict[str, Job]] = field(default_factory=dict)
    #: Stages of which a task has completed.
    done: set[int] = field(default_factory=set)
    #: Task that did not complete -> what became of it.
    failed: dict[str, str] = field(default_factory=dict)
    reward: float | None = None
    priority: float = 0.0
    #: What is wrong with what its tasks say; "" if nothing.
    wrong: str = ""
    #: Why it is not in the set; "" if it is.
    why: str = ""

    @property
    def name(self) -> str:
        return self.key[2]

    @property
    def begun(self) -> bool:
        """Whether something of it ran already."""
        return bool(self.done) or any(
            job.entries is not None for tasks in self.left.values() for job in tasks.values()
        )

    @property
    def pool(self) -> PoolState:
        """The pool of its tasks, of which some are left."""
        return next(job.pool for tasks in self.left.values() for job in tasks.values())

    def first(self) -> int:
        """The stage that is open."""
        return min(self.left, default=0)

    def gap(self) -> int:
        """A stage that is missing between two others; 0: none is."""
        known = self.done | set(self.left)
        if not known:
            return 0
        return next((stage for stage in range(min(known), max(known)) if stage not in known), 0)

    def running(self) -> int:
        """How many processors tasks of its open stage have."""
        tasks = self.left.get(self.first(), {}).values()
        return sum(job.processors for job in tasks if job.entries is not None)

    def staged(self, now: float) -> Staged:
        """What is left of it, in seconds of one processor; tasks on several count as often."""
        stages = []
        for stage in sorted(self.left):
            # Running tasks first.
            tasks = sorted(self.left[stage].values(), key=lambda job: job.entries is None)
            stages.append(tuple(max(_left(job, now), LEAST) for job in tasks for _ in range(job.processors)))
        return Staged(self.name, tuple(stages), self.reward, self.priority)


def _left(job: Job, now: float) -> float:
    return job.expected_end - now if job.entries is not None else job.expected_runtime


def read_mark(said: Any) -> tuple[str, int, float | None, float, str]:
    """What a task says: job, stage, reward, priority; and what is wrong with it, "" if nothing."""
    if not isinstance(said, dict):
        return "", 1, None, 0.0, f"expected a job and a stage in its attribute {WINDOW}, found {said!r}"
    name, stage = said.get("job"), said.get("stage")
    if not isinstance(name, str) or not name:
        return "", 1, None, 0.0, f"expected the name of a job of stages, found {name!r}"
    if not isinstance(stage, int) or isinstance(stage, bool) or stage < 1:
        return name, 1, None, 0.0, f"job {name}: expected a stage from 1 on, found {stage!r}"
    reward, priority = said.get("reward"), said.get("priority", 0.0)
    for what, value in (("reward", reward), ("priority", priority), ("length", said.get("length"))):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            return name, stage, None, 0.0, f"job {name}: expected a number as its {what}, found {value!r}"
    if reward is not None and not 0 < reward < math.inf:
        return name, stage, None, 0.0, f"job {name}: expected a reward above 0, found {reward:g}"
    return name, stage, reward, float(priority or 0.0), ""
