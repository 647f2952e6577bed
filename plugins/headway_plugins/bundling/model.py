"""How long an application takes on fewer processors than it has processes: equations 1 to 3.

F. Liu, J. B. Weissman: Elastic Job Bundling: An Adaptive Resource Request Strategy for Large-Scale Parallel
Applications. SC 2015, section 3.2.

The application keeps its P_t processes. On q processors up to d(q) = ceil(P_t / q) of them share a processor:
d(q) is its *degree* of over-subscription, and the whole takes p(q) = Delta * d(q) * R_t seconds.

Decisions on what the paper leaves open or contradicts
- Delta counts only where processors are shared, else equation 2 at q = P_t contradicts equation 1.
- The degree is a staircase, so of an offer only the fewest processors with its degree are taken. The paper
  prints ceil(P_t / offer) for that, which is the degree itself; the nesting was lost.
- Times within a microsecond are equal.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

INFINITY = float("inf")
#: Seconds: times that are no further apart are equal.
EQUAL = 1e-6


class Interval(NamedTuple):
    """A part of an application's run: it runs on ``processors`` (q_k), or it is being moved."""

    start: float
    end: float
    #: 0 while it is being moved.
    processors: int
    migrating: bool = False


class Member(NamedTuple):
    """A subjob as the plans see it: its processors, and when its time limit ends."""

    processors: int
    end: float


class Model(NamedTuple):
    """A target job, and what it costs it to have fewer processors."""

    #: P_t: the application's processes.
    processors: int
    #: R_t: seconds on as many processors, the job's walltime.
    walltime: float
    #: O_max: the most processes on a processor.
    omax: int = 8
    #: Delta: penalty on the time of processors that are shared.
    delta: float = 1.0
    #: lambda: the most seconds that a bulk migration takes; infinite: it cannot be moved.
    migration: float = 120.0

    @property
    def least(self) -> int:
        """q_min: the fewest processors on which the application may run."""
        return -(-self.processors // self.omax)

    def degree(self, processors: int) -> int:
        """d(q): processes on the fullest of so many processors."""
        return -(-self.processors // processors)

    def trim(self, offer: int) -> int:
        """The fewest processors with the degree of ``offer``, which is at least 1."""
        return -(-self.processors // -(-self.processors // offer))

    def suffices(self, offer: int) -> bool:
        """Whether the application may run on so many processors."""
        return offer * self.omax >= self.processors

    def time_on(self, processors: int) -> float:
        """p(q): seconds of the whole application on so many processors, at least 1."""
        degree = -(-self.processors // processors)
        return self.walltime if degree <= 1 else self.delta * degree * self.walltime


def progress(model: Model, intervals: Iterable[Interval], now: float) -> float:
    """The share of the application that is done at ``now``, 0 to 1: equation 3."""
    done = 0.0
    for start, end, processors, migrating in intervals:
        if start >= now:
            break
        if not migrating:
            done += (min(end, now) - start) / model.time_on(processors)
    return min(1.0, done)
