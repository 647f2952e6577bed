"""Slurm's values as the versions write them: one tolerant accessor for each kind.

22.05 writes plain numbers and one word for a state; from 23.02 on numbers may be
``{"set": true, "infinite": false, "number": 5}`` and states lists. "Not set" and "infinite" also
come as numbers (NO_VAL, INFINITE) or null.
"""

from __future__ import annotations

import math
from typing import Any

#: NO_VAL and INFINITE as 32 and 64 bit numbers (slurm.h).
_UNSET = frozenset({0xFFFFFFFE, 0xFFFFFFFFFFFFFFFE})
_LAST = 0xFFFFFFFF
_INFINITE = frozenset({_LAST, 0xFFFFFFFFFFFFFFFF})
#: Digits of a number that is one of something.
_DIGITS = 25
_NULL_WORDS = frozenset({"", "(null)", "N/A", "None", "NONE", "Unknown", "n/a"})


def number(value: Any) -> float | None:
    """A number: None when it is not set, ``math.inf`` when it is infinite."""
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, int):
        if value in _UNSET:
            return None
        return math.inf if value in _INFINITE else value
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, dict):
        if value.get("infinite"):
            return math.inf
        if not value.get("set", True):
            return None
        return number(value.get("number"))
    if isinstance(value, str):
        text = value.strip()
        if text.upper() in ("UNLIMITED", "INFINITE"):
            return math.inf
        try:
            # Longer ones are numbers of nothing, and would not fit into a float.
            return number(int(text)) if len(text) <= _DIGITS else None
        except ValueError:
            return None
    return None


def integer(value: Any, default: int = 0) -> int:
    """A whole number; ``default`` when it is not set or infinite."""
    if type(value) is int and value < 0xFFFFFFFE:
        return value
    found = number(value)
    return default if found is None or math.isinf(found) else int(found)


def seconds(value: Any) -> float | None:
    """A point in time (seconds since the epoch); None when it is not set. 0 means not set."""
    if type(value) is int and 0 < value < 0xFFFFFFFE:
        return float(value)
    found = number(value)
    return None if not found or math.isinf(found) else float(found)


def begin(value: Any) -> float | None:
    """As :func:`seconds` for the earliest start, of which the number for infinite is a moment, too."""
    return float(_LAST) if number(value) == math.inf else seconds(value)


def words(value: Any) -> tuple[str, ...]:
    """States and flags, upper case: from ``"idle"``, ``"IDLE+DRAIN"``, ``["IDLE", "DRAIN"]`` or null."""
    if isinstance(value, str):
        return tuple(word for word in value.upper().replace("+", " ").split() if word)
    if isinstance(value, (list, tuple)):
        return tuple(word for item in value if isinstance(item, str) for word in words(item))
    return ()


def text(value: Any) -> str:
    """Text; "" for null and for Slurm's words for nothing."""
    if not isinstance(value, str) or value in _NULL_WORDS:
        return ""
    return value


def names(value: Any) -> tuple[str, ...]:
    """A list of names, from a list or from text with commas."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if text(part.strip()))
    if isinstance(value, (list, tuple)):
        return tuple(item for item in value if isinstance(item, str) and item)
    return ()


def minutes_text(value: str) -> float | None:
    """Seconds of ``1-02:03:04``, ``02:03:04``, ``30`` (minutes) or ``UNLIMITED``; None if unset."""
    value = value.strip()
    if value.upper() in ("UNLIMITED", "INFINITE"):
        return math.inf
    if not value or not value[0].isdigit() or len(value) > 4 * _DIGITS:
        return None
    days, dash, rest = value.partition("-")
    try:
        fields = [int(part) for part in (rest if dash else days).split(":")]
        whole = int(days) * 86400 if dash else 0
    except ValueError:
        return None
    if len(fields) > 3:
        return None
    if dash:
        fields += [0] * (3 - len(fields))
        return float(whole + fields[0] * 3600 + fields[1] * 60 + fields[2])
    if len(fields) == 3:
        return float(fields[0] * 3600 + fields[1] * 60 + fields[2])
    if len(fields) == 2:
        return float(fields[0] * 60 + fields[1])
    return float(fields[0] * 60)


def exit_code(value: Any) -> int | None:
    """An exit status as a shell shows it: the return code, or 128 + the signal that ended it.

    22.05 writes the raw wait status; later versions an object.
    """
    if isinstance(value, dict) and ("return_code" in value or "signal" in value or "status" in value):
        signal = value.get("signal")
        number_of_signal = integer(
            signal.get("id", signal.get("signal_id")) if isinstance(signal, dict) else signal
        )
        return 128 + number_of_signal if number_of_signal else integer(value.get("return_code"))
    if number(value) is None:
        return None
    status = integer(value)
    return 128 + (status & 0x7F) if status & 0x7F else status >> 8
