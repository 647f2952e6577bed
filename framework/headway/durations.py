"""Durations as people write them."""

from __future__ import annotations

import re

_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?")

EXPECTED = "a time such as 30m, 1h30m, 2d or 45 (seconds), the longer unit first"


def seconds_of(text: str) -> int | None:
    """``30m``, ``1h30m``, ``2d``, ``45`` (seconds) as seconds; None if it is no duration."""
    found = _DURATION.fullmatch(text.strip().lower())
    if found is None or not any(found.groups()):
        return None
    return sum(int(n) * unit for n, unit in zip(found.groups(), _UNITS.values(), strict=True) if n)
