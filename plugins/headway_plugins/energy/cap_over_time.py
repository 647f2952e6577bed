"""The part of a power cap that follows the clock: windows of the day, and prices.

Windows are in the given time zone. Prices are a CSV file with a header and the columns ``time``
(ISO 8601, in that zone unless it says otherwise, or seconds since the epoch) and ``price``, in order of time.
Its path is relative to the configuration file. A price holds until the next price, the last price for ever.
"""

from __future__ import annotations

import csv
import datetime
import io
import math
import re
import zoneinfo
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pydantic

from headway.errors import UserError
from headway.inputs import text_of

_INF = float("inf")
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_CLOCK = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")
_DAY = 86400.0
#: Between two looks at the windows, though none seems to open or close: the zone's offset may change.
_OFTEN = 900.0


def _seconds(text: Any) -> float:
    """ "HH:MM" as seconds after midnight."""
    found = _CLOCK.fullmatch(str(text))
    if found is None:
        raise ValueError(f"a time of day such as '08:00', found {text!r}")
    return int(found[1]) * 3600.0 + int(found[2]) * 60.0


class Window(pydantic.BaseModel):
    """From a time of day to another, over midnight if it ends before it begins."""

    model_config = pydantic.ConfigDict(extra="forbid", populate_by_name=True)

    begin: str = pydantic.Field(alias="from")
    end: str = pydantic.Field(alias="to")
    days: list[str] = pydantic.Field(default=list(_DAYS), min_length=1)
    watts: float = pydantic.Field(gt=0)

    #: Seconds after midnight.
    _begin: float = pydantic.PrivateAttr(0.0)
    _end: float = pydantic.PrivateAttr(0.0)

    @pydantic.field_validator("begin", "end", mode="before")
    @classmethod
    def _quoted(cls, value: Any) -> Any:
        if isinstance(value, int):
            # YAML reads 17:30 as a number to the base of 60.
            clock = f"{value // 60:02d}:{value % 60:02d}" if 60 <= value < 1440 else "08:00"
            raise ValueError(f'a time of day in quotes, such as "{clock}", found the number {value}')
        return value

    @pydantic.field_validator("begin", "end")
    @classmethod
    def _clock(cls, value: str) -> str:
        _seconds(value)
        return value

    @pydantic.field_validator("days")
    @classmethod
    def _known(cls, value: list[str]) -> list[str]:
        for day in value:
            if day not in _DAYS:
                raise ValueError(f"days {', '.join(_DAYS)}, found {day!r}")
        return value

    def model_post_init(self, context: Any) -> None:
        self._begin, self._end = _seconds(self.begin), _seconds(self.end)

    @property
    def edges(self) -> tuple[float, float]:
        """Seconds after midnight at which it opens and closes."""
        return self._begin, self._end

    def holds(self, moment: datetime.datetime) -> bool:
        """Whether the window, named by the day on which it begins, is open at this local time."""
        now = moment.hour * 3600.0 + moment.minute * 60.0 + moment.second + moment.microsecond / 1e6
        if self._begin < self._end:
            return self._begin <= now < self._end and _DAYS[moment.weekday()] in self.days
        if now >= self._begin:
            return _DAYS[moment.weekday()] in self.days
        return now < self._end and _DAYS[moment.weekday() - 1] in self.days


class PriceCap(pydantic.BaseModel):
    """A cap that holds while the price is higher than this."""

    model_config = pydantic.ConfigDict(extra="forbid")

    above: float
    watts: float = pydantic.Field(gt=0)


class Prices(pydantic.BaseModel):
    """A price curve, and the caps that follow it."""

    model_config = pydantic.ConfigDict(extra="forbid")

    file: Path
    caps: list[PriceCap] = pydantic.Field(min_length=1)
    #: The file's text, as it was when the run began.
    _text: str = pydantic.PrivateAttr("")

    @pydantic.model_validator(mode="after")
    def _read(self, info: pydantic.ValidationInfo) -> Prices:
        beside = (info.context or {}).get("beside")
        path = beside / self.file if beside is not None else self.file
        try:
            self._text = text_of(self.file, info.context)
        except (OSError, UnicodeDecodeError) as error:
            problem = getattr(error, "strerror", None) or error
            raise UserError(f"plugin 'power-cap': prices: {path} cannot be read: {problem}") from error
        self.file = path
        return self

    @property
    def text(self) -> str:
        """The file's text."""
        return self._text


class CapOverTime:
    """The smallest cap of the windows that are open and of the price, at any moment (epoch seconds)."""

    def __init__(self, windows: Sequence[Window], prices: Prices | None, timezone: str) -> None:
        """Raises :class:`UserError` if the prices cannot be read or are wrong."""
        self._zone = zoneinfo.ZoneInfo(timezone)
        self._windows = windows
        self._caps = prices.caps if prices is not None else []
        self._prices = read_prices(prices.file, prices.text, self._zone) if prices is not None else []
        #: What is in force from when until when: nothing else holds in between.
        self._known = (_INF, -_INF, _INF)
        self._week = (-_INF, _INF)
        #: A local day, and when windows open or close on it and on the next.
        self._day: datetime.date | None = None
        self._day_edges: list[float] = []

    def at(self, moment: float) -> float:
        """Watts; infinity where neither a window nor a price says anything."""
        since, until, watts = self._known
        if since <= moment < until:
            return watts
        watts = self._in_force(moment)
        until = min(self.next_change(moment), moment - moment % _OFTEN + _OFTEN)
        self._known = (moment, until, watts)
        return watts

    def _in_force(self, moment: float) -> float:
        watts = _INF
        if self._windows:
            local = datetime.datetime.fromtimestamp(moment, self._zone)
            watts = min((w.watts for w in self._windows if w.holds(local)), default=_INF)
        index = bisect_right(self._prices, (moment, _INF)) - 1
        if index >= 0:
            price = self._prices[index][1]
            watts = min([watts, *(cap.watts for cap in self._caps if price > cap.above)])
        return watts

    def next_change(self, moment: float) -> float:
        """When a window opens or closes, or the price changes, next; infinity: never."""
        edges = self._edges(moment) if self._windows else []
        at = bisect_right(edges, moment)
        due = edges[at] if at < len(edges) else _INF
        index = bisect_right(self._prices, (moment, _INF))
        return min(due, self._prices[index][0]) if index < len(self._prices) else due

    def _edges(self, moment: float) -> list[float]:
        """When windows open or close on this local day and the next, in order."""
        today = datetime.datetime.fromtimestamp(moment, self._zone).date()
        if today != self._day:
            found = set()
            for day in (today, today + datetime.timedelta(days=1)):
                for window in self._windows:
                    for seconds in window.edges:
                        clock = datetime.time(int(seconds // 3600), int(seconds % 3600 // 60))
                        at = datetime.datetime.combine(day, clock, self._zone)
                        # In autumn there are two of the same time.
                        found |= {at.timestamp(), at.replace(fold=1).timestamp()}
            self._day, self._day_edges = today, sorted(found)
        return self._day_edges

    def highest(self, moment: float) -> float:
        """The highest cap of the week that begins at ``moment``; found anew once a day."""
        since, watts = self._week
        if since <= moment < since + _DAY:
            return watts
        watts, at = self._in_force(moment), self.next_change(moment)
        while at < moment + 8 * _DAY and watts != _INF:
            watts, at = max(watts, self._in_force(at)), self.next_change(at)
        self._week = (moment, watts)
        return watts


def read_prices(
    path: Path,
    text: str,
    zone: zoneinfo.ZoneInfo,
    column: str = "price",
    of: str = "plugin 'power-cap': prices",
) -> list[tuple[float, float]]:
    """``(seconds since the epoch, price)`` of a file's text, by time. Raises :class:`UserError`.

    ``column``: what has the values; ``of``: plugin and option, for messages."""
    try:
        rows = csv.DictReader(io.StringIO(text, newline=""))
        columns = rows.fieldnames or ()
        if not {"time", column} <= set(columns):
            found = ", ".join(columns) or "none"
            raise UserError(f"{path}, line 1: expected the columns time and {column}, found {found}")
        prices: list[tuple[float, float]] = []
        for row in rows:
            where = f"{path}, line {rows.line_num}"
            moment = _moment(row["time"], zone, where)
            price = _number(row[column])
            if price is None:
                raise UserError(f"{where}: expected a {column}, found {row[column]!r}")
            if prices and moment <= prices[-1][0]:
                raise UserError(f"{where}: expected times that rise, found {row['time']}")
            prices.append((moment, price))
    except csv.Error as error:
        raise UserError(f"{of}: {path} cannot be read: {error}") from error
    if not prices:
        raise UserError(f"{path}: expected prices, found none")
    return prices


def _number(text: str | None) -> float | None:
    """A finite number; None if it is none."""
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _moment(text: str | None, zone: zoneinfo.ZoneInfo, where: str) -> float:
    seconds = _number(text)
    if seconds is not None:
        return seconds
    try:
        moment = datetime.datetime.fromisoformat(text or "")
    except ValueError:
        raise UserError(f"{where}: expected a time (ISO 8601, or seconds), found {text!r}") from None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)).timestamp()
