"""What became of the bookings between two moments."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Protocol

from headway.inquiry.bookings import booking_report
from headway.inquiry.inquiry import Inquiry
from headway.scheduler import Scheduler
from headway.service.changes import Booked
from headway.view import Booking
from headway.view.owed import Check, Enough, TooLarge

#: Bookings of a line; and of bookings that are gone, so many jobs are looked at at once.
_ROWS, _LOOKED_AT = 64, 500


class Telling(Protocol):
    """What bookings are told from."""

    @property
    def scheduler(self) -> Scheduler: ...

    @property
    def inquiry(self) -> Inquiry: ...

    @property
    def check(self) -> Check: ...


class BookingChanges:
    """The bookings that one follower was told."""

    def __init__(self) -> None:
        #: Domain -> the bookings, and how many were still to be made or told.
        self._told: dict[str, tuple[list[Booking], int]] = {}
        #: Some are still to be made.
        self.are_owed = False

    def told(self, telling: Telling, changed: dict[str, None]) -> Iterator[Booked]:
        """What is new, and the ids of its jobs into ``changed``. Raises :class:`Enough`."""
        self.are_owed = False
        for name, view in telling.scheduler.views.items():
            try:
                view.make_owed(telling.inquiry.check)
            except TooLarge:
                pass
            except Enough:
                self.are_owed = True
            made = view.made_bookings
            before, owed = self._told.get(name, ([], 0))
            keep = _alike(before, made)
            while keep < len(before) or keep < len(made) or owed != view.owed:
                telling.check()
                fresh = made[keep : keep + _ROWS]
                changed.update((one.job.id, None) for one in islice(before, keep, keep + _LOOKED_AT))
                changed.update((one.job.id, None) for one in fresh)
                before = made[: keep + len(fresh)]
                owed = view.owed + len(made) - len(before)
                self._told[name] = before, owed
                yield Booked(name, keep, tuple(map(booking_report, fresh)), owed)
                keep = len(before)


def _alike(before: list[Booking], made: list[Booking]) -> int:
    """How many of the first are the same."""
    most = min(len(before), len(made))
    if before[:most] == made[:most]:
        return most
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        if before[low:middle] == made[low:middle]:
            low = middle
        else:
            high = middle
    return low
