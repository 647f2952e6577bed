"""Where a job runs."""

from __future__ import annotations

from collections.abc import Iterable

#: Node name and the number of processors on it, one pair a node; empty on a flat pool.
Placement = tuple[tuple[str, int], ...]


def processors_of(placement: Iterable[tuple[str, int]]) -> int:
    """Total processors of a placement."""
    return sum(count for _, count in placement)
