"""Amounts of data as people write them."""

from __future__ import annotations

import re
from typing import Annotated, Any

import pydantic

_UNITS = {
    unit: base**power
    for base, ending in ((1000, "B"), (1024, "iB"))
    for power, prefix in enumerate(("", "k", "M", "G", "T", "P"))
    if (unit := f"{prefix}{ending}") != "iB"
}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kKMGTP]?i?B)?")
EXPECTED = "an amount such as 200GB, 1.5TB, 512MiB or 1000 (bytes)"
EXPECTED_RATE = "a rate such as 125MB/s or 1GB/s"


def bytes_of(text: str) -> float | None:
    """``200GB``, ``512MiB``, ``1000`` (bytes) as bytes; None if it is no amount of data."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        return None
    unit = (found[2] or "B").replace("K", "k")
    return float(found[1]) * _UNITS[unit] if unit in _UNITS else None


def said_bytes(size: float) -> str:
    """An amount of data for a person, such as ``1.5 TB``: three digits, or all bytes below 1 kB."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(size) < 999.5:
            return f"{size:.0f} B" if unit == "B" else f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.0f} PB" if size >= 99.5 else f"{size:.3g} PB"


def _as_bytes(value: Any) -> Any:
    if isinstance(value, str):
        size = bytes_of(value)
        if size is None:
            raise ValueError(EXPECTED)
        return round(size)
    if isinstance(value, bool):
        raise ValueError(EXPECTED)
    return value


def _as_rate(value: Any) -> Any:
    if isinstance(value, str):
        amount, slash, per = value.partition("/")
        size = bytes_of(amount) if not slash or per.strip() == "s" else None
        if size is None:
            raise ValueError(EXPECTED_RATE)
        return size
    if isinstance(value, bool):
        raise ValueError(EXPECTED_RATE)
    return value


#: An option in bytes.
Bytes = Annotated[int, pydantic.BeforeValidator(_as_bytes), pydantic.Field(ge=0)]
#: An option in bytes a second.
ByteRate = Annotated[float, pydantic.BeforeValidator(_as_rate), pydantic.Field(ge=0, allow_inf_nan=False)]
