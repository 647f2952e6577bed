"""PBS's times: ``dedicated_time`` and ``holidays``, and the queues whose names go by them.

After the PBS Professional administrator's guide, "Using Primetime and Holidays" and "Using Dedicated Time",
and what OpenPBS makes of the files (``prime.cpp``, ``dedtime.cpp``).

- Dedicated time becomes a window of the plugin ``calendar``. PBS runs jobs of queues with
  ``dedicated_prefix`` in it and at no other time; such queues are not headway's.
- Prime time becomes windows of the plugin ``pool-hours`` for the queues with ``primetime_prefix`` and
  ``nonprimetime_prefix``. A holiday has none, a day of which no line speaks nothing else, and where no year
  is said it is prime time always.
"""

from __future__ import annotations

import datetime
import re
import zoneinfo
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headway_adapters.site_import.found import Imported, Line, shown

DAY = re.compile(
    r"\d+\s+\S+.*|(?:weekday|monday|tuesday|wednesday|thursday|friday|saturday|sunday)\s.*|YEAR\s.*|"
    r"HOLIDAYFILE_VERSION1",
    re.IGNORECASE,
)
_STAMP = r"(\d{1,2})/(\d{1,2})/(\d{2}|\d{4})\s+(\d{1,2}):(\d{1,2})"
DEDICATED = re.compile(rf"{_STAMP}\s+{_STAMP}(?:\s.*)?")
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
#: No window is longer, in days.
_LONGEST = 60
#: When prime time begins and ends on a day: parts of it as ``(from, to)``; the second midnight ends it.
_Hours = tuple[tuple[str, str], ...]
_ALL: _Hours = (("00:00", "00:00"),)


@dataclass
class Times:
    """What both files say."""

    dedicated: list[tuple[datetime.datetime, datetime.datetime, Line]] = field(default_factory=list)
    year: int = 0
    holidays: list[tuple[int, str, Line]] = field(default_factory=list)
    #: Day of the week -> prime time, and where that is said.
    prime: dict[str, tuple[_Hours, Line]] = field(default_factory=dict)
    #: The first line of each file.
    first: dict[str, Line] = field(default_factory=dict)


def read_dedicated(lines: Iterable[Line], times: Times, found: Imported) -> None:
    """Lines ``MM/DD/YYYY HH:MM MM/DD/YYYY HH:MM``."""
    for line in lines:
        times.first.setdefault("dedicated", line)
        match = DEDICATED.fullmatch(line.text.strip())
        ends = match and [_moment(match.groups()[at : at + 5]) for at in (0, 5)]
        if not ends or ends[0] is None or ends[1] is None:
            found.broken(line, f"expected MM/DD/YYYY HH:MM MM/DD/YYYY HH:MM, found {shown(line.text)}")
        elif ends[1] <= ends[0]:
            found.broken(line, f"expected an end after the beginning, found {shown(line.text)}")
        elif ends[1] - ends[0] > datetime.timedelta(days=_LONGEST):
            found.leave(
                line, f"{line.text.strip()} is not carried over: a window has at most {_LONGEST} days"
            )
        else:
            times.dedicated.append((ends[0], ends[1], line))


def _moment(parts: Sequence[str]) -> datetime.datetime | None:
    month, day, year, hour, minute = map(int, parts)
    if year < 100:
        year += 2000 if year < 90 else 1900
    try:
        return datetime.datetime(year, month, day, hour, minute)
    except ValueError:
        return None


def read_holidays(lines: Iterable[Line], times: Times, found: Imported) -> None:
    """Lines ``YEAR 2026``, ``weekday 0600 1730``, ``359 Dec 25 Christmas Day``."""
    for line in lines:
        times.first.setdefault("holidays", line)
        words = line.text.split()
        head = words[0].lower()
        if DAY.fullmatch(line.text.strip()) is None:
            found.broken(
                line, f"expected YEAR, a day of the week or a day of the year, found {shown(line.text)}"
            )
        elif head == "year":
            if re.fullmatch(r"(19|20|21)\d\d", words[1]) is None:
                found.broken(line, f"YEAR: expected a year such as 2026, found {shown(words[1])}")
            else:
                times.year = int(words[1])
        elif head.isdecimal():
            if len(head) > 3 or not 1 <= int(head) <= 366:
                found.broken(line, f"expected a day of the year from 1 to 366, found {shown(words[0])}")
            else:
                times.holidays.append((int(head), " ".join(words[3:]) or f"day-{head}", line))
        elif head != "holidayfile_version1":
            hours = _hours(words[1:])
            if hours is None:
                found.broken(
                    line,
                    f"{head}: expected when prime time begins and ends, as HHMM, all or none, found "
                    f"{shown(line.text)}",
                )
                continue
            for day in _DAYS[:5] if head == "weekday" else (head,):
                times.prime[day] = hours, line


def _hours(words: Sequence[str]) -> _Hours | None:
    """Prime time of a day of which ``words`` are the beginnings of prime and of other time."""
    if len(words) < 2:
        return None
    prime, other = words[0].lower(), words[1].lower()
    for word in (prime, other):
        if word not in ("all", "none") and (
            re.fullmatch(r"\d{3,4}", word) is None or int(word) % 100 > 59 or int(word) > 2359
        ):
            return None
    if prime == "all" or (prime == "none" and other == "none"):
        return _ALL
    if other == "all" or prime == "none":
        return ()
    if other == "none":
        return _ALL
    begins, ends = (f"{int(word) // 100:02d}:{int(word) % 100:02d}" for word in (prime, other))
    if begins < ends:
        return ((begins, ends),)
    return ((begins, "00:00"), *((("00:00", ends),) if ends != "00:00" else ()))


# ---------------------------------------------------------------------- what it means


def carry(
    times: Times, queues: Mapping[str, Line], prefixes: Mapping[str, str], zone: str | None, found: Imported
) -> set[str]:
    """Write down the windows; the queues that headway is not to serve.

    ``prefixes``: by ``dedicated``, ``prime`` and ``nonprime``."""
    holidays = _dates(times, found)
    about: dict[str, Any] = {"zone": zone or "UTC"}
    named = {key: [name for name in queues if name.startswith(prefix)] for key, prefix in prefixes.items()}
    windows = _dedicated(times, zone, found)
    used = set()
    if windows:
        found.plugins["calendar"] = {**about, "windows": windows}
        used.add("dedicated")
    for name in named["dedicated"]:
        found.leave(
            queues[name],
            f"queue {name} is left out: in PBS its jobs run only in dedicated time, which headway does not "
            "have; run them by hand (qrun)",
        )
    if _prime(times, named, about | ({"holidays": holidays} if holidays else {}), queues, found):
        used.add("holidays")
    if zone is None:
        for kind in sorted(used):
            found.leave(
                times.first[kind], "the files name no time zone: UTC is written, set yours as `zone` (--zone)"
            )
    return set(named["dedicated"])


def _dedicated(times: Times, zone: str | None, found: Imported) -> dict[str, Any]:
    windows: dict[str, Any] = {}
    place = zoneinfo.ZoneInfo(zone or "UTC")
    for begin, end, line in times.dedicated:
        # Of two moments with one time it ends with the second, as windows do.
        last = max(end.replace(tzinfo=place, fold=fold).timestamp() for fold in (0, 1))
        length = last - begin.replace(tzinfo=place).timestamp()
        if not 0 < length <= _LONGEST * 86400:
            found.leave(
                line,
                f"{line.text.strip()} is not carried over: by the clocks of {place} it takes {length:.0f} s, "
                f"and a window has at most {_LONGEST} days",
            )
            continue
        name = name_of(f"dedicated-{begin:%Y-%m-%d}", windows)
        windows[name] = {"days": [begin.date().isoformat()], "from": f"{begin:%H:%M}", "for": round(length)}
    return windows


def name_of(text: str, taken: Iterable[str]) -> str:
    """A name for a window or a holiday that is not taken, of what a name may have."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[:30] or "x"
    if not plain[0].isalpha():
        plain = f"d-{plain}"
    numbers = (f"{plain}-{number}" for number in range(2, 1_000_000))
    return plain if plain not in taken else next(name for name in numbers if name not in taken)


def _dates(times: Times, found: Imported) -> dict[str, str]:
    dates: dict[str, str] = {}
    for day, name, line in times.holidays:
        if not times.year:
            found.leave(
                line, f"{line.text.strip()} is not carried over: without a line YEAR it is prime time always"
            )
            continue
        date = datetime.date(times.year, 1, 1) + datetime.timedelta(days=day - 1)
        if date.year != times.year:
            found.broken(line, f"expected a day of {times.year}, found {shown(line.text)}")
            continue
        # The word "holidays" of a window stands for all of them only where none is called so.
        dates[name_of(name.lower(), (*dates, "holidays"))] = date.isoformat()
    return dates


def _prime(
    times: Times, named: Mapping[str, Sequence[str]], about: dict[str, Any], queues: Mapping[str, Line],
    found: Imported,
) -> bool:  # fmt: skip
    """Write prime time down, if there are queues that go by it."""
    if not named["prime"] and not named["nonprime"]:
        for line in dict.fromkeys(line for _, line in times.prime.values()):
            found.leave(
                line,
                f"{line.text.strip()} is not carried over: no queue is for prime time or non-prime time "
                "(in headway, values of sched_config hold at all times)",
            )
        return False
    windows: dict[str, Any] = {}
    if times.year:
        said = {day: times.prime[day][0] if day in times.prime else _ALL for day in _DAYS}
        for part in dict.fromkeys(part for hours in said.values() for part in hours):
            window: dict[str, Any] = {"from": part[0], "to": part[1]}
            window["days"] = [day[:3] for day in _DAYS if part in said[day]]
            if "holidays" in about:
                window["except"] = ["holidays"]
            windows[name_of("prime", windows)] = window
    if not windows:
        why = "there is no prime time" if times.year else "no line YEAR says when prime time is"
        for name in (*named["prime"], *named["nonprime"]):
            found.leave(queues[name], f"queue {name} has no hours: {why}")
        return False
    options = {**about, "windows": windows}
    for key, kind in (("open", "prime"), ("closed", "nonprime")):
        if named[kind]:
            options[key] = {name: list(windows) for name in named[kind]}
    found.plugins["pool-hours"] = options
    if times.holidays:
        found.leave(
            times.holidays[0][2], f"the holidays are of {times.year} only: add the next year's to holidays"
        )
    return True
