"""Nodes as arrays: what each has free, which job fits where, and how a request becomes a placement.

One table serves the whole cluster; pools are masks over it, so overlapping pools (partitions that
share nodes) see each other's jobs. All arrays have one entry a node, in the order in which the
nodes were added.

What nodes are is in :mod:`~headway.resources.node_facts`, when they can be had in
:mod:`~headway.resources.node_times`, what jobs take in :mod:`~headway.resources.node_moves`, and the guard in
:mod:`~headway.resources.node_guard`.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from headway.model import Request
from headway.resources.free import Free, takes_processors_alone
from headway.resources.node_guard import NodeGuard
from headway.resources.node_sets import Bools, Ints, bits
from headway.resources.offer import Offer

_INF = float("inf")


class NodeTable(NodeGuard):
    """All nodes of a cluster."""

    def can_host(
        self,
        request: Request,
        pool: str,
        *,
        confined: Iterable[str] | None = None,
        available_only: bool = True,
    ) -> bool:
        """Whether a request finds its nodes in an idle pool, or among the nodes it is ``confined`` to."""
        eligible = self.eligible(request, pool, available_only)
        if confined is not None:
            eligible = eligible & self.mask_of(confined)
        slots = self.slots(request, eligible, self.whole)
        if int(slots.sum()) < request.processors:
            return False
        offer = Offer(self, request, slots, self.whole)
        return offer.take(offer.feasible) is not None

    def idle(self, free: Free) -> int:
        """The nodes of which nothing is taken (:func:`bits`); what is no node may be among them."""
        told, changes, idle = free.idle
        if told != self.told or changes != free.changes:
            idle = bits(free.processors == self.total)
            free.idle = self.told, free.changes, idle
        return idle

    def offer(
        self, request: Request, eligible: Bools, free: Free, time: float = _INF, among: int | None = None
    ) -> Offer | None:
        """What the ``eligible`` nodes have for a request; None: too little. ``among``: the same nodes as
        bits, where these are known."""
        if (
            request.exclusive
            and self._each
            and request.processors_per_chunk <= 1
            and takes_processors_alone(request)
        ):
            # Nodes are idle or of no use: a set says all that there is to say.
            nodes = self.idle(free) & (bits(eligible) if among is None else among)
            if nodes.bit_count() * self._each < request.processors:
                return None
            return Offer(self, request, None, free, time, nodes)
        slots = self.slots(request, eligible, free)
        if int(slots.sum()) < request.processors:
            return None
        return Offer(self, request, slots, free, time)

    def slots(self, request: Request, eligible: Bools, free: Free) -> Ints:
        """How many of the request's processors each node could host out of ``free``."""
        slots = np.where(eligible, free.processors, 0)
        if request.exclusive:
            slots = np.where(free.processors == self.total, slots, 0)
        if request.memory_per_processor:
            slots = np.minimum(slots, free.memory // request.memory_per_processor)
        if request.memory_per_node:
            slots = np.where(free.memory >= request.memory_per_node, slots, 0)
        chunk = request.processors_per_chunk or 1
        if request.memory_per_chunk:
            slots = np.minimum(slots, np.minimum(free.memory // request.memory_per_chunk, slots) * chunk)
        for name, amount in request.gres_per_chunk:
            if (have := free.gres.get(name)) is None:
                return np.zeros(len(self.total), np.int64)
            slots = np.minimum(slots, have // amount * chunk)
        for name, amount in request.gres_per_node:
            have = free.gres.get(name)
            if have is None:
                return np.zeros(len(self.total), np.int64)
            slots = np.where(have >= amount, slots, 0)
        if request.processors_per_chunk > 1:
            slots -= slots % request.processors_per_chunk
        return np.maximum(slots, 0)
