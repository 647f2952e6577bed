"""Durations as people write them, as seconds."""

from __future__ import annotations

import re
from typing import Any

_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?")

EXPECTED = "a time such as 30m, 1h30m, 2d or 45 (seconds), with the longer unit first"


def seconds_of(text: str) -> int | None:
    """``30m``, ``1h30m``, ``2d``, ``45`` (seconds) as seconds; None if it is no duration."""
    found = _DURATION.fullmatch(text.strip().lower())
    if found is None or not any(found.groups()):
        return None
    return sum(int(n) * unit for n, unit in zip(found.groups(), _UNITS.values(), strict=True) if n)


def as_seconds(value: Any) -> Any:
    """For options: a duration as people write it, or a number of seconds as it is; ValueError for others."""
    if isinstance(value, str):
        seconds = seconds_of(value)
        if seconds is None:
            raise ValueError(EXPECTED)
        return seconds
    if isinstance(value, bool):
        raise ValueError(EXPECTED)
    return value
