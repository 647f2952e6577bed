"""Windows that repeat: on which days, from when until when, in a time zone.

A window belongs to the day on which it begins. Decisions on what clocks do to it:

- ``to`` is a time of day, on the same day or, if it is not later, on the next; ``for`` is so long in real
  seconds, whatever the clocks do meanwhile.
- What is to begin at a time that a clock leaves out in spring begins an hour later by that clock, or, if it
  would be over by then, when the clock is put on; of two moments with the same time in autumn a window begins
  with the first and ends with the second.
"""

from __future__ import annotations

import datetime
import re
import zoneinfo
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal

import pydantic

from headway.errors import nearest
from headway.inputs.durations import WholeSeconds

_INF = float("inf")
#: Windows are looked for so far ahead, in seconds.
_AHEAD = 400 * 86400.0
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_CLOCK = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")
_DAY = datetime.timedelta(days=1)
#: No window is longer.
_LONGEST = 60


def as_date(value: Any) -> Any:
    """YAML reads dates by itself; text is a date as ISO 8601 has it."""
    if isinstance(value, str):
        try:
            return datetime.date.fromisoformat(value)
        except ValueError:
            raise ValueError(f"a date such as 2026-12-25, found {value!r}") from None
    if isinstance(value, datetime.datetime) or not isinstance(value, datetime.date):
        raise ValueError(f"a date such as 2026-12-25, found {value!r}")
    return value


Date = Annotated[datetime.date, pydantic.BeforeValidator(as_date)]


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _as_words(value: Any) -> Any:
    words = _as_list(value)
    return [word.isoformat() if isinstance(word, datetime.date) else word for word in words]


#: A date, or several, under one name.
Dates = Annotated[list[Date], pydantic.BeforeValidator(_as_list), pydantic.Field(min_length=1)]
#: Days of the week, dates, or names of dates.
Words = Annotated[list[str], pydantic.BeforeValidator(_as_words)]


class Window(pydantic.BaseModel):
    """An entry of the calendar."""

    model_config = pydantic.ConfigDict(extra="forbid", populate_by_name=True)

    begin: str = pydantic.Field(default="00:00", alias="from", description="time of day, in quotes")
    end: str | None = pydantic.Field(default=None, alias="to", description="time of day, in quotes")
    length: WholeSeconds | None = pydantic.Field(
        default=None, alias="for", description="length, instead of to"
    )
    days: Words = pydantic.Field(
        default=list(DAYS),
        min_length=1,
        description="mon ... sun, dates, names of holidays, or holidays for all of them",
    )
    nth: list[Literal[1, 2, 3, 4, 5]] | None = pydantic.Field(
        default=None,
        min_length=1,
        description="only the first, second, ... of these weekdays in a month",
    )
    without: Words = pydantic.Field(
        default=[], alias="except", description="days on which the window does not begin"
    )
    pool: str | None = pydantic.Field(
        default=None, min_length=1, description="the pool that is kept free (default: all)"
    )
    nodes: list[str] = pydantic.Field(
        default=[], description="the nodes that are kept free (default: all of the pool)"
    )
    processors: int | None = pydantic.Field(
        default=None,
        ge=1,
        description="number of processors that are kept free, in a pool without nodes (default: all)",
    )
    users: list[str] = pydantic.Field(
        default=[],
        description="users whose jobs may run in the window, if the job names the window's reservation",
    )
    accounts: list[str] = pydantic.Field(
        default=[], description="accounts whose jobs may run in the window, in the same way"
    )

    @pydantic.field_validator("begin", "end", mode="before")
    @classmethod
    def _clock(cls, value: Any) -> Any:
        if isinstance(value, int):
            # YAML reads 17:30 as a number to the base of 60.
            clock = f"{value // 60:02d}:{value % 60:02d}" if 60 <= value < 1440 else "08:00"
            raise ValueError(f'a time of day in quotes, such as "{clock}", found the number {value}')
        if isinstance(value, str) and _CLOCK.fullmatch(value) is None:
            raise ValueError(f"a time of day such as '08:00', found {value!r}")
        return value

    @pydantic.model_validator(mode="after")
    def _one_end(self) -> Window:
        if (self.end is None) == (self.length is None):
            raise ValueError("either to or for, found " + ("neither" if self.end is None else "both"))
        if self.length is not None and self.length > _LONGEST * 86400:
            raise ValueError(f"for: at most {_LONGEST}d, found {self.length} s")
        return self

    def check(self, holidays: Mapping[str, list[datetime.date]]) -> None:
        """Raise ValueError for a day that nothing is called by."""
        for word in (*self.days, *self.without):
            if word not in (*DAYS, "holidays", *holidays) and not _is_date(word):
                hint = nearest(word, (*DAYS, "holidays", *holidays))
                raise ValueError(
                    f"days: a day of the week, a date or the name of a holiday, found {word!r}.{hint}"
                )

    def begins_on(self, day: datetime.date, holidays: Mapping[str, list[datetime.date]]) -> bool:
        """Whether it does so on this day."""
        return self._is_among(day, self.days, holidays, self.nth) and not self._is_among(
            day, self.without, holidays, None
        )

    @staticmethod
    def _is_among(
        day: datetime.date,
        words: list[str],
        holidays: Mapping[str, list[datetime.date]],
        nth: list[Any] | None,
    ) -> bool:
        for word in words:
            if word in DAYS:
                if DAYS[day.weekday()] == word and (nth is None or (day.day - 1) // 7 + 1 in nth):
                    return True
            elif word == "holidays" and "holidays" not in holidays:
                if any(day in dates for dates in holidays.values()):
                    return True
            elif day in holidays.get(word, ()) or day.isoformat() == word:
                return True
        return False

    def occurrences(
        self, since: float, until: float, zone: zoneinfo.ZoneInfo, holidays: Mapping[str, list[datetime.date]]
    ) -> Iterator[tuple[float, float]]:
        """``(begin, end)`` of each that ends after ``since`` and begins before ``until``, by time; seconds
        since the epoch."""
        first = datetime.datetime.fromtimestamp(since, zone).date()
        day = first - _DAY * (_LONGEST + 1 if self.length is not None else 2)
        last = datetime.datetime.fromtimestamp(until, zone).date()
        while day <= last:
            if self.begins_on(day, holidays):
                begin, end = self._on(day, zone)
                if since < end and begin < until and begin < end:
                    yield begin, end
            day += _DAY

    def _on(self, day: datetime.date, zone: zoneinfo.ZoneInfo) -> tuple[float, float]:
        begin = _moment(day, self.begin, zone, fold=0)
        if self.end is None:
            return begin, begin + (self.length or 0)
        over_midnight = _minutes(self.end) <= _minutes(self.begin)
        end = _moment(day + _DAY if over_midnight else day, self.end, zone, fold=1)
        # An hour later it may be over: what there is of it begins as the clock is put on.
        return (begin if begin < end else _put_on(begin, zone)), end


def around(
    windows: Iterable[Window],
    since: float,
    zone: zoneinfo.ZoneInfo,
    holidays: Mapping[str, list[datetime.date]],
) -> tuple[float | None, float]:
    """``(end, next)``: when the window ends in which this moment is (None: it is in none), and when the next
    one begins; seconds since the epoch, infinite: not within about a year. Windows without a gap count as
    one."""
    found = sorted(
        occurrence
        for window in windows
        for occurrence in window.occurrences(since, since + _AHEAD, zone, holidays)
    )
    end: float | None = None
    for begin, until in found:
        if begin > (since if end is None else end):
            return end, begin
        end = until if end is None else max(end, until)
    return (_INF if end is not None and end >= since + _AHEAD else end), _INF


def _is_date(word: str) -> bool:
    try:
        datetime.date.fromisoformat(word)
    except ValueError:
        return False
    return True


def _minutes(clock: str) -> int:
    hours, _, minutes = clock.partition(":")
    return int(hours) * 60 + int(minutes)


def _moment(day: datetime.date, clock: str, zone: zoneinfo.ZoneInfo, *, fold: int) -> float:
    time = datetime.time(*divmod(_minutes(clock), 60), fold=fold)
    local = datetime.datetime.combine(day, time, zone)
    if fold and local.utcoffset() != local.replace(fold=0).utcoffset():
        there = datetime.datetime.fromtimestamp(local.timestamp(), zone)
        if there.time().replace(fold=0) != time.replace(fold=0):
            # A time that the clock leaves out.
            local = local.replace(fold=0)
    return local.timestamp()


def _put_on(time: float, zone: zoneinfo.ZoneInfo) -> float:
    """The last whole second up to ``time`` with which the clock of a zone was put on, within a day."""
    offset = datetime.datetime.fromtimestamp(time, zone).utcoffset()
    before, after = int(time) - 86400, int(time)
    while after - before > 1:
        middle = (before + after) // 2
        if datetime.datetime.fromtimestamp(middle, zone).utcoffset() == offset:
            after = middle
        else:
            before = middle
    return float(after)
