"""What became of a list between two moments, in as few words as a queue needs: jobs leave and come, and some
move."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
#: Of a list of which more changed, that is told as a whole.
_MOST = 500


def difference(
    old: Sequence[T], new: Sequence[T], left: Callable[[T], bool]
) -> tuple[list[int], list[tuple[int, T]]] | None:
    """The places in ``old`` that are to be taken out (ascending), and what is then to be put in, one by one,
    each at its place in ``new``; None: so much changed that the whole list is less. ``left``: whether
    something of ``old`` is surely not in ``new`` any more. Things are compared by what they are, not by
    value."""
    out: list[int] = []
    put: list[tuple[int, T]] = []
    moved: set[int] = set()
    i = j = 0
    while True:
        i, j = _alike(old, i, new, j)
        if i == len(old) and j == len(new):
            return out, put
        if len(out) + len(put) > _MOST:
            return None
        if i < len(old) and (
            j == len(new) or id(old[i]) in moved or left(old[i]) or _follows(old, i, new, j)
        ):
            out.append(i)
            i += 1
        else:
            put.append((j, new[j]))
            moved.add(id(new[j]))
            j += 1


def _follows(old: Sequence[T], i: int, new: Sequence[T], j: int) -> bool:
    """Whether ``old`` without what is at ``i`` goes on as ``new`` does."""
    return i + 1 < len(old) and old[i + 1] is new[j]


def _alike(old: Sequence[T], i: int, new: Sequence[T], j: int) -> tuple[int, int]:
    """The first places from ``i`` and ``j`` on at which both are not alike."""
    step = 32
    while step:
        if i + step <= len(old) and j + step <= len(new) and old[i : i + step] == new[j : j + step]:
            i, j, step = i + step, j + step, step * 2
        else:
            step //= 2
    return i, j
