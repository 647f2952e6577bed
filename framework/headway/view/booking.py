"""A booking: capacity that is kept for a job which cannot start yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from headway.model import Placement
from headway.resources import Free

if TYPE_CHECKING:
    from headway.state import Job


class Booking(msgspec.Struct, eq=False):
    """Capacity kept for a job that cannot start yet."""

    job: Job
    #: The job's earliest start (for a queue's head: the shadow time); infinity if it has none.
    start: float
    #: Processors that jobs running past ``start`` may use together without delaying it; an
    #: upper bound where placements decide, and beside other bookings, where what is booked or started after
    #: it was made is not taken from it.
    extra: int
    _clock: Callable[[float], str]
    #: On node pools: its nodes then, and what all nodes have left at that time.
    placement: Placement = ()
    room: Free | None = None
    #: The cycle of its view in which it was made, and how many jobs had been started in that by then.
    cycle: int = 0
    behind: int = 0
    _when: str = ""

    @property
    def when(self) -> str:
        """``start`` for a person."""
        if not self._when:
            self._when = self._clock(self.start)
        return self._when

    def __repr__(self) -> str:
        return f"Booking({self.job.id!r} at {self.start:g}, {self.extra} extra)"
