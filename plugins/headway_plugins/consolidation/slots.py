"""Which processors a job gets in either tier: Algorithm 2 of the paper, the function Dispatch.

The processes of a job all use the same share of a processor, so what is left of its matching of greedy
processes to idle processors is the order of the processors: for the foreground by the use of the process
behind, for the background by the use of the process in front, both least first, ties by the order of the
nodes.

A job may have processors of the pool that it faces.

On nodes of several processors the use is the mean over them, and as many of them as processes in front use
``threshold`` or more are of no use to the background. Nodes of one processor each are in :mod:`.single`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.model import Placement, Request
from headway.resources import Bools, Free, Located, NodeTable, Offer
from headway.resources.placing_parts import place_parts
from headway.state import Domain, Job, PoolState, Tenants
from headway.view import View
from headway_plugins.consolidation.part import Part, Spared, Whole
from headway_plugins.consolidation.usage import Usage

Floats = NDArray[np.float64]


class Slots:
    """The processors of a domain in both tiers, and how they are used."""

    #: For nodes of one processor each.
    single = False

    def __init__(self, view: View, usage: Usage, threshold: float) -> None:
        self._nodes: NodeTable = view.nodes
        self._tenants: Tenants = view.tenants
        self.domain: Domain = view.domain
        self._several_pools = len(self.domain.pools) > 1
        self._usage = usage
        self._threshold = threshold
        self._changes = self._tenants.watch()
        #: What each job there was counted with.
        self._uses: dict[Job, float] = {}
        #: By node: the use of its processes in front and behind, a processor; and the processors whose
        #: process in front leaves the background nothing.
        self._front: Floats = np.zeros(0)
        self._behind: Floats = np.zeros(0)
        self._full: NDArray[np.int64] = np.zeros(0, np.int64)
        self._usable: Bools = np.zeros(0, np.bool_)
        #: Of which state of the nodes (:attr:`NodeTable.told`) that is.
        self._told = -1
        #: The sum of what the background has left; -1: to be counted.
        self._room_behind = -1

    def close(self) -> None:
        """The slots are not asked any more."""
        self._tenants.unwatch(self._changes)

    def open(self) -> None:
        """A cycle begins: nodes may have come, gone, or fallen asleep."""
        self._room_behind = -1
        if self._told != self._nodes.told:
            self._told = self._nodes.told
            self._look_at_nodes()

    def _look_at_nodes(self) -> None:
        """Which nodes there are, and which can be used."""
        nodes = self._nodes
        size = len(nodes.total)
        if len(self._front) < size:
            more = size - len(self._front)
            self._front, self._behind = (
                np.concatenate([array, np.zeros(more)]) for array in (self._front, self._behind)
            )
            self._full = np.concatenate([self._full, np.zeros(more, np.int64)])
        self._usable = nodes.pool_mask(*self.domain.pool_names) & nodes.available
        if nodes.power:
            self._usable = self._usable & ~nodes.mask_of(nodes.power)

    def part(self, pool: PoolState) -> Part:
        """The pool's nodes, as they are now."""
        return Part(self._nodes, pool) if self._several_pools else Whole(self._nodes, self.domain)

    def _usable_for(self, job: Job) -> Bools:
        """The nodes of the job's pool that can be used."""
        return self._usable & self._nodes.pool_mask(job.pool.name) if self._several_pools else self._usable

    # ------------------------------------------------------------------ the foreground

    def idle_in_front(self, job: Job) -> bool:
        """Whether a job of the background finds its own processors idle in front."""
        free = self._nodes.free.processors
        place = self._nodes.locate(job.placement)
        if place.arrays is not None:
            nodes, counts = place.arrays
            return not np.count_nonzero(free[nodes] < counts)
        return all(free[node] >= count for node, count in zip(place.nodes, place.counts, strict=True))

    def idle_outside(self, job: Job) -> int:
        """Processors of its pool that are idle in front and have no process of this job behind."""
        free, place = self._nodes.free.processors, self._nodes.locate(job.placement)
        own = [(node, min(int(free[node]), n)) for node, n in zip(place.nodes, place.counts, strict=True)]
        part = self.part(job.pool)
        return part.free - part.held(tuple([(self._nodes.names[node], n) for node, n in own]))

    def front(self, job: Job, now: float, spared: Spared | None = None) -> Placement | None:
        """Idle processors for a job in the background or a waiting job; None if it does not find its own, or
        only with more of what is ``spared`` than it may have."""
        self._look()
        free = self._nodes.free
        behind = self._behind
        if job.behind and self._usage.known:
            # It leaves the background first.
            behind = behind.copy()
            _add(behind, self._nodes.locate(job.placement), self._nodes.total, -self._usage.of(job))
        found = self._take(job, free, free.processors, behind, now)
        if spared is None or found is None or spared.allows(found):
            return found
        found = self._take(job, free, free.processors, behind, now, last=spared.part.mask)
        return found if found is not None and spared.allows(found) else None

    # ------------------------------------------------------------------ the background

    def room_behind(self) -> int:
        """Processors that a job may have in the background."""
        self._look()
        if self._room_behind < 0:
            self._room_behind = int(self._room().sum())
        return self._room_behind

    def behind(self, job: Job, now: float) -> Placement | None:
        """Processors in the background for a waiting job; None if it does not find its own."""
        if job.request.parts:
            # Parts that start together stay together, in front.
            return None
        self._look()
        free = self._nodes.free_behind()
        return self._take(job, free, self._room(), self._front, now)

    def _room(self) -> NDArray[np.int64]:
        nodes = self._nodes
        left = nodes.total - np.maximum(nodes.behind, self._full)
        return np.where(self._usable, np.maximum(left, 0), 0)

    # ------------------------------------------------------------------ both

    def _take(
        self,
        job: Job,
        free: Free,
        room: NDArray[np.int64],
        use: Floats,
        now: float,
        last: Bools | None = None,
    ) -> Placement | None:
        """``last``: nodes that are taken only where other nodes do not suffice."""
        nodes, request = self._nodes, job.request
        room = np.where(self._usable_for(job), room, 0)
        if nodes.reservations:
            reservation = job.description.reservation
            open_ = nodes.unreserved(now, now + job.expected_runtime, reservation)
            if open_ is not None:
                room = np.where(open_, room, 0)
        if request.parts:
            return place_parts(
                nodes, request, job.pool.name, room > 0, free,
                lambda offer: offer.take(_put_last(offer.feasible, last)),
            )  # fmt: skip
        if not is_plain(request):
            eligible = nodes.eligible(request, job.pool.name)
            room = np.minimum(room, nodes.slots(request, eligible, free))
        candidates = np.flatnonzero(room)
        if self._usage.known:
            candidates = candidates[np.argsort(use[candidates], kind="stable")]
        return Offer(nodes, request, room, free).take(_put_last(candidates, last))

    def _look(self) -> None:
        """Reckon with the changes since the last time."""
        changes = self._changes
        if not changes:
            return
        self._room_behind = -1
        if self._usage.known:
            counted, threshold, total = self._full, self._threshold, self._nodes.total
            for job, place, behind, sign in changes:
                use = self._uses.pop(job, None) if sign < 0 else None
                if use is None:
                    use = self._usage.of(job)
                    self._uses[job] = use
                _add(self._behind if behind else self._front, place, total, sign * use)
                if behind or use < threshold:
                    continue
                if place.arrays is not None:
                    nodes, counts = place.arrays
                    counted[nodes] += sign * counts
                else:
                    for node, count in zip(place.nodes, place.counts, strict=True):
                        counted[node] += sign * count
        changes.clear()


def _put_last(nodes: NDArray[np.intp], last: Bools | None) -> NDArray[np.intp]:
    """The nodes in their order, but the nodes of a set behind all other nodes."""
    return nodes if last is None else nodes[np.argsort(last[nodes], kind="stable")]


def _add(tier: Floats, place: Located, total: NDArray[np.int64], use: float) -> None:
    """Count processes that use so much of a processor each, or with a negative use no longer."""
    # Rounding must not tell equal processors apart; both ways round alike.
    if place.arrays is not None:
        nodes, counts = place.arrays
        tier[nodes] = np.rint((tier[nodes] + counts / total[nodes] * use) * 1e9) / 1e9
        return
    for node, count in zip(place.nodes, place.counts, strict=True):
        tier[node] = round((float(tier[node]) + count / int(total[node]) * use) * 1e9) / 1e9


def is_plain(request: Request) -> bool:
    """Whether the request says nothing but how many processors."""
    narrower: tuple[Any, ...] = (
        request.nodes, request.processors_per_node, request.processors_per_chunk, request.memory_per_node,
        request.memory_per_processor, request.gres_per_node, request.features, request.required_nodes,
        request.excluded_nodes, request.exclusive, request.least_sizes, request.parts,
        request.memory_per_chunk, request.gres_per_chunk,
    )  # fmt: skip
    return not any(narrower)
