"""The zone in which a command writes and reads times: that of its own environment, as with the real ones."""

from __future__ import annotations

import datetime
import time
from collections.abc import Mapping
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

#: Near the end of the year 9999, which is the last that can be written.
_LATEST = 253_400_000_000.0


class Zone:
    """A zone by its name in ``TZ``; without one, and with one that is unknown here, this machine's."""

    def __init__(self, name: str | None = None) -> None:
        self._zone: datetime.tzinfo | None = None
        if name is not None:
            try:
                self._zone = ZoneInfo(name.removeprefix(":")) if name else datetime.UTC
            except (ZoneInfoNotFoundError, ValueError, OSError):
                self._zone = datetime.UTC if name.startswith("UTC") else None

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Zone:
        return cls(environment.get("TZ"))

    def local(self, wall: float) -> time.struct_time:
        """The date and time of a wall time."""
        return datetime.datetime.fromtimestamp(min(max(wall, 0.0), _LATEST), self._zone).timetuple()

    def text(self, wall: float, form: str) -> str:
        """As :func:`time.strftime` writes it."""
        return time.strftime(form, self.local(wall))

    def wall(self, year: int, month: int, day: int, hour: int, minute: int, second: int = 0) -> float:
        """The wall time of a date; a day or month too large goes on in the next. Raises ValueError."""
        year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
        first = datetime.datetime(year, month, 1, hour, minute, second, tzinfo=self._zone)
        return (first + datetime.timedelta(days=day - 1)).timestamp()
