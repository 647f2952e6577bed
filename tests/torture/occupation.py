"""Whether any node ever had more to do than it has processors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from torture.system import Share


@dataclass(frozen=True)
class Excess:
    """From ``at`` on these jobs had more processors of the node than there are."""

    node: str
    at: float
    processors: int
    keys: tuple[str, ...]


def excesses(shares: Iterable[Share], capacity: Mapping[str, int]) -> list[Excess]:
    """Each moment at which a beginning put a node over its capacity. Ends come before beginnings."""
    changes: dict[str, list[tuple[float, int, str, int]]] = {}
    for share in shares:
        if share.end > share.begin:
            listed = changes.setdefault(share.node, [])
            listed.append((share.begin, 1, share.key, share.processors))
            listed.append((share.end, 0, share.key, -share.processors))
    found = []
    for node, listed in changes.items():
        used = 0
        there: dict[str, int] = {}
        for at, begins, key, change in sorted(listed):
            used += change
            there[key] = there.get(key, 0) + change
            if begins and used > capacity.get(node, 0):
                found.append(Excess(node, at, used, tuple(sorted(k for k, n in there.items() if n))))
    return found
