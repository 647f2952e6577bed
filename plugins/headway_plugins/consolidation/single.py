"""Dispatch on nodes of one processor each, the paper's case.

Sets of nodes are numbers: node ``i`` is in the set if bit ``i`` is 1. In each tier the nodes are kept by the
use of their process there, so that a change costs what the job that came or left has nodes, and the least
used are found use by use, not node by node.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from headway.model import Placement
from headway.nodes import Bools
from headway.state import Job
from headway_plugins.consolidation.slots import Slots, is_plain


class SingleSlots(Slots):
    """As :class:`Slots`. Requests that say more than a number of processors, and reservations, are left to
    it."""

    single = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        #: The use of a process -> the nodes that have such a one, in front and behind; used by somebody.
        self._front_by_use: dict[float, int] = {}
        self._behind_by_use: dict[float, int] = {}
        #: The nodes whose process in front leaves the background nothing.
        self._full_nodes = 0
        #: What each job there was counted with: its nodes, their use, whether that is behind, and in full.
        self._there: dict[Job, tuple[int, float, bool, bool]] = {}
        self._usable_nodes = 0
        #: What the background has left; -1: to be found.
        self._open_behind = -1

    def _look_at_nodes(self) -> None:
        super()._look_at_nodes()
        self._usable_nodes = _set_of(self._usable & (self._nodes.total > 0))
        self._open_behind = -1

    def front(self, job: Job, now: float) -> Placement | None:
        self._look()
        if not is_plain(job.request) or self._nodes.reservations:
            self._fill()
            return super().front(job, now)
        idle = _set_of(self._nodes.free.processors > 0) & self._usable_nodes
        # One in the background leaves it first.
        own = self._there[job][0] if job.behind and job in self._there else 0
        return self._least_used(idle, job.processors, self._behind_by_use, own)

    def room_behind(self) -> int:
        self._look()
        return self._left_behind().bit_count()

    def behind(self, job: Job, now: float) -> Placement | None:
        self._look()
        if not is_plain(job.request) or self._nodes.reservations:
            self._fill()
            return super().behind(job, now)
        return self._least_used(self._left_behind(), job.processors, self._front_by_use, 0)

    def _left_behind(self) -> int:
        if self._open_behind < 0:
            nodes = self._nodes
            self._open_behind = _set_of(nodes.behind < nodes.total) & self._usable_nodes & ~self._full_nodes
        return self._open_behind

    def _least_used(self, room: int, wanted: int, by_use: dict[float, int], unused: int) -> Placement | None:
        """So many of these nodes, first those whose process in the other tier uses least, ties by their
        order; ``unused``: nodes whose process there does not count."""
        left = room.bit_count() - wanted
        if left < 0:
            return None
        if left and self._usage.known:
            # From the other end: who uses most is left out.
            for use in sorted(by_use, reverse=True):
                if use <= 0:
                    break
                most = by_use[use] & room & ~unused
                count = most.bit_count()
                if count > left:
                    room &= ~most | _first(most, count - left)
                    left = 0
                else:
                    room &= ~most
                    left -= count
                if not left:
                    break
        if left:
            room = _first(room, wanted)
        names = self._nodes.names
        return tuple([(names[node], 1) for node in _nodes_of(room)])

    def _look(self) -> None:
        changes = self._changes
        if not changes:
            return
        self._open_behind = -1
        if self._usage.known:
            for job, place, behind, sign in changes:
                if sign > 0:
                    nodes = 0
                    for node in place.nodes:
                        nodes |= 1 << node
                    use = self._usage.of(job)
                    full = not behind and use >= self._threshold
                    if full:
                        self._full_nodes |= nodes
                    # Rounding must not tell equal processors apart.
                    use = round(use * 1e9) / 1e9
                    by_use = self._behind_by_use if behind else self._front_by_use
                    by_use[use] = by_use.get(use, 0) | nodes
                    self._there[job] = nodes, use, behind, full
                elif job in self._there:
                    nodes, use, behind, full = self._there.pop(job)
                    if full:
                        self._full_nodes &= ~nodes
                    by_use = self._behind_by_use if behind else self._front_by_use
                    rest = by_use[use] & ~nodes
                    if rest:
                        by_use[use] = rest
                    else:
                        del by_use[use]
        changes.clear()

    def _fill(self) -> None:
        """The same as arrays."""
        for array, by_use in ((self._front, self._front_by_use), (self._behind, self._behind_by_use)):
            array[:] = 0.0
            for use, nodes in by_use.items():
                array[list(_nodes_of(nodes))] = use
        self._full[:] = 0
        self._full[list(_nodes_of(self._full_nodes))] = 1


def _set_of(mask: Bools) -> int:
    """The nodes of a mask."""
    return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")


def _nodes_of(nodes: int) -> Iterator[int]:
    """The nodes of a set, in their order."""
    while nodes:
        lowest = nodes & -nodes
        yield lowest.bit_length() - 1
        nodes ^= lowest


def _first(nodes: int, count: int) -> int:
    """The first so many nodes of a set that has as many."""
    found = 0
    for _ in range(count):
        lowest = nodes & -nodes
        found |= lowest
        nodes ^= lowest
    return found
