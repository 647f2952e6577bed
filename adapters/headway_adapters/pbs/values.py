"""PBS's values as its versions write them: one tolerant accessor for each kind.

``qstat -F json`` writes what looks like a number as a number, whatever it is (a job named ``007`` is
7 there), the text form writes all as text, and Torque's XML writes points in time as seconds.

Users write many of them, so no value makes an accessor fail: what is larger than anything that there
is (:data:`LARGEST`) counts as none.
"""

from __future__ import annotations

import calendar
import math
import re
from functools import lru_cache
from typing import Any

#: No amount, size or time is larger than this; it is exact as a float, and sums of many still have 64 bits.
LARGEST = 1 << 53
_SIZE = re.compile(r"([0-9]{1,19}(?:\.[0-9]{1,19})?)([kmgtpe]?)([bw]?)", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?[0-9]{1,15}(?:\.[0-9]{1,19})?")
_SECONDS = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,19})?")
_MONTHS = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), start=1
    )
}
#: Bytes of a word.
_WORD = 8


def text(value: Any) -> str:
    """Text; a number as it would be written."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, (dict, list)):
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e18:
        return str(int(value))
    return str(value)


def integer(value: Any, default: int = 0) -> int:
    """A whole number; ``default`` for what is none."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return int(value) if -LARGEST <= value <= LARGEST else default
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        # What is blank for strip() need not be for float().
        return int(float(value.strip()))
    return default


def truth(value: Any, default: bool = False) -> bool:
    """``True``, ``true``, ``t``, ``1`` and their opposites."""
    word = text(value).strip().lower()
    if word in ("true", "t", "yes", "y", "1"):
        return True
    if word in ("false", "f", "no", "n", "0"):
        return False
    return default


def size(value: Any) -> int | None:
    """Bytes of ``4gb``, ``4692kb``, ``100`` (bytes) or ``1mw`` (words of 8 bytes); None for anything else."""
    if type(value) is int:
        return value if 0 <= value <= LARGEST else None
    match = _SIZE.fullmatch(text(value).strip())
    if match is None:
        return None
    amount = float(match.group(1)) if "." in match.group(1) else int(match.group(1))
    power = " kmgtpe".index(match.group(2).lower() or " ")
    found = math.ceil(amount * 1024**power * (_WORD if match.group(3).lower() == "w" else 1))
    return found if found <= LARGEST else None


def duration(value: Any) -> float | None:
    """Seconds of ``HH:MM:SS`` (hours may pass 24), ``MM:SS`` or a number of seconds."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value) if 0 <= value <= LARGEST else None
    return _duration(text(value))


@lru_cache(maxsize=4096)
def _duration(written: str) -> float | None:
    total = 0.0
    fields = written.strip().split(":")
    if len(fields) > 4:
        return None
    if len(fields) == 4:
        # Torque also writes days.
        fields = [str(integer(fields[0]) * 24 + integer(fields[1])), *fields[2:]]
    for field in fields:
        if _SECONDS.fullmatch(field) is None:
            return None
        total = total * 60 + float(field)
    return total


def when(value: Any) -> float | None:
    """A point in time as if it were written in UTC: ``Sat Nov 21 06:32:28 2026``, or seconds."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value) if 0 < value < 1e11 else None
    return _when(text(value))


@lru_cache(maxsize=65536)
def _when(written: str) -> float | None:
    written = written.strip()
    if written.isdecimal() and written.isascii():
        return float(written) if 0 < float(written) < 1e11 else None
    fields = written.split()
    try:
        if len(fields) > 5:
            # A zone stands before the year where the host is configured so.
            fields = [*fields[:4], fields[-1]]
        _, month, day, moment, year = fields
        hour, minute, second = moment.split(":")
        numbers = (int(year), _MONTHS[month], int(day), int(hour), int(minute), int(second))
        return float(calendar.timegm((*numbers, 0, 0, 0)))
    except (ValueError, KeyError, OverflowError):
        return None


def hms(seconds: float) -> str:
    """``HH:MM:SS``, seconds rounded up."""
    whole = math.ceil(seconds - 1e-9)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"
