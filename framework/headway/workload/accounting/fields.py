"""Numbers and times as accounting has them. What is wrong is a :class:`UserError`, led by its place."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from headway.errors import UserError
from headway.workload.left_out import WholeFile

#: What runs for longer than a hundred years does not.
LONGEST = 100 * 366 * 86400.0
_THOUSANDS = re.compile(r"(\d{1,5}(?:\.\d{1,6})?)([KM])", re.ASCII)
_CLOCK = re.compile(r"(?:(\d{1,6})-)?(?:(\d{1,9}):)?(\d{1,9}):(\d{1,2})", re.ASCII)


def count(row: Mapping[str, str], names: Sequence[str], place: str) -> int:
    """A number from 0 on, of the first of the ``names`` that has a value; 0 if none has. Large ones may be
    counted in K or M, as Slurm does (1K is 1024)."""
    for name in names:
        if text := row.get(name, "").strip():
            if found := _THOUSANDS.fullmatch(text):
                return round(float(found[1]) * 1024 ** ("KM".index(found[2]) + 1))
            return number(text, name, place)
    return 0


def number(text: str, name: str, place: str) -> int:
    """A number from 0 on, below 10^9."""
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise UserError(f"{place}: {name}: expected a number from 0 on, found {text!r}")
    return int(text)


def seconds(text: str, name: str, place: str, most: float = LONGEST) -> float:
    """Whole seconds from 0 to ``most``."""
    text = text.strip()
    if not (text.isascii() and text.isdigit() and len(text) < 16) or int(text) > most:
        raise UserError(f"{place}: {name}: expected whole seconds from 0 on, found {text!r}")
    return float(text)


def moment(text: str, name: str, place: str, *, zoned: bool = False) -> float:
    """A time: seconds since 1970; or of the machine's zone, which counts as UTC, unless ``zoned``."""
    text = text.strip()
    if text.isascii() and text.isdigit() and len(text) < 16:
        return float(text)
    if zoned:
        raise WholeFile(
            f"{place}: {name}: expected seconds since 1970, as SLURM_TIME_FORMAT=%s has sacct write them, "
            f"found {text!r}, which says no time zone"
        )
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC).timestamp()
    except ValueError as error:
        raise UserError(
            f"{place}: {name}: expected a time such as 2026-11-22T09:30:00, found {text!r}"
        ) from error


def duration(text: str, name: str, place: str, *, least: float = 1) -> float:
    """Such as 1-12:00:00, 01:30:00, 05:00 (minutes and seconds) or 90 (seconds), from ``least`` seconds
    on."""
    found = _CLOCK.fullmatch(text.strip())
    if found is None:
        value = seconds(text, name, place)
    else:
        days, hours, minutes, rest = (int(part or 0) for part in found.groups())
        value = float(((days * 24 + hours) * 60 + minutes) * 60 + rest)
    if not least <= value <= LONGEST:
        bound = "above 0 s" if least else "such as 1-02:03:04"
        raise UserError(f"{place}: {name}: expected a time {bound}, found {text.strip()!r}")
    return value


def in_order(start: float, end: float, place: str) -> None:
    """Refuse an end before its start."""
    if end < start or not math.isfinite(end):
        raise UserError(f"{place}: expected an end from its start on, found {start - end:.0f} s before it")
