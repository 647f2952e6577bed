"""How many elements of an array its user lets run at a time (``bsub -J "name[1-100]%5"``). Pure.

Only ``bjobs -A`` tells this limit, and ``brun`` does not look at it. What is suspended counts, as in LSF.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

#: The command that tells the limits.
ARRAYS = ("bjobs", "-u", "all", "-A", "-w")
#: Number, ARRAY_SPEC (its name may hold anything), owner, and how many elements are in each state.
_ROW = re.compile(r"([0-9]{1,18})\s+(\S.*?)\s+\S+(?:\s+[0-9]+){8,}\s*")
_LIMIT = re.compile(r"\[[0-9,:-]*\]%([0-9]{1,9})$")


def read_limits(text: str, notes: set[str]) -> dict[str, int]:
    """``bjobs -A -w``: number of the array -> limit, for arrays that have one.

    An array that is told of twice (a name may imitate a row) has none that can be believed.
    """
    specs: dict[str, list[str]] = {}
    for line in text.splitlines()[1:]:
        if (row := _ROW.fullmatch(line)) is not None:
            specs.setdefault(row.group(1), []).append(row.group(2))
    found = {}
    for number, told in specs.items():
        if len(told) > 1:
            notes.add(f"array {number} is listed twice; a limit of its elements is not kept")
        elif (limit := _LIMIT.search(told[0])) is not None and int(limit.group(1)):
            found[number] = int(limit.group(1))
    return found


class ArraySlots:
    """The elements that may still start, array by array."""

    def __init__(self, limits: Mapping[str, int], active: Counter[str]) -> None:
        """``active``: array -> elements that have hosts."""
        self._limits = limits
        self._taken = Counter(active)

    def barred(self, array: str) -> str:
        """Why one more element of the array has to wait; "" where it may start, which counts it."""
        limit = self._limits.get(array)
        if limit is None:
            return ""
        if self._taken[array] >= limit:
            return f"its array runs at most {limit} elements at a time"
        self._taken[array] += 1
        return ""
