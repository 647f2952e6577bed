"""Slurm's host lists: ``n[1-3,07-10],login`` <-> names (:mod:`headway.inputs.node_lists`). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from headway.inputs.node_lists import MAX_NAMES, expand, split

__all__ = ["MAX_NAMES", "compress", "expand", "split"]

_TRAILING_NUMBER = re.compile(r"(.*?)([0-9]+)\Z", re.DOTALL)


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
