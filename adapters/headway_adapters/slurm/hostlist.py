"""Slurm's host lists: ``n[1-3,07-10],login`` <-> names. Pure.

Rules as in ``scontrol show hostnames``: numbers in brackets keep their leading zeros
(``n[07-10]`` is n07, n08, n09, n10); a name may hold several bracket groups
(``rack[1-2]n[1-4]``), the last varying fastest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import product

_TRAILING_NUMBER = re.compile(r"(.*?)([0-9]+)\Z", re.DOTALL)
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


def compress(names: Iterable[str]) -> str:
    """The shortest usual host list of these names, sorted, each once."""
    groups: dict[tuple[str, int], list[int]] = {}
    plain: set[str] = set()
    for name in set(names):
        match = _TRAILING_NUMBER.match(name)
        if match is None:
            plain.add(name)
            continue
        prefix, digits = match.groups()
        # Names with leading zeros only share a range with names of the same width.
        width = len(digits) if digits[0] == "0" and len(digits) > 1 else 0
        groups.setdefault((prefix, width), []).append(int(digits))
    # n[08-10]: numbers of full width continue a zero-padded range.
    for (prefix, width), numbers in list(groups.items()):
        if width and (prefix, 0) in groups:
            free = groups[prefix, 0]
            numbers.extend(n for n in free if len(str(n)) == width)
            groups[prefix, 0] = [n for n in free if len(str(n)) != width]
    parts = sorted(plain)
    for (prefix, width), numbers in sorted(groups.items()):
        if numbers:
            parts.append(_range_part(prefix, width, sorted(numbers)))
    return ",".join(parts)


def _range_part(prefix: str, width: int, numbers: list[int]) -> str:
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        # An unpadded range must not cross a power of ten's width: n[9-10] is fine, it has no zeros.
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    text = ",".join(f"{a:0{width}d}" if a == b else f"{a:0{width}d}-{b:0{width}d}" for a, b in ranges)
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return prefix + text
    return f"{prefix}[{text}]"
