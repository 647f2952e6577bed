"""What jobs take of nodes and give back: in front, in the background, and while they are suspended."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from headway.model import Placement, Request
from headway.model.parts import divided
from headway.resources.free import Free, takes_processors_alone
from headway.resources.located import Located
from headway.resources.node_sets import Ints, nodes_of
from headway.resources.node_times import NodeTimes


class NodeMoves(NodeTimes):
    """Nodes of which jobs take something."""

    def take(self, request: Request, placement: Placement) -> dict[str, tuple[int, int]]:
        """A job occupies its nodes. Returns for each domain (:meth:`group`) its processors: all, and
        the processors on usable nodes."""
        return self._move(request, placement, 1)

    def give_back(self, request: Request, placement: Placement) -> dict[str, tuple[int, int]]:
        """A job leaves its nodes; returns as :meth:`take`."""
        return self._move(request, placement, -1)

    def _move(self, request: Request, placement: Placement, sign: int) -> dict[str, tuple[int, int]]:
        self.moves += 1
        place = self.locate(placement)
        self.free.take_at(request, place, sign)
        if request.exclusive or request.parts:
            whole = place.bits if request.exclusive else 0
            for part, its_nodes, _ in divided(request, place.nodes, place.counts) if request.parts else ():
                if part.exclusive:
                    for node in its_nodes:
                        whole |= 1 << node
            self._whole_nodes = self._whole_nodes | whole if sign > 0 else self._whole_nodes & ~whole
        if sign < 0:
            self._located.pop(id(placement), None)
        arrays = place.arrays
        if not self._overfull and sign > 0:
            self._overfull = self._has_too_little(place.nodes if arrays is None else arrays[0])
        if self._overfull:
            return self._shares_beside_overfull(place, sign)
        if arrays is not None:
            return self._shares(*arrays)
        if self._same_pools is not None and place.known and self._all_available:
            return dict.fromkeys(self._domains_of(self._same_pools), (sum(place.counts),) * 2)
        shares: dict[str, tuple[int, int]] = {}
        for node, count in zip(place.nodes, place.counts, strict=True):
            usable = count if self.available[node] else 0
            self._add(shares, self.descriptions[self.names[node]].pools, count, usable)
        return shares

    def _shares(self, nodes: Ints, counts: Ints) -> dict[str, tuple[int, int]]:
        """The processors of many nodes by domain: all, and the processors on usable nodes."""
        usable = counts if self._all_available else np.where(self.available[nodes], counts, 0)
        if self._same_pools is not None:
            both = int(counts.sum()), int(usable.sum())
            return dict.fromkeys(self._domains_of(self._same_pools), both)
        shares: dict[str, tuple[int, int]] = {}
        kind = self._kind[nodes]
        for at in sorted(np.unique(kind, return_index=True)[1].tolist()):
            mine = kind == kind[at]
            pools = self.descriptions[self.names[nodes[at]]].pools
            self._add(shares, pools, int(counts[mine].sum()), int(usable[mine].sum()))
        return shares

    def _add(
        self, shares: dict[str, tuple[int, int]], pools: tuple[str, ...], count: int, usable: int
    ) -> None:
        for domain in self._domains_of(pools):
            total, free = shares.get(domain, (0, 0))
            shares[domain] = (total + count, free + usable)

    def _shares_beside_overfull(self, place: Located, sign: int) -> dict[str, tuple[int, int]]:
        """As :meth:`take`, after the move: a processor that two jobs have was free for no other job, and is
        not free when one of the two leaves."""
        moved: dict[int, int] = {}
        for node, count in zip(place.nodes, place.counts, strict=True):
            moved[node] = moved.get(node, 0) + count
        shares: dict[str, tuple[int, int]] = {}
        for node, count in moved.items():
            usable = 0
            if self.available[node]:
                left = int(self.free.processors[node])
                most, least = (left + count, left) if sign > 0 else (left, left - count)
                usable = max(0, most) - max(0, least)
            self._add(shares, self.descriptions[self.names[node]].pools, count, usable)
        if sign < 0:
            self._overfull = self._has_too_little(np.arange(len(self.names)))
        return shares

    def take_behind(self, request: Request, placement: Placement) -> None:
        """A job is on its nodes in the background: it takes no processor from a job in front, but memory
        and generic resources as every job does."""
        self._move_behind(request, placement, 1)

    def give_back_behind(self, request: Request, placement: Placement) -> None:
        """A job leaves the background."""
        self._move_behind(request, placement, -1)

    def _move_behind(self, request: Request, placement: Placement, sign: int) -> None:
        self.moves += 1
        behind, place = self.behind, self.locate(placement)
        if sign < 0:
            self._located.pop(id(placement), None)
        alone = takes_processors_alone(request)
        if place.arrays is not None and alone:
            nodes, counts = place.arrays
            behind[nodes] += sign * counts
            return
        for node, count in zip(place.nodes, place.counts, strict=True):
            behind[node] += sign * count
            if not alone:
                # A processor has two processes, memory is there once.
                self.free.take(request, (node,), (count,), sign)
                self.free.processors[node] += sign * count

    def lend(self, request: Request, placement: Placement) -> dict[str, tuple[int, int]]:
        """A job that is on its nodes lets others have its processors, and keeps its memory and generic
        resources. Returns as :meth:`take`."""
        shares = self._move(request, placement, -1)
        self._keep(request, placement, 1)
        return shares

    def end_lending(self, request: Request, placement: Placement) -> Collection[str]:
        """What a job kept that lends its processors is free; the domains of its nodes."""
        self.moves += 1
        self._keep(request, placement, -1)
        names = (name for name, _ in placement if name in self.descriptions)
        return {domain for name in names for domain in self._domains_of(self.descriptions[name].pools)}

    def _keep(self, request: Request, placement: Placement, sign: int) -> None:
        """All that a job has there but its processors."""
        place = self.locate(placement)
        self.lenders[place.nodes] += sign
        if not takes_processors_alone(request):
            self.free.take(request, place.nodes, place.counts, sign)
            for node, count in zip(place.nodes, place.counts, strict=True):
                self.free.processors[node] += sign * count
        if sign < 0:
            self._located.pop(id(placement), None)

    def free_behind(self) -> Free:
        """What each node has left for the background."""
        processors = self.total - self.behind
        if self._whole_nodes:
            processors[nodes_of(self._whole_nodes)] = 0
        return Free(processors, self.free.memory, self.free.gres)
