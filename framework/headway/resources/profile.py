"""The availability profile: how many processors are free from when to when.

A step function over time, kept as two parallel lists (Mu'alem and Feitelson 2001 call it the
profile). It starts at ``now`` and its last step lasts for ever. It knows counts only; which nodes
these processors are on is the business of :mod:`headway.resources.nodes`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import accumulate
from operator import sub

_INF = float("inf")


class Profile:
    """Free processors over time. ``times[i]`` is where the level ``free[i]`` begins."""

    __slots__ = ("free", "times")

    def __init__(self, now: float, free: int) -> None:
        self.times: list[float] = [now]
        self.free: list[int] = [free]

    @classmethod
    def of_releases(cls, now: float, free: int, releases: Iterable[tuple[float, int]]) -> Profile:
        """``free`` now, and more at each release ``(time, processors)``, given in order of time.

        A release that is overdue (at or before ``now``) counts at the next moment after now: the
        processors are still busy, and it is not known for how long.
        """
        profile = cls(now, free)
        times, levels = profile.times, profile.free
        for time, processors in releases:
            if time <= now:
                time = next_after(now)
            elif time < times[-1]:
                time = times[-1]
            free += processors
            if times[-1] == time and len(times) > 1:
                levels[-1] = free
            else:
                times.append(time)
                levels.append(free)
        return profile

    def copy(self) -> Profile:
        """An independent copy; costs two list copies."""
        twin = Profile.__new__(Profile)
        twin.times = self.times.copy()
        twin.free = self.free.copy()
        return twin

    def free_at(self, time: float) -> int:
        """Processors free at ``time`` (before the profile's start: as at its start)."""
        return self.free[max(bisect_right(self.times, time) - 1, 0)]

    def minimum(self, start: float, end: float) -> int:
        """The fewest processors free at any moment of [start, end); of the instant if it is empty."""
        first = max(bisect_right(self.times, start) - 1, 0)
        last = max(bisect_left(self.times, end), first + 1)
        return min(self.free[first:last])

    def earliest(self, processors: int, duration: float, after: float = -_INF) -> float:
        """The first time from ``after`` on at which ``processors`` are free for ``duration`` seconds.

        Infinity when there is no such time, which is when the last step has too few.
        """
        times, free = self.times, self.free
        count = len(times)
        step = max(bisect_right(times, after) - 1, 0)
        start = max(times[step], after)
        while True:
            while step < count and free[step] < processors:
                step += 1
            if step == count:
                return _INF
            start = max(times[step], start)
            end = start + duration
            probe = step + 1
            while probe < count and times[probe] < end and free[probe] >= processors:
                probe += 1
            if probe == count or times[probe] >= end:
                return start
            step = probe

    def until(self, processors: int, start: float) -> float:
        """The first time from ``start`` on at which fewer than ``processors`` are free; infinity if there is
        none.
        """
        first = max(bisect_right(self.times, start) - 1, 0)
        if self.free[first] < processors:
            return start
        for step in range(first + 1, len(self.times)):
            if self.free[step] < processors:
                return self.times[step]
        return _INF

    def forget_before(self, time: float) -> None:
        """Drop the steps that are over at ``time``; nothing may be asked about what was before it any
        more.
        """
        over = bisect_right(self.times, time) - 1
        if over > 0:
            del self.times[:over], self.free[:over]

    def reserve(self, start: float, end: float, processors: int) -> None:
        """Take ``processors`` during [start, end). Levels may become negative: see :meth:`minimum`."""
        if end <= start or not processors:
            return
        first = self._cut(start)
        last = self._cut(end) if end != _INF else len(self.times)
        free = self.free
        for step in range(first, last):
            free[step] -= processors

    def reserve_all(self, spans: Iterable[tuple[float, float, int]]) -> None:
        """Take ``(start, end, processors)`` one after the other; negative ones give back. As :meth:`reserve`,
        in one go."""
        first = self.times[0]
        changes = dict(zip(self.times, map(sub, self.free, [0, *self.free]), strict=False))
        for start, end, processors in spans:
            start = max(start, first)
            if end > start:
                changes[start] = changes.get(start, 0) - processors
                if end != _INF:
                    changes[end] = changes.get(end, 0) + processors
        self.times = sorted(changes)
        self.free = list(accumulate(map(changes.__getitem__, self.times)))

    def release(self, start: float, end: float, processors: int) -> None:
        """Give back what :meth:`reserve` took."""
        self.reserve(start, end, -processors)

    def _cut(self, time: float) -> int:
        """The index of the step that begins at ``time``, made if there is none."""
        times = self.times
        if time <= times[0]:
            return 0
        step = bisect_left(times, time)
        if step == len(times) or times[step] != time:
            times.insert(step, time)
            self.free.insert(step, self.free[step - 1])
        return step

    def __repr__(self) -> str:
        steps = ", ".join(f"{t:g}: {n}" for t, n in zip(self.times, self.free, strict=True))
        return f"Profile({steps})"


def next_after(time: float) -> float:
    """A moment that is later than ``time`` and earlier than anything that is planned: 1 ms on."""
    return time + 1e-3
