"""Dispatch on nodes of one processor each, the paper's case.

Sets of nodes are numbers: node ``i`` is in the set if bit ``i`` is 1. In each tier the nodes are kept by the
use of their process there, so that a change costs what the job that came or left has nodes, and the least
used are found use by use, not node by node.
"""

from __future__ import annotations

from typing import Any

from headway.model import Placement
from headway.resources import bits, nodes_of
from headway.state import Job
from headway_plugins.consolidation.part import Spared
from headway_plugins.consolidation.slots import Slots, is_plain


class Tier:
    """The nodes that have a process in a tier."""

    __slots__ = ("by_use", "crowded", "taken", "used")

    def __init__(self) -> None:
        #: All of them; and the nodes whose process uses something.
        self.taken = 0
        self.used = 0
        #: The use of a process -> the nodes that have such a process.
        self.by_use: dict[float, int] = {}
        #: A node was seen to have several processes, so these sets do not tell which nodes have none.
        self.crowded = False

    def enter(self, nodes: int, use: float) -> None:
        """A job has come, with one process on each of these nodes."""
        if self.taken & nodes:
            self.crowded = True
        self.taken |= nodes
        if use > 0:
            self.used |= nodes
            self.by_use[use] = self.by_use.get(use, 0) | nodes

    def leave(self, nodes: int, use: float) -> None:
        """It has left."""
        self.taken &= ~nodes
        if use > 0:
            self.used &= ~nodes
            rest = self.by_use[use] & ~nodes
            if rest:
                self.by_use[use] = rest
            else:
                del self.by_use[use]


class SingleSlots(Slots):
    """As :class:`Slots`. Requests that say more than a number of processors, reservations, and jobs that must
    spare the head's nodes are left to it."""

    single = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._in_front = Tier()
        self._in_back = Tier()
        #: The nodes whose process in front leaves the background nothing.
        self._full_nodes = 0
        #: What each job there was counted with: its nodes, their use, whether that is behind, and in full.
        self._there: dict[Job, tuple[int, float, bool, bool]] = {}
        self._usable_nodes = 0
        #: By the name of a pool its nodes that can be used, where there are several pools.
        self._usable_of: dict[str, int] = {}
        #: The nodes that the background has left, and how many they are; -1: to be found.
        self._open_behind = -1
        self._count_behind = -1

    def _look_at_nodes(self) -> None:
        super()._look_at_nodes()
        self._usable_nodes = bits(self._usable & (self._nodes.total > 0))
        self._usable_of.clear()
        self._open_behind = -1

    def _usable_nodes_for(self, job: Job) -> int:
        """As :meth:`_usable_for`."""
        if not self._several_pools:
            return self._usable_nodes
        name = job.pool.name
        if name not in self._usable_of:
            self._usable_of[name] = bits(self._usable_for(job)) & self._usable_nodes
        return self._usable_of[name]

    def idle_in_front(self, job: Job) -> bool:
        self._look()
        there = self._there.get(job)
        if there is None or self._in_front.crowded:
            return super().idle_in_front(job)
        return not there[0] & self._in_front.taken

    def front(self, job: Job, now: float, spared: Spared | None = None) -> Placement | None:
        self._look()
        if not is_plain(job.request) or self._nodes.reservations or spared is not None:
            self._fill()
            return super().front(job, now, spared)
        usable = self._usable_nodes_for(job)
        if self._in_front.crowded:
            idle = bits(self._nodes.free.processors > 0) & usable
        else:
            idle = usable & ~self._in_front.taken
        # A job in the background leaves it first.
        own = self._there[job][0] if job.behind and job in self._there else 0
        return self._least_used(idle, job.processors, self._in_back, own)

    def room_behind(self) -> int:
        self._look()
        if self._open_behind < 0:
            self._left_behind()
        return self._count_behind

    def behind(self, job: Job, now: float) -> Placement | None:
        self._look()
        if not is_plain(job.request) or self._nodes.reservations:
            self._fill()
            return super().behind(job, now)
        room = self._left_behind() & self._usable_nodes_for(job)
        return self._least_used(room, job.processors, self._in_front, 0)

    def _left_behind(self) -> int:
        if self._open_behind < 0:
            if self._in_back.crowded:
                nodes = self._nodes
                left = bits(nodes.behind < nodes.total) & self._usable_nodes
            else:
                left = self._usable_nodes & ~self._in_back.taken
            self._open_behind = left & ~self._full_nodes
            self._count_behind = self._open_behind.bit_count()
        return self._open_behind

    def _least_used(self, room: int, wanted: int, other: Tier, unused: int) -> Placement | None:
        """So many of these nodes, first the nodes whose process in the other tier uses least, ties by their
        order; ``unused``: nodes whose process there does not count."""
        left = room.bit_count() - wanted
        if left < 0:
            return None
        if left and self._usage.known and other.used:
            used = other.used & ~unused
            idle = room & ~used
            if idle.bit_count() >= wanted:
                room = idle
            else:
                # From the other end: the nodes that use most are left out.
                for use in sorted(other.by_use, reverse=True):
                    most = other.by_use[use] & room & ~unused
                    count = most.bit_count()
                    if count > left:
                        room &= ~most | _first(most, count - left)
                        break
                    room &= ~most
                    left -= count
                    if not left:
                        break
        if room.bit_count() > wanted:
            room = _first(room, wanted)
        return self._nodes.ones(room)

    def _look(self) -> None:
        changes = self._changes
        if not changes:
            return
        self._open_behind = -1
        known = self._usage.known
        for job, place, behind, sign in changes:
            if sign > 0:
                nodes, use, full = place.bits, 0.0, False
                if known:
                    use = self._usage.of(job)
                    full = not behind and use >= self._threshold
                    if full:
                        self._full_nodes |= nodes
                    # Rounding must not tell equal processors apart.
                    use = round(use * 1e9) / 1e9
                (self._in_back if behind else self._in_front).enter(nodes, use)
                self._there[job] = nodes, use, behind, full
            elif job in self._there:
                nodes, use, behind, full = self._there.pop(job)
                if full:
                    self._full_nodes &= ~nodes
                (self._in_back if behind else self._in_front).leave(nodes, use)
        changes.clear()

    def _fill(self) -> None:
        """The same as arrays."""
        for array, tier in ((self._front, self._in_front), (self._behind, self._in_back)):
            array[:] = 0.0
            for use, nodes in tier.by_use.items():
                array[nodes_of(nodes)] = use
        self._full[:] = 0
        self._full[nodes_of(self._full_nodes)] = 1


def _first(nodes: int, count: int) -> int:
    """The first so many nodes of a set that has as many."""
    found = 0
    for _ in range(count):
        lowest = nodes & -nodes
        found |= lowest
        nodes ^= lowest
    return found
