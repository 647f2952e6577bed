"""What could start at once behind the whole queue under EASY: the paper's slots of type I and II.

Decisions on what the paper leaves open: all expected ends up to and including the shadow time count; with
an empty queue, or a head that can never start, all that is free is of type I.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from headway_plugins.bundling.model import EQUAL, INFINITY


class Slots(NamedTuple):
    """Immediately backfillable room: what is free, and when the head of the queue claims how much of it."""

    #: Processors that are free now.
    free: int
    #: Of these, how many the head leaves over (type I, S1): for any time.
    extra: int
    #: When the head is to start, absolute seconds; infinite: there is none. Until then all that is free may
    #: be used (type II, S2).
    shadow: float = INFINITY

    @property
    def lasting(self) -> int:
        """S1.P_max: processors for any time; 0: there is no such slot."""
        return max(0, min(self.extra, self.free))

    def passing(self, now: float) -> int:
        """S2.P_max: processors until the shadow time; 0: there is no such slot."""
        return self.free if self.free > self.extra and self.shadow > now + EQUAL else 0


def from_windows(now: float, windows: Iterable[tuple[int, float]], longest: float) -> Slots:
    """The slots from what a scheduler says itself: (processors, for so many seconds).

    Windows are any number, slots are of two types. What lasts for ``longest`` seconds, more than any subjob
    needs, is of type I; of the rest the window that has the most processor-seconds is of type II.
    """
    windows = list(windows)
    lasting = max((processors for processors, seconds in windows if seconds >= longest), default=0)
    passing = [window for window in windows if window[1] < longest and window[0] > lasting]
    if not passing:
        return Slots(lasting, lasting)
    free, seconds = max(passing, key=lambda window: window[0] * window[1])
    return Slots(free, lasting, now + seconds)


def backfillable(now: float, free: int, head: int | None, ends: Iterable[tuple[float, int]]) -> Slots:
    """The slots from the free processors, the processors that the queue's head asks for (None: no job waits),
    and the running jobs as (expected end, processors), in any order."""
    if head is None:
        return Slots(free, free)
    reach, shadow = free, now
    if reach < head:
        shadow = INFINITY
        for end, processors in sorted(ends):
            if end > shadow + EQUAL:
                break
            reach += processors
            if shadow == INFINITY and reach >= head:
                shadow = end
    return Slots(free, reach - head, shadow) if shadow < INFINITY else Slots(free, free)
