"""The nodes that a job can have, among which a placement plugin chooses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from headway.model import Placement, Request
from headway.resources.free import Free
from headway.resources.node_sets import Ints, array_of, bits

_INF = float("inf")


class Nodes(Protocol):
    """The nodes that an offer is made of, in table order."""

    #: Their names.
    names: list[str]
    #: Processors of each.
    total: Ints

    def placed(self, nodes: NDArray[np.intp], counts: Ints) -> Placement:
        """The placement that has so many processors of each of these nodes."""


class Offer:
    """The nodes that could host a job now; a placement plugin chooses among them.

    ``feasible`` are indices of nodes with at least one usable processor, in table order, and
    ``slots[i]`` how many processors of the job node ``i`` could host. :meth:`take` turns an order
    of preference into a placement that satisfies the request's shape.
    """

    __slots__ = ("_feasible", "_nodes", "_slots", "_table", "free", "request", "time")

    def __init__(
        self,
        table: Nodes,
        request: Request,
        slots: Ints | None,
        free: Free,
        time: float = _INF,
        nodes: int = -1,
    ) -> None:
        """``nodes`` (:func:`bits`): the nodes that can be had as a whole, for a request that takes only whole
        nodes; then there need be no ``slots``."""
        self._table = table
        self.request = request
        self._slots, self._nodes = slots, nodes
        self._feasible: NDArray[np.intp] | None = None
        #: What each node has left before this job, all jobs of the cycle so far counted.
        self.free = free
        #: When the job would start, absolute seconds: now, or later for a job that is to be booked; infinity:
        #: at some time or other.
        self.time = time

    @property
    def slots(self) -> Ints:
        """How many processors of the job each node could host."""
        if self._slots is None:
            total = self._table.total
            self._slots = np.zeros(len(total), np.int64)
            if self._nodes:
                whole = array_of(self._nodes)
                self._slots[whole] = total[whole]
        return self._slots

    @property
    def feasible(self) -> NDArray[np.intp]:
        """The nodes with at least one usable processor, in table order."""
        if self._feasible is None:
            self._feasible = (self.slots > 0).nonzero()[0]
        return self._feasible

    @property
    def nodes(self) -> int:
        """The same as a set (:func:`bits`)."""
        if self._nodes < 0:
            self._nodes = bits(self.slots > 0)
        return self._nodes

    def take(self, order: NDArray[np.intp] | Sequence[int]) -> Placement | None:
        """The placement that uses nodes in this order of preference; None if the shape does not fit."""
        request = self.request
        if order is self._feasible:
            chosen = self._feasible
        else:
            chosen = np.asarray(order, np.intp)
            chosen = chosen[self.slots[chosen] > 0]
        required = len(set(request.required_nodes))
        if request.required_nodes:
            required_first = self._required_first(chosen)
            if required_first is None:
                return None
            chosen = required_first
        slots = self.slots[chosen]
        per_node = request.processors_per_node
        if per_node:
            able = slots >= per_node
            if not able[:required].all():
                return None
            chosen, slots = chosen[able], np.full(int(able.sum()), per_node)
        if request.nodes:
            return self._exactly(request.nodes, required, chosen, slots)
        wanted = request.processors
        reach = slots.cumsum()
        if not len(reach) or reach[-1] < wanted:
            return None
        count = int(reach.searchsorted(wanted)) + 1
        if count < required:
            if per_node:
                return None
            # Fewer nodes would do, but each that the user named must be there.
            return self._exactly(required, required, chosen, slots)
        if per_node:
            counts = slots[:count].copy()
            counts[-1] -= reach[count - 1] - wanted
            return self._placement(chosen[:count], counts)
        return self._in_blocks(chosen[:count], slots[:count], wanted)

    def _exactly(self, nodes: int, required: int, chosen: NDArray[np.intp], slots: Ints) -> Placement | None:
        """On so many nodes, among them the first ``required`` of ``chosen``."""
        wanted = self.request.processors
        if len(chosen) < nodes or nodes < required:
            return None
        picked, room = chosen[:nodes], slots[:nodes]
        able = slots >= -(-wanted // nodes)
        able[:required] = True
        if room.sum() < wanted and able.sum() >= nodes:
            # The preferred ones that can take an even share.
            picked, room = chosen[able][:nodes], slots[able][:nodes]
        if room.sum() < wanted:
            larger = required + np.argsort(-slots[required:], kind="stable")[: nodes - required]
            largest = np.concatenate([np.arange(required), np.sort(larger)])
            picked, room = chosen[largest], slots[largest]
            if room.sum() < wanted:
                return None
        if self.request.exclusive or self.request.processors_per_node:
            return self._placement(picked, room)
        return self._in_blocks(picked, room, max(wanted, nodes * (self.request.processors_per_chunk or 1)))

    def _required_first(self, order: NDArray[np.intp]) -> NDArray[np.intp] | None:
        wanted, names = set(self.request.required_nodes), self._table.names
        named = np.fromiter((names[node] in wanted for node in order.tolist()), np.bool_, len(order))
        if np.count_nonzero(named) < len(wanted):
            return None
        return np.concatenate([order[named], order[~named]])

    def _in_blocks(self, nodes: NDArray[np.intp], room: Ints, wanted: int) -> Placement:
        """``wanted`` processors on these nodes as batch systems share them out (block distribution).

        In table order, each node gets as many as it has room for while one (or a chunk) is left for
        each node after it. Slurm does so with the nodes it is told, whatever their order.
        """
        if len(nodes) == 1:
            return self._placement(nodes, np.minimum(room, wanted))
        order = nodes.argsort()
        least = self.request.processors_per_chunk or 1
        nodes, spare = nodes[order], wanted - len(nodes) * least
        # Beyond the least, each takes what it has room for, while any is to spare.
        beyond = (room[order] - least).cumsum()
        beyond -= np.maximum(np.maximum.accumulate(beyond - spare), 0)
        counts = beyond + least
        counts[1:] -= beyond[:-1]
        return self._placement(nodes, counts)

    def _placement(self, nodes: NDArray[np.intp], counts: Ints) -> Placement:
        if self.request.exclusive:
            counts = self._table.total[nodes]
        return self._table.placed(nodes, counts)
