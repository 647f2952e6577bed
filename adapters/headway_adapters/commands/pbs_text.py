"""How PBS writes things: attribute listings with folded lines, tables, sizes and times.

The forms follow the recorded outputs of OpenPBS 23.06.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from headway_adapters.commands.zone import Zone

#: Columns of an attribute line; a longer one goes on after a tab.
_WIDTH = 79
_UNITS = {"b": 1, "w": 8, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40, "pb": 1 << 50}
_SIZE = re.compile(r"([0-9]+)([kmgtp]?[bw])?$", re.IGNORECASE)


def attributes(record: Mapping[str, Any], indent: str = "    ", *, fold: bool = True) -> str:
    """Attributes, one on each line; entries of a resource map as ``Name.resource``; long lines folded."""
    lines = []
    width = _WIDTH if fold else 1 << 30
    for name, value in record.items():
        if name == "Variable_List" and isinstance(value, Mapping):
            escaped = (f"{key}={str(v).replace(',', chr(92) + ',')}" for key, v in value.items())
            lines.append(_listed(f"{indent}{name} = ", list(escaped), width))
        elif isinstance(value, Mapping):
            lines.extend(_folded(f"{indent}{name}.{key} = ", str(v), width) for key, v in value.items())
        elif isinstance(value, list | tuple):
            lines.append(_folded(f"{indent}{name} = ", ", ".join(map(str, value)), width))
        else:
            lines.append(_folded(f"{indent}{name} = ", str(value), width))
    return "".join(line + "\n" for line in lines)


def _folded(start: str, text: str, width: int) -> str:
    room = width - len(start)
    if len(text) <= room:
        return start + text
    parts = [text[:room]]
    rest = text[room:]
    # A tab counts for eight columns.
    while rest:
        parts.append(rest[: _WIDTH - 8])
        rest = rest[_WIDTH - 8 :]
    return start + "\n\t".join(parts)


def _listed(start: str, entries: Sequence[str], width: int) -> str:
    """Entries with commas, folded between two of them where that is possible."""
    text, column = start, len(start)
    for at, entry in enumerate(entries):
        word = entry + ("," if at + 1 < len(entries) else "")
        if at and column + len(word) > width:
            text, column = text + "\n\t", 9
        for letter in word:
            if column == width:
                text, column = text + "\n\t", 8
            text += letter
            column += 1
    return text


def clock(wall: float, zone: Zone) -> str:
    """``Sat Nov 21 06:32:28 2026``."""
    return time.asctime(zone.local(wall))


def duration(seconds: float) -> str:
    """``HH:MM:SS``; hours may pass 24."""
    whole = math.floor(seconds)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"


def seconds(text: str) -> float:
    """From ``[[HH:]MM:]SS[.fraction]``. Raises ValueError."""
    total = 0.0
    parts = text.split(":")
    if len(parts) > 3 or not all(parts):
        raise ValueError(text)
    for part in parts:
        if not re.fullmatch(r"[0-9]+(\.[0-9]*)?", part):
            raise ValueError(text)
        total = total * 60 + float(part)
    return total


def size(text: str) -> int:
    """Bytes of ``4gb``, ``512mb``, ``1024`` (bytes). Raises ValueError."""
    found = _SIZE.match(text)
    if found is None:
        raise ValueError(text)
    unit = (found.group(2) or "b").lower()
    factor = _UNITS.get(unit) or _UNITS[unit[0] + "b"] * 8
    return int(found.group(1)) * factor


def size_text(amount: int) -> str:
    """Bytes in the largest unit that leaves no fraction."""
    for unit in ("tb", "gb", "mb", "kb"):
        if amount and amount % _UNITS[unit] == 0:
            return f"{amount // _UNITS[unit]}{unit}"
    return f"{amount}b"


def table(rows: Sequence[Sequence[str]]) -> str:
    """``qstat`` without options."""
    if not rows:
        return ""
    head = (
        "Job id            Name             User              Time Use S Queue\n"
        "----------------  ---------------- ----------------  -------- - -----\n"
    )
    lines = []
    for job_id, name, user, used, state, queue in rows:
        line = (
            f"{cut(job_id, 16):<16}  {cut(name, 16):<16} {cut(user, 16):<16}  {used:>8} {state} {queue:<16}"
        )
        lines.append(line + "\n")
    return head + "".join(lines)


def cut(text: str, width: int) -> str:
    """A text in so many columns; a star stands for what does not fit."""
    return text if len(text) <= width else text[: width - 1] + "*"
