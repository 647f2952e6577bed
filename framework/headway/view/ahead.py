"""What will be free while bookings are made: a profile that only falls, so that searches need not begin anew.

As long as nothing is given back, a job finds no place earlier than an earlier job that is not larger and runs
no longer. Each search goes on where the search for such a job ended. Steps of equal level are joined, so the
profile has no more steps than matter.

A coarse profile has its steps at multiples of some seconds only: what ends in between ends a little later.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from math import ceil

from headway.resources.profile import Profile

_INF = float("inf")


class Ahead(Profile):
    """A profile that bookings are made in."""

    __slots__ = ("_reach",)

    #: Seconds of which all ends are multiples; 0: they are exact.
    grid: float = 0.0

    def __init__(self, now: float, free: int) -> None:
        super().__init__(now, free)
        #: For each size that was searched for: durations, and the earliest start for such or longer jobs;
        #: both ascending.
        self._reach: dict[int, tuple[list[float], list[float]]] = {}

    @classmethod
    def of(cls, times: list[float], free: list[int]) -> Ahead:
        """Of such steps (:class:`headway.resources.profile.Profile`): both lists are its own from now on."""
        ahead = cls(times[0], free[0])
        ahead.times, ahead.free = times, free
        return ahead

    def release(self, start: float, end: float, processors: int) -> None:
        super().release(start, end, processors)
        # What was found out does not hold any more.
        self._reach = {}

    def book(
        self,
        processors: int,
        duration: float,
        now: float,
        after: float | None = None,
        latest: float = _INF,
    ) -> tuple[float, int]:
        """Take the earliest capacity from ``now`` or from ``after`` on; its start, and what is left then.

        As :meth:`earliest` and :meth:`reserve`, but faster. (infinity, 0), and nothing is taken, when there
        is no such time by ``latest``.
        """
        times, free, grid = self.times, self.free, self.grid
        durations, starts = self._reach.get(processors) or self._reach.setdefault(processors, ([], []))
        place = bisect_right(durations, duration)
        begun = now if after is None or after < now else after
        if place and starts[place - 1] > begun:
            begun = starts[place - 1]
        start = begun
        step = bisect_right(times, start) - 1
        if step < 0:
            step, start = 0, times[0]
        count = len(times)
        while True:
            if free[step] < processors:
                step += 1
                while step < count and free[step] < processors:
                    step += 1
                if step == count:
                    start = _INF
                    break
                start = times[step]
            end = rounded_up(start + duration, grid) if grid else start + duration
            last = step + 1
            if last < count and times[last] < end:
                last = bisect_left(times, end, last + 1)
                if min(free[step + 1 : last]) < processors:
                    # Whatever begins before the last gap in the way meets it as well.
                    step = last - 1
                    while free[step] >= processors:
                        step -= 1
                    continue
            break
        if (start > begun or not place) and after is None:
            _note(durations, starts, duration, start, place)
        if start == _INF or start > latest:
            return _INF, 0
        return start, self._take(step, last, start, end, processors)

    def spans(self, now: float, start: float, end: float, most: float) -> list[tuple[int, float]]:
        """The longest stretches from ``now`` on of which some is in [start, end): ``(processors, seconds)``,
        with more processors the shorter.

        For a number of processors that is not named, the next larger number tells. Infinity stands for all
        that is as long as ``most``.
        """
        times, free = self.times, self.free
        count = len(times)
        step = max(bisect_right(times, now) - 1, 0)
        longest: dict[int, float] = {}
        #: Stretches that go on: since when, and how many processors; each with more than the stretch before.
        since: list[float] = []
        levels: list[int] = []
        time = now
        while True:
            level, begun = free[step], time
            while levels and levels[-1] >= level:
                begun, ended = since.pop(), levels.pop()
                if ended > level and time > start and time - begun > longest.get(ended, 0.0):
                    longest[ended] = time - begun
            if level > 0 and begun < end:
                since.append(begun)
                levels.append(level)
            elif time >= end and not levels:
                break
            step += 1
            if step == count or (time >= end and time - since[-1] >= most):
                break
            time = times[step]
        for level in levels:
            longest[level] = _INF
        spans: list[tuple[int, float]] = []
        least = 0.0
        for level in sorted(longest, reverse=True):
            if longest[level] > least:
                least = longest[level]
                spans.append((level, least))
        spans.reverse()
        return spans

    def _take(self, step: int, last: int, start: float, end: float, processors: int) -> int:
        """Take processors during [start, end), which is in the steps ``step`` to ``last`` - 1; what is left
        at ``start``."""
        times, free = self.times, self.free
        if end <= start:
            return free[step]
        if times[step] != start:
            step += 1
            last += 1
            times.insert(step, start)
            free.insert(step, free[step - 1])
        if end != _INF and (last == len(times) or times[last] != end):
            times.insert(last, end)
            free.insert(last, free[last - 1])
        if last - step == 1:
            free[step] -= processors
        else:
            free[step:last] = [level - processors for level in free[step:last]]
        left = free[step]
        if last < len(times) and free[last - 1] == free[last]:
            del times[last], free[last]
        if step and free[step - 1] == left:
            del times[step], free[step]
        return left


def _note(durations: list[float], starts: list[float], duration: float, start: float, place: int) -> None:
    """Keep the earliest start for such a duration, which goes before ``place``."""
    if place and durations[place - 1] == duration:
        place -= 1
    upto = place
    while upto < len(starts) and starts[upto] <= start:
        upto += 1
    durations[place:upto] = [duration]
    starts[place:upto] = [start]


class Coarse(Ahead):
    """A profile that bookings are made in, whose ends are all multiples of ``grid`` seconds."""

    __slots__ = ("grid",)

    @classmethod
    def of_steps(cls, times: list[float], free: list[int], grid: float) -> Coarse:
        """As :meth:`of`; what begins at the steps after the first is taken as it is."""
        coarse = cls(times[0], free[0])
        coarse.times, coarse.free, coarse.grid = times, free, grid
        return coarse

    def reserve(self, start: float, end: float, processors: int) -> None:
        super().reserve(start, rounded_up(end, self.grid), processors)

    def release(self, start: float, end: float, processors: int) -> None:
        """Give back for this very time, which may be less than was taken."""
        super().reserve(start, end, -processors)
        self._reach = {}


def rounded_up(time: float, grid: float) -> float:
    """The first multiple of ``grid`` that is not before ``time``; infinity stays."""
    if time == _INF:
        return time
    multiple = ceil(time / grid) * grid
    # A quotient is rounded.
    return multiple if multiple >= time else multiple + grid


def coarsened(profile: Profile, grid: float) -> Coarse:
    """The profile with what becomes free put off to the next multiple of ``grid`` seconds; what is taken is
    taken when it was."""
    times, levels = profile.times[:1], profile.free[:1]
    exact = low = levels[0]
    border = _border(times[0], grid)
    for time, level in zip(profile.times[1:], profile.free[1:], strict=True):
        if time >= border:
            if low != exact and border < time:
                times.append(border)
                levels.append(exact)
            low = level if rounded_up(time, grid) == time else exact
            border = _border(time, grid)
        exact, low = level, min(low, level)
        if low != levels[-1]:
            times.append(time)
            levels.append(low)
    if low != exact:
        times.append(border)
        levels.append(exact)
    return Coarse.of_steps(times, levels, grid)


def _border(time: float, grid: float) -> float:
    """The first multiple of ``grid`` after ``time``."""
    multiple = rounded_up(time, grid)
    return multiple if multiple > time else multiple + grid
