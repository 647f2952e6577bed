"""What the records of a listing say, kept for the next one, of which most records are the same bytes.

A record is known again by all of its bytes, and by nothing else. What it says depends on these alone, and on
the time where a date has no year (:attr:`headway_adapters.lsf.values.Calendar.until`). Which records there
are, and what they mean for each other, is found out anew in each listing.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from headway_adapters.lsf.values import Calendar

T = TypeVar("T")


class Known(Generic[T]):
    """What the records of one form said in the last look."""

    def __init__(self) -> None:
        self._now = 0.0
        self._before: dict[Hashable, tuple[T, float]] = {}
        self._next: dict[Hashable, tuple[T, float]] = {}

    def begin(self, now: float) -> None:
        """A look begins (seconds)."""
        if now < self._now:
            self._before = {}
        self._now, self._next = now, {}

    def get(self, key: Hashable) -> T | None:
        """What this record says, if the last look or this one showed it; it is kept for the next look."""
        found = self._before.get(key) or self._next.get(key)
        if found is None or self._now >= found[1]:
            return None
        self._next[key] = found
        return found[0]

    def keep(self, key: Hashable, said: T, times: Calendar) -> None:
        """For the next look. ``times``: what the record was read with, begun for it alone."""
        self._next[key] = said, times.until

    def end(self) -> None:
        """All of the look is read."""
        self._before, self._next = self._next, {}
