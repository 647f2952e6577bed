"""Where a job's partition is on nodes that are not wired: on the blocks of a fat tree, or of a row.

Partitions are dedicated: a node that a job is on is not shared with another job. Decided here:

- ``on-demand``: a job gets only the nodes that it needs, within the smallest block that has them. Of several
  such blocks it gets the block with the fewest nodes to boot, then the first.
- ``prepared``: a job gets a whole block of the smallest size that can hold it: a block whose nodes are all
  on, else the block with the fewest nodes to boot, then the first. Nodes of the block that cannot be used are
  left out. Larger blocks are looked at only where no block of that size could hold the job. All parts of a
  job of several parts are in the same block.
- Which block a running job has follows from its nodes: the smallest block that they are in. So nothing has to
  be remembered over a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from headway.model import Placement, Request, SwitchDescription
from headway.resources import Free, NodeTable, Offer
from headway.resources.placing_parts import place_parts
from headway.state import Job
from headway_plugins.partitions.fat_tree import switch_blocks

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
#: Blocks of placements that are kept.
_KEPT = 10_000


class Site:
    """What is so of the nodes at a moment, arrays over the scheduler's table of nodes."""

    __slots__ = ("idle", "late", "on")

    def __init__(self, idle: Bools, late: Bools, on: Bools | None = None) -> None:
        #: No job is on them, a suspended job included, and no other job's block has them.
        self.idle = idle
        #: They would have to be booted first, or are booted for another job: taken last.
        self.late = late
        #: They are on; None: that does not matter at this moment.
        self.on = on


class NodeBlocks:
    """The blocks of a pool."""

    def __init__(
        self, table: NodeTable, pool: str, switches: Sequence[SwitchDescription], unit: int, prepared: bool
    ) -> None:
        self._table, self._prepared = table, prepared
        self._pool = pool
        #: The pool's nodes, and what the table had been told by then.
        self._mask, self._told = table.pool_mask(pool).copy(), table.told
        mask = self._mask
        names = [name for at, name in enumerate(table.names) if mask[at]]
        self._levels = self._by_size(switch_blocks(names, switches, 1 if not prepared else unit))
        #: By the nodes of a placement.
        self._around: dict[tuple[str, ...], Ints] = {}

    def is_of(self, table: NodeTable) -> bool:
        """Whether the pool still has these nodes."""
        if table.told != self._told and np.array_equal(table.pool_mask(self._pool), self._mask):
            self._told = table.told
        return table.told == self._told

    def _by_size(self, blocks: Iterable[tuple[str, ...]]) -> list[Ints]:
        """For each size, smallest first, an array of a row a block: the indices of its nodes."""
        index, sizes = self._table.index, dict[int, list[list[int]]]()
        for block in blocks:
            sizes.setdefault(len(block), []).append([index[name] for name in block])
        return [np.array(rows, np.int64) for rows in sizes.values()]

    # ------------------------------------------------------------------ whose block is where

    def block_of(self, placement: Placement) -> Ints:
        """The nodes that a job with this placement has for itself, as indices."""
        names = tuple(name for name, _ in placement)
        known = self._around.get(names)
        if known is None:
            if len(self._around) >= _KEPT:
                self._around.clear()
            placed = np.array([self._table.index[name] for name in names], np.int64)
            known = self._around[names] = self._smallest(placed) if self._prepared else placed
        return known

    def _smallest(self, placed: Ints) -> Ints:
        for level in self._levels:
            if level.shape[1] >= len(placed):
                inside = np.flatnonzero(np.isin(level, placed).sum(axis=1) == len(placed))
                if len(inside):
                    block: Ints = level[inside[0]]
                    return block
        return placed

    def taken(self, there: Iterable[tuple[Job, Placement]], free: Bools) -> Bools:
        """The nodes of blocks whose jobs are not over; ``free``: the nodes that no job is on."""
        found = np.zeros(len(free), np.bool_)
        if self._prepared:
            for _, placement in there:
                if not free[[self._table.index[name] for name, _ in placement]].all():
                    found[self.block_of(placement)] = True
        return found

    # ------------------------------------------------------------------ where a job fits

    def fits_at_all(self, request: Request) -> bool:
        """Whether a block could hold the request if everything was idle and in order."""
        if request.parts:
            if not self._prepared:
                return True
            eligible = self._table.eligible(request, self._pool, False)
            return any(
                self._together(request, eligible, self._table.whole, level[row]) is not None
                for level in self._levels
                for row in range(len(level))
            )
        slots = self._slots(request, usable=False)
        offer = Offer(self._table, request, slots, self._table.whole)
        rows = ((level, row) for level in self._levels for row in self._able(level, slots, request))
        return any(offer.take(level[row]) is not None for level, row in rows)

    def find(self, offer: Offer, site: Site) -> tuple[Ints, Placement] | None:
        """The partition for a request and the job's place in it; None: there is none now."""
        request = offer.request
        slots = np.where(site.idle, offer.slots, 0)
        whole = self._slots(request, usable=True) if self._prepared else slots
        most = int(whole.max()) if len(whole) else 0
        least = max(request.nodes, -(-request.processors // most)) if most else len(whole) + 1
        for level in self._levels:
            if level.shape[1] < least:
                continue
            for row in self._in_order(level, slots, request, site):
                block = level[row]
                placement = offer.take(self._order(block[slots[block] > 0], site))
                if placement is not None:
                    return self._partition(block, placement), placement
            if self._prepared and len(self._able(level, whole, request)):
                return None
        return None

    def find_together(self, request: Request, eligible: Bools, free: Free, site: Site) -> Placement | None:
        """Prepared blocks: where all parts of a request are, in one block; None: there is no such block now.
        ``eligible``: the nodes that they may have."""
        eligible = eligible & site.idle
        slots = np.where(eligible, self._table.total, 0)
        could = self._table.eligible(request, self._pool)
        whole = np.where(could, self._table.total, 0)
        for level in self._levels:
            for row in self._in_order(level, slots, request, site):
                placement = self._together(request, eligible, free, level[row])
                if placement is not None:
                    return placement
            for row in self._able(level, whole, request):
                if self._together(request, could, self._table.whole, level[row]) is not None:
                    return None
        return None

    def _together(self, request: Request, eligible: Bools, free: Free, block: Ints) -> Placement | None:
        """The places of all parts of a request in a block."""
        within = np.zeros(len(eligible), np.bool_)
        within[block] = True
        return place_parts(
            self._table, request, self._pool, eligible & within, free, lambda part: self._in(part, block)
        )

    @staticmethod
    def _in(part: Offer, block: Ints) -> Placement | None:
        return part.take(block[part.slots[block] > 0])

    def _slots(self, request: Request, *, usable: bool) -> Ints:
        """What an idle machine has for a request, by nodes."""
        eligible = self._table.eligible(request, self._pool, usable)
        return self._table.slots(request, eligible, self._table.whole)

    @staticmethod
    def _able(level: Ints, slots: Ints, request: Request) -> NDArray[np.intp]:
        """The blocks of a level that have enough, as far as sums say it."""
        room = slots[level]
        return np.flatnonzero(
            (room.sum(axis=1) >= request.processors) & ((room > 0).sum(axis=1) >= max(request.nodes, 1))
        )

    def _in_order(self, level: Ints, slots: Ints, request: Request, site: Site) -> Iterator[int]:
        """The blocks of a level that may hold the request, preferred blocks first."""
        rows = self._able(level, slots, request)
        usable = self._table.available[: len(site.idle)]
        if self._prepared:
            # The whole block is the job's.
            whole = site.idle | ~usable
            if site.on is not None:
                whole &= site.on | ~usable
            rows = rows[whole[level[rows]].all(axis=1)]
            late = (site.late & usable)[level[rows]].sum(axis=1)
        else:
            # Only as many nodes as the job needs are taken, and nodes that are on first.
            on = np.where(site.late, 0, slots)[level[rows]]
            late = np.maximum(request.processors - on.sum(axis=1), 0)
        yield from rows[np.argsort(late, kind="stable")].tolist()

    def _order(self, block: Ints, site: Site) -> Ints:
        """The block's nodes, first the nodes that need not be booted."""
        if self._prepared:
            return block
        ordered: Ints = block[np.argsort(site.late[block], kind="stable")]
        return ordered

    def _partition(self, block: Ints, placement: Placement) -> Ints:
        """The nodes that are booted for a job that is placed so."""
        if not self._prepared:
            return np.array([self._table.index[name] for name, _ in placement], np.int64)
        usable: Ints = block[self._table.available[block]]
        return usable
