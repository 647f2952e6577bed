"""When a window opens and closes: at a time of the day, on some days, for so long."""

from __future__ import annotations

import datetime
import re
import zoneinfo
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS: tuple[Day, ...] = get_args(Day)
_CLOCK = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")


def time_of_day(text: str) -> tuple[int, int]:
    """Hours and minutes of "HH:MM"; ValueError for something else."""
    found = _CLOCK.fullmatch(text)
    if found is None:
        raise ValueError(f"a time of day such as '20:00', found {text!r}")
    return int(found[1]), int(found[2])


@dataclass(frozen=True)
class Window:
    """A window, absolute seconds."""

    opens: float
    closes: float

    def open_at(self, now: float) -> bool:
        """Whether it is open; at its end it is over."""
        return self.opens <= now < self.closes


class Windows:
    """Windows in turn."""

    def __init__(self, opens: str, length: float, days: Sequence[str], timezone: str) -> None:
        """``opens``: "HH:MM" in the time zone, on these days; ``length``: seconds, at most a day."""
        self._hour, self._minute = time_of_day(opens)
        self._length = length
        self._days = frozenset(days)
        self._zone = zoneinfo.ZoneInfo(timezone)

    def at(self, now: float) -> Window:
        """The window that is open at ``now`` (absolute seconds), else the next window."""
        today = datetime.datetime.fromtimestamp(now, self._zone)
        for days in range(-1, 9):
            day = today + datetime.timedelta(days=days)
            if DAYS[day.weekday()] not in self._days:
                continue
            begin = day.replace(hour=self._hour, minute=self._minute, second=0, microsecond=0).timestamp()
            # A later window takes over from a window that has not closed.
            if begin + self._length > now:
                return Window(begin, begin + self._length)
        raise AssertionError("a week without a day")
