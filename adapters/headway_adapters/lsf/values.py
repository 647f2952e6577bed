"""LSF's values as the flavours write them: times, limits, sizes, lists of hosts.

Times. LSF's commands write local times, most without a year and none with a zone. The commands run
with ``TZ=UTC`` (the times are formatted by the command, not by the daemon), and the year is the year
that fits the moment of the look: of a fact (submitted, started, ended) the last such date that is
not more than a day ahead, of a wish (a begin time) the nearest one. Where the day of the week is
written it must fit; where the year is written it counts.
"""

from __future__ import annotations

import calendar
import datetime
import math
import re

MIB = 1 << 20
#: No number that a user writes counts as more; it is exact as a float.
LARGEST = 1 << 53
_DAY = 86400.0
_MONTHS = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), start=1
    )
}
_WEEKDAYS = {name: number for number, name in enumerate(("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"))}
#: ``Sat Nov 21 06:38:58``, ``Nov 21 06:38``, ``Nov 21 06:38:58 2026``, ``Nov 21 06:38 L``.
_NAMED = re.compile(
    r"(?:(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?\s*"
    r"([A-Z][a-z]{2}) +([0-9]{1,2}) ([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?(?: ([0-9]{4}))?(?: [A-Z])?"
)
#: ``11/21-06:38:58``, ``2026/11/21-06:38:58``.
_NUMBERED = re.compile(r"(?:([0-9]{4})/)?([0-9]{1,2})/([0-9]{1,2})-([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?")
#: Years back that are tried: a 29 February comes every fourth, rarely eighth year; a weekday recurs.
_YEARS_BACK = 8


class Calendar:
    """Reads LSF's times at one moment (``now``, absolute seconds); remembers what it has read."""

    def __init__(self, now: float) -> None:
        self.now = now
        self._year = datetime.datetime.fromtimestamp(now, datetime.UTC).year
        self._facts: dict[str, tuple[float | None, float]] = {}
        #: Until when (absolute seconds) all that was read since :meth:`begin` is read so.
        self.until = math.inf

    def begin(self) -> None:
        """Something is read of which it matters how long that holds."""
        self.until = math.inf

    def fact(self, text: str) -> float | None:
        """When something happened; None for ``-``, "" and what is no time."""
        found = self._facts.get(text)
        if found is None:
            before, self.until = self.until, math.inf
            found = self._facts[text] = self._resolve(text, ahead=False), self.until
            self.until = before
        moment, until = found
        if until < self.until:
            self.until = until
        return moment

    def wish(self, text: str) -> float | None:
        """When something shall happen; None if unset."""
        return self._resolve(text, ahead=True)

    def date(self, year: int | None, month: int, day: int, hour: int, minute: int) -> float | None:
        """A date in numbers, near to now where it has no year; None if there is no such date."""
        return self._nearest(year, month, day, hour, minute, 0, None, ahead=True)

    def _resolve(self, text: str, *, ahead: bool) -> float | None:
        text = text.strip()
        match = _NAMED.fullmatch(text)
        if match is not None:
            weekday, name, day, hour, minute, second, year = match.groups()
            month = _MONTHS.get(name, 0)
        else:
            match = _NUMBERED.fullmatch(text)
            if match is None:
                return None
            year, number, day, hour, minute, second = match.groups()
            weekday, month = None, int(number)
        return self._nearest(
            int(year) if year else None, month, int(day), int(hour), int(minute), int(second or 0),
            _WEEKDAYS[weekday] if weekday else None, ahead=ahead,
        )  # fmt: skip

    def _nearest(
        self, year: int | None, month: int, day: int, hour: int, minute: int, second: int,
        weekday: int | None, *, ahead: bool,
    ) -> float | None:  # fmt: skip
        years = [year] if year is not None else range(self._year + 1, self._year - _YEARS_BACK - 1, -1)
        found: list[tuple[float, bool]] = []
        for candidate in years:
            try:
                moment = datetime.datetime(candidate, month, day, hour, minute, min(second, 59))
            except (ValueError, OverflowError):
                continue
            fits = weekday is None or moment.weekday() == weekday
            found.append((float(calendar.timegm(moment.timetuple())), fits))
        if year is None:
            self.until = min(self.until, self._turn([at for at, _ in found], ahead=ahead))
        if not found:
            return None
        if not ahead and year is None:
            found = [(at, fits) for at, fits in found if at <= self.now + _DAY]
        if any(fits for _, fits in found):
            found = [(at, fits) for at, fits in found if fits]
        if ahead:
            return min((at for at, _ in found), key=lambda at: abs(at - self.now), default=None)
        return max((at for at, _ in found), default=None)

    def _turn(self, moments: list[float], *, ahead: bool) -> float:
        """From when on another of a date's moments may be meant, or other years are tried."""
        if ahead:
            # Between any two of them: which ones fit a weekday is not asked here.
            turns = [(one + other) / 2 for one in moments for other in moments if one < other]
        else:
            turns = [at - _DAY for at in moments]
        new_year = float(calendar.timegm((self._year + 1, 1, 1, 0, 0, 0)))
        return min([new_year, *(at for at in turns if at > self.now)])


_LIMIT = re.compile(r"([0-9]{1,12}(?:\.[0-9]+)?)(?: min\b)?(?:/| of |$)")
_CLOCK = re.compile(r"([0-9]{1,9}):([0-9]{2})(?::([0-9]{2}))?")


def run_limit(text: str) -> float | None:
    """Seconds of ``10.0 min of hostA``, ``3.0/hostA``, ``1:30`` or ``00:03:00``; None: no limit."""
    text = text.strip()
    match = _CLOCK.fullmatch(text)
    if match is not None:
        first, second, third = (int(part) if part else None for part in match.groups())
        assert first is not None and second is not None
        return float(first * 3600 + second * 60 + (third or 0))
    match = _LIMIT.match(text)
    return float(match.group(1)) * 60.0 if match is not None else None


_RUN_TIME = re.compile(r"([0-9]{1,9}) second")


def run_time(text: str) -> float | None:
    """Seconds of ``83 second(s)``; None for what is no such count."""
    match = _RUN_TIME.match(text.strip())
    return float(match.group(1)) if match is not None else None


_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)\s*([KMGTPEkmgtpe]?)(?:i?[Bb](?:ytes)?)?")


def size(text: str, unit: str = "M") -> int:
    """Bytes of ``24105M``, ``94.2G``, ``512`` (in ``unit``); 0 for what is no size.

    What is larger than any host's (:data:`LARGEST`) is that large.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return 0
    found = float(match.group(1)) * 1024 ** (" KMGTPE".index((match.group(2) or unit).upper()))
    return int(min(found, LARGEST))


_SHARE = re.compile(r"([0-9]{1,9})\*(.+)")


def hosts(text: str) -> tuple[tuple[str, int], ...]:
    """``h1:h1:h2`` (once a slot) or ``2*h1:h2``: each host with its slots, in order."""
    if not text or text == "-":
        return ()
    counts: dict[str, int] = {}
    for part in text.split(":"):
        match = _SHARE.fullmatch(part)
        name, count = (match.group(2), int(match.group(1))) if match is not None else (part, 1)
        if name:
            counts[name] = counts.get(name, 0) + count
    return tuple(counts.items())


def integer(text: str, default: int = 0) -> int:
    """A whole number; ``default`` for ``-``, "" and what is no number."""
    try:
        found = float(text)
    except ValueError:
        return default
    return int(found) if -LARGEST <= found <= LARGEST else default
