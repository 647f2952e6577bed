"""Lists of nodes as Slurm and its users write them: ``n[1-3,07-10],login`` -> names. Pure.

Rules as in ``scontrol show hostnames``: numbers in brackets keep their leading zeros
(``n[07-10]`` is n07, n08, n09, n10); a name may hold several bracket groups
(``rack[1-2]n[1-4]``), the last varying fastest.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import product

#: More names than any cluster has nodes: a list beyond this is nonsense, not a big cluster.
MAX_NAMES = 1_000_000


def split(text: str) -> list[str]:
    """The parts between the commas that are outside brackets."""
    parts, depth, begin = [], 0, 0
    for at, char in enumerate(text):
        if char == "[":
            depth += 1
        elif char == "]":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
    parts.append(text[begin:])
    return [part.strip() for part in parts if part.strip()]


@lru_cache(maxsize=4096)
def expand(text: str) -> tuple[str, ...]:
    """The names of a host list, in its order. Raises :class:`ValueError` on a broken one."""
    names: list[str] = []
    for part in split(text):
        names.extend(_expand_one(part))
        if len(names) > MAX_NAMES:
            raise ValueError(f"host list {text[:60]!r} has more than {MAX_NAMES} names")
    return tuple(names)


def _expand_one(part: str) -> Iterable[str]:
    if "[" not in part:
        if "]" in part:
            raise ValueError(f"host list part {part!r}: ']' without '['")
        return (part,)
    pieces: list[Iterable[str]] = []
    total, at = 1, 0
    while at < len(part):
        opened = part.find("[", at)
        if opened < 0:
            pieces.append((part[at:],))
            break
        closed = part.find("]", opened)
        if closed < 0:
            raise ValueError(f"host list part {part!r}: '[' without ']'")
        if opened > at:
            pieces.append((part[at:opened],))
        values = _numbers(part[opened + 1 : closed])
        total *= len(values)
        if total > MAX_NAMES:
            raise ValueError(f"host list part {part[:60]!r} has more than {MAX_NAMES} names")
        pieces.append(values)
        at = closed + 1
    return ("".join(words) for words in product(*pieces))


def _numbers(text: str) -> list[str]:
    found: list[str] = []
    for item in text.split(","):
        low, dash, high = item.strip().partition("-")
        if not low.isdecimal() or not low.isascii() or (dash and not (high.isdecimal() and high.isascii())):
            raise ValueError(f"host list range {item!r} is not a number or a range of numbers")
        if not dash:
            found.append(low)
            continue
        first, last = int(low), int(high)
        if last < first or last - first >= MAX_NAMES:
            raise ValueError(f"host list range {item!r} runs backwards or is too long")
        width = len(low)
        found.extend(f"{n:0{width}d}" for n in range(first, last + 1))
    return found
