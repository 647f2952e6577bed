"""Jobs of stages, and how full a window may be filled with them.

Y. Zhou, T. Kelly, J. Wiener, E. Anderson: An Extended Evaluation of Two-Phase Scheduling Methods for
Animation Rendering. JSSPP 2005, sections 2 to 4. A job is a sequence of stages of parallel tasks, each on one
processor; no task of a stage begins before all of the stage before have ended. Its reward is earned only if
all of it ends by the common deadline D.

- T1, its *work*: the seconds of all tasks. Tinf, its *critical path*: the sum over the stages of the longest
  task.
- A non-delay schedule of work W on P processors ends by W/P + (1 - 1/P) max Tinf. So if the jobs' work is at
  most r0 P D with r0 = 1 - (1 - 1/P) max Tinf / D, all of them end by D (Theorem 1).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

#: The paper's lambda for LCPF: how much of the theorem's caution is kept.
CAUTION = 0.2


@dataclass(frozen=True)
class Staged:
    """A job of stages.

    Raises ValueError for a job without stages, a stage without tasks, a task of no work, or a reward of zero
    or below.
    """

    name: str
    #: Of each stage its tasks' seconds.
    stages: tuple[tuple[float, ...], ...]
    #: What it earns if it ends by the deadline; None: its work.
    reward: float | None = None
    #: For PRIO: smaller is more urgent.
    priority: float = 0.0
    #: T1 and Tinf, seconds.
    work: float = field(init=False)
    path: float = field(init=False)

    def __post_init__(self) -> None:
        if not self.stages:
            raise ValueError(f"job {self.name}: expected at least one stage, found none")
        for number, stage in enumerate(self.stages, start=1):
            if not stage:
                raise ValueError(f"job {self.name}, stage {number}: expected at least one task, found none")
            for length in stage:
                if not 0 < length < math.inf:
                    raise ValueError(
                        f"job {self.name}, stage {number}: expected a task of more than 0 seconds, found "
                        f"{length:g}"
                    )
        object.__setattr__(self, "work", sum(sum(stage) for stage in self.stages))
        object.__setattr__(self, "path", sum(max(stage) for stage in self.stages))
        if self.reward is None:
            object.__setattr__(self, "reward", self.work)
        elif not 0 < self.reward < math.inf:
            raise ValueError(f"job {self.name}: expected a reward above 0, found {self.reward:g}")

    @property
    def worth(self) -> float:
        """Its reward."""
        assert self.reward is not None
        return self.reward

    @property
    def tasks(self) -> int:
        """How many tasks it has."""
        return sum(len(stage) for stage in self.stages)


def longest_path(jobs: Iterable[Staged]) -> float:
    """The largest Tinf, seconds; 0 of no jobs."""
    return max((job.path for job in jobs), default=0.0)


def fitting(jobs: Sequence[Staged], deadline: float) -> list[int]:
    """The numbers of the jobs that can end by the deadline at all: Tinf <= D. Other jobs are discarded."""
    return [number for number, job in enumerate(jobs) if job.path <= deadline]


def fill(processors: int, deadline: float, path: float, caution: float = CAUTION) -> float:
    """r: how much of the window's processor-seconds to select for, 1 - caution (1 - 1/P) max Tinf / D.

    ``deadline`` and ``path`` (the longest Tinf) in seconds. With a caution of 1 it is r0: every selected job
    ends by the deadline, whatever the order; 0: the whole window. Not below 0.
    """
    if processors < 1:
        raise ValueError(f"expected at least 1 processor, found {processors}")
    if not deadline > 0:
        raise ValueError(f"expected a deadline after the beginning, found {deadline:g} s")
    return max(0.0, 1.0 - caution * (1.0 - 1.0 / processors) * path / deadline)


def surely(processors: int, deadline: float, path: float, optimum: int) -> float:
    """Theorem 1, for rewards of 1: at least so many jobs end in time, of ``optimum`` that could: r0 OPT -
    1."""
    return fill(processors, deadline, path, 1.0) * optimum - 1.0


def room(share: float, processors: int, deadline: float) -> int:
    """floor(r P D), of the exact product of the numbers as they are written: processor-seconds."""
    return math.floor(Fraction(str(share)) * processors * Fraction(str(deadline)))
