"""The guard of the nodes: whether a placement is to be had, and why it is not."""

from __future__ import annotations

import numpy as np

from headway.errors import StateError
from headway.model import Placement, Request
from headway.model.parts import by_node, placements_of
from headway.resources.free import (
    gres_on_node,
    gres_on_nodes,
    memory_on_node,
    memory_on_nodes,
    takes_processors_alone,
)
from headway.resources.node_moves import NodeMoves
from headway.resources.node_sets import MANY, Ints


class NodeGuard(NodeMoves):
    """Nodes with the guard that gives no processor twice."""

    def guard(self, request: Request, placement: Placement, pool: str) -> None:
        """Raise :class:`StateError` if a placement is not to be had: unknown or unusable node, not
        enough free processors, memory or generic resources, fewer processors than requested, a node
        named twice, or a node that an exclusive job would share."""
        self._guard_shape(request, placement)
        if not request.parts_apart:
            self._guard_shared(request, placement, pool)
            return
        if request.parts:
            for part, its_own in zip(request.parts, placements_of(request, placement), strict=True):
                self.guard(part, its_own, pool)
            return
        free = self.free.processors
        if self._is_plainly_there(request, placement, pool, free):
            return
        for name, count in placement:
            node = self._guard_usable(name, count, pool)
            if count > free[node]:
                raise StateError(f"node {name} has {free[node]} processors free, not {count}")
            if request.exclusive and (not count == free[node] == self.total[node] or self.behind[node]):
                raise StateError(f"node {name} would be shared, the job asks for whole nodes")
            self._guard_rest(request, name, node, count)

    def _is_plainly_there(self, request: Request, placement: Placement, pool: str, free: Ints) -> bool:
        """Whether many nodes have their processors ``free`` for a request (all of them, where it asks for
        whole nodes), and what else it takes, looked at at once; if not, the caller has to look at each node
        and say why."""
        if len(placement) <= MANY:
            return False
        place = self.locate(placement)
        if not place.clear or place.arrays is None:
            return False
        nodes, counts = place.arrays
        if not (self._has_all(nodes, pool) and self._has_rest(request, nodes, counts)):
            return False
        left = free[nodes]
        if not request.exclusive:
            return not np.count_nonzero(left < counts)
        if np.count_nonzero(left != counts) or np.count_nonzero(self.behind[nodes]):
            return False
        return not np.count_nonzero(left != self.total[nodes])

    def _has_all(self, nodes: Ints, pool: str) -> bool:
        """Whether all of these nodes can be used, and in this pool."""
        if not self.pool_mask(pool)[nodes].all() or (self.power and not self._is_on[nodes].all()):
            return False
        return self._all_available or bool(self.available[nodes].all())

    def _has_rest(self, request: Request, nodes: Ints, counts: Ints) -> bool:
        """Whether these nodes have the memory and the generic resources, of which both tiers have their
        share."""
        if takes_processors_alone(request):
            return True
        if np.count_nonzero(self.free.memory[nodes] < memory_on_nodes(request, counts)):
            return False
        return all(
            name in self.free.gres and not np.count_nonzero(self.free.gres[name][nodes] < amount)
            for name, amount in gres_on_nodes(request, counts)
        )

    def _guard_shared(self, request: Request, placement: Placement, pool: str) -> None:
        """As :meth:`guard`, for parts that may have the same nodes."""
        nodes = [self._guard_usable(name, max(count, 1), pool) for name, count in placement]
        node = self.free.lacking(request, nodes, [count for _, count in placement])
        if node is not None:
            raise StateError(f"node {self.names[node]} has too little free for all jobs that would be there")

    def offers(self, placement: Placement, free: Ints, *, shared: bool = False) -> bool:
        """Whether a placement names nodes that are known, each once, and of none more processors than are
        ``free`` there. ``shared``: parts may have the same nodes."""
        if shared:
            found = by_node(placement)
            return all(name in self.index and n <= free[self.index[name]] for name, n in found.items())
        place = self.locate(placement, passing=True)
        if not place.clear:
            return False
        if place.arrays is not None:
            nodes, counts = place.arrays
            return not np.count_nonzero(free[nodes] < counts)
        return all([count <= free[node] for node, count in zip(place.nodes, place.counts, strict=True)])

    def _guard_shape(self, request: Request, placement: Placement) -> None:
        place = self.locate(placement)
        if place.processors < request.processors:
            raise StateError(f"{placement} has fewer than the {request.processors} processors asked for")
        named_twice = not place.clear and len({name for name, _ in placement}) < len(placement)
        if named_twice and request.parts_apart:
            raise StateError(f"{placement} names a node twice")

    def _guard_usable(self, name: str, count: int, pool: str) -> int:
        """The index of a node that can be used in this pool."""
        node = self.index.get(name)
        if count < 1:
            raise StateError(f"{count} processors of node {name} are no placement")
        if node is None or pool not in self.descriptions[name].pools:
            raise StateError(f"node {name} is not in pool {pool!r}")
        if not self.available[node]:
            raise StateError(f"node {name} is not available")
        if name in self.power:
            raise StateError(f"node {name} is {self.power[name]}")
        return node

    def _guard_rest(self, request: Request, name: str, node: int, count: int) -> None:
        """Memory and generic resources, of which both tiers have their share."""
        memory = memory_on_node(request, count)
        if memory and memory > self.free.memory[node]:
            raise StateError(f"node {name} has {self.free.memory[node]} bytes free, not {memory}")
        for resource, amount in gres_on_node(request, count):
            if resource not in self.free.gres or amount > self.free.gres[resource][node]:
                raise StateError(f"node {name} has too few {resource} free")

    def guard_return(self, request: Request, placement: Placement, pool: str) -> None:
        """Raise :class:`StateError` if a job that lends its processors cannot have them back: a node that
        cannot be used or is shared, or processors that others have."""
        exclusive = request.exclusive or any(part.exclusive for part in request.parts)
        for name, count in placement:
            node = self._guard_usable(name, count, pool)
            free = self.free.processors[node]
            if count > free:
                raise StateError(f"node {name} has {free} processors free, not {count}")
            if exclusive and (free != self.total[node] or self.behind[node]):
                raise StateError(f"node {name} would be shared, the job asks for whole nodes")

    def guard_behind(self, request: Request, placement: Placement, pool: str) -> None:
        """As :meth:`guard`, for the background: no processor has two processes there."""
        if request.exclusive:
            raise StateError("the job asks for whole nodes, and no job has a whole node in the background")
        if request.parts:
            raise StateError("a job of several parts is not put into the background")
        self._guard_shape(request, placement)
        if not self._whole_nodes and self._is_plainly_there(
            request, placement, pool, self.total - self.behind
        ):
            return
        for name, count in placement:
            node = self._guard_usable(name, count, pool)
            left = int(self.total[node] - self.behind[node])
            if count > left:
                raise StateError(f"node {name} has {left} processors free in the background, not {count}")
            if self._whole_nodes >> node & 1:
                raise StateError(f"node {name} belongs to a job that asked for whole nodes")
            self._guard_rest(request, name, node, count)
