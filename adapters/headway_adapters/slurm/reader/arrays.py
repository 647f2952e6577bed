"""Slurm's lists of array elements: ``0-99:3,101%5``."""

from __future__ import annotations

import re
from collections.abc import Sequence


def elements_in(array: int | str, text: str, limit: int, notes: set[str]) -> list[int]:
    """The numbers in ``0-99:3,101%5``, at most ``limit``."""
    found: list[int] = []
    for item in text.partition("%")[0].split(","):
        match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([0-9]{1,9}))?)?", item.strip())
        if match is None:
            notes.add(f"array {array}: elements {item!r} cannot be read and wait")
            continue
        first = int(match.group(1))
        last = int(match.group(2) or first)
        step = max(int(match.group(3) or 1), 1)
        room = limit - len(found)
        run = range(first, last + 1, step)
        if len(run) > room:
            notes.add(f"array {array} has more than {limit} pending elements; the later elements wait")
        found.extend(run[:room])
    return found


def task_list(tasks: Sequence[int]) -> str:
    """The other way round: ``1-3,7``."""
    parts: list[str] = []
    at = 0
    while at < len(tasks):
        stop = at
        while stop + 1 < len(tasks) and tasks[stop + 1] == tasks[stop] + 1:
            stop += 1
        parts.append(str(tasks[at]) if stop == at else f"{tasks[at]}-{tasks[stop]}")
        at = stop + 1
    return ",".join(parts)
