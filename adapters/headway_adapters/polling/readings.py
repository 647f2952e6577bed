"""What was read of the last look, for the next one, in which most records are the same bytes.

Each reader says what a reading depends on: its key, the context that all readings have in common, and what
the reader compares itself. So a look is read as if nothing had been remembered, in the time of what changed.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Generic, TypeVar

KeyT = TypeVar("KeyT")
ReadingT = TypeVar("ReadingT")


def digest(record: Any) -> bytes:
    """What tells a record, which is bytes, from all others."""
    return blake2b(record, digest_size=16).digest()


class Readings(Generic[KeyT, ReadingT]):
    """The readings of the last look, and those of the look that is being read."""

    def __init__(self) -> None:
        self._context: Any = None
        #: Of the last look.
        self.readings: dict[KeyT, ReadingT] = {}
        self._next: dict[KeyT, ReadingT] = {}

    def begin(self, context: Any) -> None:
        """A look is to be read. ``context``: what all of it is read by; it is not changed afterwards."""
        if context != self._context:
            self.readings = {}
        self._context, self._next = context, {}

    def keep(self, key: KeyT, reading: ReadingT) -> None:
        """For the next look."""
        self._next[key] = reading

    def end(self) -> None:
        """The look is read."""
        self.readings, self._next = self._next, {}
