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


def backfillable(now: float, free: int, head: int | None, ends: Iterable[tuple[float, int]]) -> Slots:
    """The slots from the processors that are free, those that the queue's head asks for (None: nobody
    waits), and the running jobs as (expected end, processors), in any order."""
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
