"""The plan of a site: when each queued job starts, and what is left for users' reservations.

K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with User-Settable Reservations. Job Scheduling Strategies
for Parallel Processing, 2005, section 3: "User-settable reservations are made only after all currently queued
jobs are scheduled". Catalina is a reservation-based single-queue scheduler that weighs the expansion factor.

Ours: the plan is conservative backfilling. Running jobs stay until their limits. System reservations and
accepted users' reservations have their places, then each queued job in the order of priority gets the
earliest place. The priority is the job's own and ``weight`` times the expansion factor (wait + limit) /
limit; of equal jobs the first submitted goes first, then the id. A reservation in what is left delays no
queued job as long as the order stays, which a weight above 0 does not guarantee.

A plan of ten thousand jobs is quick because a job looks for a place only from where an earlier job with no
more nodes and no longer limit found its own: bookings only ever take nodes away.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from math import ceil, inf

import msgspec
import numpy as np

from headway.resources.profile import Profile


class Busy(msgspec.Struct, frozen=True):
    """Nodes that are taken from start to end: a running job to its limit, or a reservation."""

    start: float
    end: float
    nodes: int


class Queued(msgspec.Struct, frozen=True):
    """A job that waits; seconds."""

    id: str
    nodes: int
    limit: float
    submit: float
    priority: float = 0.0


def in_order(queue: Iterable[Queued], now: float, weight: float = 0.0) -> list[Queued]:
    """The queue, the first to be served first."""

    def key(job: Queued) -> tuple[float, float, str]:
        factor = (now - job.submit + job.limit) / job.limit
        return (-(job.priority + weight * factor), job.submit, job.id)

    return sorted(queue, key=key)


class _Bounds:
    """No place for so many nodes and so many seconds is earlier than this, from the places found so far."""

    #: Most sizes and lengths that are told apart.
    _CELLS = 32

    def __init__(self, earliest: float, queue: Sequence[Queued]) -> None:
        self._sizes = _some(sorted({job.nodes for job in queue}), self._CELLS)
        self._lengths = _some(sorted({job.limit for job in queue}), self._CELLS)
        self._table = np.full((len(self._sizes), len(self._lengths)), float(earliest))

    def least(self, nodes: int, seconds: float) -> float:
        """From where on to look."""
        size, length = bisect_right(self._sizes, nodes) - 1, bisect_right(self._lengths, seconds) - 1
        return float(self._table[size, length])

    def found(self, nodes: int, seconds: float, start: float) -> None:
        """The first place that was found; it holds for all that need as much or more."""
        part = self._table[bisect_left(self._sizes, nodes) :, bisect_left(self._lengths, seconds) :]
        np.maximum(part, start, out=part)


def _some(values: Sequence[float], most: int) -> Sequence[float]:
    """At most so many of the values, the least among them."""
    return values[:: -(-len(values) // most)] if values else values


def plan(
    nodes: int, now: float, busy: Iterable[Busy], queue: Sequence[Queued]
) -> tuple[Profile, dict[str, float]]:
    """The free nodes over time with all in place, and the start of each queued job.

    ``queue`` is in its order. A job that can never start has no start.
    """
    profile = Profile(now, nodes)
    profile.reserve_all((one.start, one.end, one.nodes) for one in busy)
    bounds = _Bounds(now, queue)
    same: dict[tuple[int, float], float] = {}
    starts: dict[str, float] = {}
    for job in queue:
        key = (job.nodes, job.limit)
        after = max(same.get(key, now), bounds.least(job.nodes, job.limit))
        start = same[key] = profile.earliest(job.nodes, job.limit, after)
        if start > after:
            bounds.found(job.nodes, job.limit, start)
        if start < inf:
            starts[job.id] = start
            profile.reserve(start, start + job.limit, job.nodes)
    return profile, starts


def on_grain(time: float, grain: float) -> float:
    """The first whole grain at or after ``time``."""
    return ceil(time / grain) * grain if grain else time


def place(
    profile: Profile, nodes: int, duration: float, earliest: float, latest: float, grain: float = 0
) -> float | None:
    """The first start that is a whole grain, has ``nodes`` free over whole grains, and ends by ``latest``."""
    times, free = profile.times, profile.free
    start = on_grain(max(earliest, times[0]), grain)
    while start + duration <= latest:
        end = on_grain(start + duration, grain)
        first = max(bisect_right(times, start) - 1, 0)
        last = bisect_left(times, end)
        blocked = next((at for at in range(last - 1, first - 1, -1) if free[at] < nodes), None)
        if blocked is None:
            return start
        while blocked < len(free) and free[blocked] < nodes:
            blocked += 1
        if blocked == len(free):
            return None
        start = on_grain(times[blocked], grain)
    return None


def free_throughout(profile: Profile, start: float, duration: float, grain: float = 0) -> int:
    """The nodes that are free all the time of a reservation, over whole grains."""
    return profile.minimum(start, on_grain(start + duration, grain))
