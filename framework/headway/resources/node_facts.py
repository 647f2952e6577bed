"""What nodes are and have, as arrays; where placements are in them.

All arrays have one entry a node, in the order in which the nodes were added.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from headway.model import NodeDescription, Placement, Request, Reservation
from headway.resources.free import UNMANAGED, Free
from headway.resources.located import Located
from headway.resources.node_sets import MANY, Bools, Ints, array_of, nodes_of

#: Once so many nodes of placements were found, where any placement is is found anew: more than the jobs that
#: run have, or nothing is gained, and little memory.
_KEPT = 1 << 18
#: And of so many that one job after another is given.
_KEPT_FOR_GOOD = 4096


class NodeFacts:
    """The data of :class:`headway.resources.nodes.NodeTable`, and how nodes are described and found."""

    def __init__(self) -> None:
        self.descriptions: dict[str, NodeDescription] = {}
        self.index: dict[str, int] = {}
        self.names: list[str] = []
        #: One processor of each, and the names, as arrays of objects; made anew when there are more nodes.
        self._ones: NDArray[np.object_] = np.zeros(0, np.object_)
        self._named: NDArray[np.object_] = np.zeros(0, np.object_)
        self.total: Ints = np.zeros(0, np.int64)
        self.free = Free(np.zeros(0, np.int64), np.zeros(0, np.int64), {})
        #: What the nodes have when they are idle.
        self.whole = Free(np.zeros(0, np.int64), np.zeros(0, np.int64), {})
        self.available: Bools = np.zeros(0, np.bool_)
        #: Processors that have a process in the background, with or without a job in front of it.
        self.behind: Ints = np.zeros(0, np.int64)
        #: How many suspended jobs each node has whose processors others may have.
        self.lenders: Ints = np.zeros(0, np.int64)
        #: Nodes that a job has for itself alone (:func:`bits`).
        self._whole_nodes = 0
        #: Power states of nodes that are not on: "asleep", "falling asleep", "waking".
        self.power: dict[str, str] = {}
        self._is_on: Bools = np.zeros(0, np.bool_)
        #: When a node that is not on is expected to be (absolute seconds); for a node that is not being
        #: woken, seconds from the order to wake it. Nodes that are on are not looked at.
        self._wakes: dict[int, tuple[bool, float]] = {}
        #: Earliest start of a reservation on the node that is not over; infinity if there is none.
        self.reserved_from: NDArray[np.float64] = np.zeros(0)
        #: Node -> its reservations that are not over.
        self.reservations: dict[int, list[Reservation]] = {}
        #: Pool -> the name of its domain (:meth:`group`); and for the pools of a node, the names of theirs.
        self._domain_of: Mapping[str, str] = {}
        self._domains: dict[tuple[str, ...], tuple[str, ...]] = {}
        #: The pools of every node, if all have the same; and whether every node is available.
        self._same_pools: tuple[str, ...] | None = ()
        #: A number for the pools that each node is in; nodes of the same pools have the same number.
        self._kind: Ints = np.zeros(0, np.int64)
        self._kinds: dict[tuple[str, ...], int] = {}
        #: No node has, or had, more than one processor.
        self.single = True
        #: The processors of every node, if all have, and had, the same number; else 0.
        self._each = 0
        self._all_available = True
        #: Of some node more is taken than it has: it has become smaller, or others share it.
        self._overfull = False
        self._pools: dict[str, Bools] = {}
        self._features: dict[str, Bools] = {}
        #: What nodes have that no job takes anything of.
        self._sizes: dict[str, Ints] = {}
        #: How often what nodes there are, and which of them can be used, was told anew.
        self.told = 0
        #: How often something was taken or given back.
        self.moves = 0
        #: By their identity: placements that were looked up.
        self._located: dict[int, Located] = {}
        #: The placement that was looked up or made last and is not kept.
        self._passing: Located | None = None
        #: How many nodes the placements had that came since it was empty.
        self._noted = 0
        #: The same of placements that one job after another is given.
        self._kept: dict[int, Located] = {}

    def __len__(self) -> int:
        return len(self.names)

    def put(self, node: NodeDescription) -> None:
        """Add a node, or replace its description; what runs on it stays on it."""
        self.told += 1
        old = self.descriptions.get(node.name)
        if old is None:
            at = self._append(node)
        else:
            at = self.index[node.name]
            self._replace(at, old, node)
        self.descriptions[node.name] = node
        self.total[at] = self.whole.processors[at] = node.processors
        self.whole.memory[at] = node.memory or UNMANAGED
        self.available[at] = node.available
        self._kind[at] = self._kinds.setdefault(node.pools, len(self._kinds))
        self._all_available = self._all_available and node.available
        self._overfull = self._has_too_little([at]) or (
            self._overfull and self._has_too_little(np.arange(len(self.names)))
        )
        self.single = self.single and node.processors <= 1
        self._each = node.processors if len(self.names) == 1 or self._each == node.processors else 0
        if len(self.names) == 1:
            self._same_pools = node.pools
        elif self._same_pools != node.pools:
            self._same_pools = None
        for name, amount in node.gres:
            for what in (self.free, self.whole):
                if name not in what.gres:
                    what.gres[name] = np.zeros_like(self.total)
                what.gres[name][at] += amount
        for name, amount in node.sizes:
            if name not in self._sizes:
                self._sizes[name] = np.zeros_like(self.total)
            self._sizes[name][at] = amount
        for names, masks in ((node.pools, self._pools), (node.features, self._features)):
            for name in names:
                if name not in masks:
                    masks[name] = np.zeros_like(self.available)
                masks[name][at] = True

    def _replace(self, at: int, old: NodeDescription, node: NodeDescription) -> None:
        """What a node has beyond its old description is free, and nothing else of that holds."""
        self.free.processors[at] += node.processors - old.processors
        self.free.memory[at] += (node.memory or int(UNMANAGED)) - (old.memory or int(UNMANAGED))
        for name, amount in old.gres:
            self.free.gres[name][at] -= amount
            self.whole.gres[name][at] -= amount
        for mask in (*self._pools.values(), *self._features.values()):
            mask[at] = False
        for sizes in self._sizes.values():
            sizes[at] = 0

    def group(self, domain_of: Mapping[str, str]) -> None:
        """From now on what is taken and given back is told by domain: pool -> the name of its domain. A pool
        that is not among them is a domain of its own name."""
        self._domain_of = domain_of
        self._domains = {}

    def _domains_of(self, pools: tuple[str, ...]) -> tuple[str, ...]:
        """The domains of a node's pools, each once."""
        found = self._domains.get(pools)
        if found is None:
            known = self._domain_of
            found = self._domains[pools] = tuple(dict.fromkeys([known.get(pool, pool) for pool in pools]))
        return found

    def _append(self, node: NodeDescription) -> int:
        at = len(self.names)
        self._located.clear()
        self._kept.clear()
        self._passing = None
        self.names.append(node.name)
        self.index[node.name] = at
        if at == len(self.total):
            self._grow(max(64, 2 * at))
        self.free.processors[at] = node.processors
        self.free.memory[at] = node.memory or UNMANAGED
        return at

    def _grow(self, size: int) -> None:
        def more(array: NDArray, fill: float = 0) -> NDArray:
            bigger = np.full(size, fill, array.dtype)
            bigger[: len(array)] = array
            return bigger

        self.total = more(self.total)
        self.available = more(self.available)
        self.behind = more(self.behind)
        self.lenders = more(self.lenders)
        self._is_on = more(self._is_on, True)
        self._kind = more(self._kind)
        self.reserved_from = more(self.reserved_from, np.inf)
        self.free, self.whole = (
            Free(more(what.processors), more(what.memory), {k: more(v) for k, v in what.gres.items()})
            for what in (self.free, self.whole)
        )
        self._pools = {k: more(v) for k, v in self._pools.items()}
        self._features = {k: more(v) for k, v in self._features.items()}
        self._sizes = {k: more(v) for k, v in self._sizes.items()}

    def set_available(self, name: str, available: bool) -> None:
        self.told += 1
        self.available[self.index[name]] = available
        self._all_available = bool(self.available[: len(self.names)].all())

    def locate(self, placement: Placement, *, passing: bool = False) -> Located:
        """A placement by the indices of its nodes; kept until a job gives it back, but for one that is only
        ``passing``."""
        found = self._located.get(id(placement)) or self._kept.get(id(placement))
        if found is None:
            found = self._passing
            if found is None or found.placement is not placement:
                found = Located(placement, self.index)
            if passing:
                self._passing = found
            else:
                self._note(found)
        return found

    def _note(self, place: Located) -> None:
        """Where a placement is stays known for a while."""
        self._noted += place.known + 1
        if self._noted > _KEPT:
            self._located.clear()
            self._noted = place.known + 1
        self._located[id(place.placement)] = place

    def keep(self, placement: Placement) -> None:
        """A placement that is given to one job after another: where it is stays known between them."""
        if len(self._kept) >= _KEPT_FOR_GOOD:
            self._kept.clear()
        self._kept[id(placement)] = self.locate(placement)

    def ones(self, nodes: int) -> Placement:
        """A processor of each node of a set (:func:`bits`), in their order; it is located at once."""
        if nodes.bit_count() <= MANY:
            few = tuple([(self.names[node], 1) for node in nodes_of(nodes)])
            self._note(Located(few, self.index))
            return few
        found = array_of(nodes)
        placement = self._processor_of_each(found)
        self._note(Located.of(placement, found, np.ones(len(found), np.int64)))
        return placement

    def placed(self, nodes: NDArray[np.intp], counts: Ints) -> Placement:
        """The placement that has so many processors of each of these nodes. Of many nodes, their places are
        known until another placement is made or looked up."""
        if len(nodes) <= MANY:
            names = self.names
            return tuple([(names[i], n) for i, n in zip(nodes.tolist(), counts.tolist(), strict=True)])
        if int(counts.min()) == int(counts.max()) == 1:
            placement = self._processor_of_each(nodes)
        else:
            placement = tuple(zip(self._names_of(nodes), counts.tolist(), strict=True))
        self._passing = Located.of(placement, nodes.copy(), counts)
        return placement

    def _processor_of_each(self, nodes: NDArray[np.intp]) -> Placement:
        if len(self._ones) != len(self.names):
            self._ones = np.fromiter(((name, 1) for name in self.names), np.object_, len(self.names))
        return tuple(self._ones[nodes].tolist())

    def _names_of(self, nodes: NDArray[np.intp]) -> list[str]:
        if len(self._named) != len(self.names):
            self._named = np.array(self.names, np.object_)
        names: list[str] = self._named[nodes].tolist()
        return names

    def _has_too_little(self, nodes: Sequence[int] | Ints) -> bool:
        """Whether more is taken of one of these nodes than it has."""
        free = self.free.processors
        if isinstance(nodes, np.ndarray):
            return bool((free[nodes] < 0).any())
        return any(free[node] < 0 for node in nodes)

    def pool_mask(self, *pools: str) -> Bools:
        """Which nodes belong to a pool, or to any of several."""
        mask = self._pools.get(pools[0])
        if mask is None:
            mask = np.zeros(len(self.total), np.bool_)
        for pool in pools[1:]:
            other = self._pools.get(pool)
            mask = mask if other is None else mask | other
        return mask

    def any_in(self, pools: Collection[str], nodes: Iterable[str]) -> bool:
        """Whether any of the nodes belongs to any of the pools."""
        known = self.descriptions
        return any(n in known and not set(known[n].pools).isdisjoint(pools) for n in nodes)

    def count(self, *pools: str) -> tuple[int, int]:
        """Usable processors of a pool, or of several together, and how many of them are free. A node of which
        more is taken than it has takes nothing from the others."""
        mask = self.pool_mask(*pools) & self.available
        return int(self.total[mask].sum()), int(np.maximum(self.free.processors[mask], 0).sum())

    def mask_of(self, names: Iterable[str]) -> Bools:
        """The nodes of these names, as far as they are known."""
        mask = np.zeros(len(self.total), np.bool_)
        mask[[self.index[name] for name in names if name in self.index]] = True
        return mask

    def eligible(self, request: Request, pool: str, available_only: bool = True) -> Bools:
        """Nodes that a request may use at all: pool, state, features, sizes, names."""
        mask = self.pool_mask(pool)
        if available_only:
            mask = mask & self.available
        for feature in request.features:
            has = self._features.get(feature)
            if has is None:
                return np.zeros(len(self.total), np.bool_)
            mask = mask & has
        for name, least in request.least_sizes:
            sizes = self._sizes.get(name)
            if sizes is None:
                return np.zeros(len(self.total), np.bool_)
            mask = mask & (sizes >= least)
        if request.excluded_nodes:
            mask = mask.copy()
            mask[[self.index[n] for n in request.excluded_nodes if n in self.index]] = False
        return mask
