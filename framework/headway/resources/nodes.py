"""Nodes as arrays: what each has free, which job fits where, and how a request becomes a placement.

One table serves the whole cluster; pools are masks over it, so overlapping pools (partitions that
share nodes) see each other's jobs. All arrays have one entry a node, in the order in which the
nodes were added.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from headway.errors import StateError
from headway.model import NodeDescription, Placement, Request, Reservation
from headway.model.parts import by_node, divided, placements_of
from headway.resources.free import (
    MANY,
    UNMANAGED,
    Bools,
    Free,
    Ints,
    Located,
    bits,
    gres_on_node,
    memory_on_node,
    nodes_of,
    takes_processors_alone,
)
from headway.resources.offer import Offer
from headway.resources.profile import next_after

#: Once so many nodes of placements were found, where any placement is is found anew: more than the jobs that
#: run have, or nothing is gained, and little memory.
_KEPT = 1 << 18
#: And of so many that one job after another is given.
_KEPT_FOR_GOOD = 4096

_INF = float("inf")


class NodeTable:
    """All nodes of a cluster."""

    def __init__(self) -> None:
        self.descriptions: dict[str, NodeDescription] = {}
        self.index: dict[str, int] = {}
        self.names: list[str] = []
        #: One processor of each.
        self._pairs: list[tuple[str, int]] = []
        self.total: Ints = np.zeros(0, np.int64)
        self.free = Free(np.zeros(0, np.int64), np.zeros(0, np.int64), {})
        #: What the nodes have when they are idle.
        self.whole = Free(np.zeros(0, np.int64), np.zeros(0, np.int64), {})
        self.available: Bools = np.zeros(0, np.bool_)
        #: Processors that have a process in the background, whoever is in front of it.
        self.behind: Ints = np.zeros(0, np.int64)
        #: How many suspended jobs each node has whose processors others may have.
        self.lenders: Ints = np.zeros(0, np.int64)
        #: Nodes that somebody has for himself alone (:func:`bits`).
        self._whole_nodes = 0
        #: Power states of nodes that are not on: "asleep", "falling asleep", "waking".
        self.power: dict[str, str] = {}
        #: When a node that is not on is expected to be (absolute seconds); for one that nobody wakes,
        #: seconds from whenever somebody does. Nodes that are on are not looked at.
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
        #: By their identity: placements of which somebody asked where they are.
        self._located: dict[int, Located] = {}
        #: How many nodes those had that came since it was empty.
        self._noted = 0
        #: The same of placements that one job after another is given.
        self._kept: dict[int, Located] = {}

    def __len__(self) -> int:
        return len(self.names)

    # ------------------------------------------------------------------ changes

    def put(self, node: NodeDescription) -> None:
        """Add a node, or replace its description; what runs on it stays on it."""
        self.told += 1
        old = self.descriptions.get(node.name)
        if old is None:
            at = self._append(node)
        else:
            at = self.index[node.name]
            self.free.processors[at] += node.processors - old.processors
            self.free.memory[at] += (node.memory or int(UNMANAGED)) - (old.memory or int(UNMANAGED))
            for name, amount in old.gres:
                self.free.gres[name][at] -= amount
                self.whole.gres[name][at] -= amount
            for mask in (*self._pools.values(), *self._features.values()):
                mask[at] = False
            for sizes in self._sizes.values():
                sizes[at] = 0
        self.descriptions[node.name] = node
        self.total[at] = self.whole.processors[at] = node.processors
        self.whole.memory[at] = node.memory or UNMANAGED
        self.available[at] = node.available
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
        self.names.append(node.name)
        self._pairs.append((node.name, 1))
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
        self.reserved_from = more(self.reserved_from, np.inf)
        self.free, self.whole = (
            Free(more(what.processors), more(what.memory), {k: more(v) for k, v in what.gres.items()})
            for what in (self.free, self.whole)
        )
        self._pools = {k: more(v) for k, v in self._pools.items()}
        self._features = {k: more(v) for k, v in self._features.items()}
        self._sizes = {k: more(v) for k, v in self._sizes.items()}

    def set_power(self, name: str, power: str, time: float) -> None:
        """A node's power state since ``time``: "on", "asleep", "falling asleep" or "waking"."""
        self.told += 1
        at = self.index[name]
        if power == "on":
            self.power.pop(name, None)
            self._wakes.pop(at, None)
            return
        wake = self.descriptions[name].wake_time
        self.power[name] = power
        self._wakes[at] = (True, time + wake) if power == "waking" else (False, wake)

    def set_available(self, name: str, available: bool) -> None:
        self.told += 1
        self.available[self.index[name]] = available
        self._all_available = bool(self.available[: len(self.names)].all())

    def set_reservations(self, reservations: Iterable[Reservation]) -> None:
        """The reservations that are not over, all of them."""
        self.reserved_from[:] = np.inf
        self.reservations = {}
        for reservation in reservations:
            for name in reservation.nodes:
                at = self.index.get(name)
                if at is not None:
                    self.reserved_from[at] = min(self.reserved_from[at], reservation.start)
                    self.reservations.setdefault(at, []).append(reservation)

    @property
    def unbound(self) -> bool:
        """What can be had now depends on no time: no node is reserved, asleep or on its way."""
        return not (self.reservations or self._wakes)

    def locate(self, placement: Placement, *, passing: bool = False) -> Located:
        """A placement by the indices of its nodes; kept until a job gives it back, but for one that is only
        ``passing``."""
        found = self._located.get(id(placement)) or self._kept.get(id(placement))
        if found is None:
            found = Located(placement, self.index)
            if not passing:
                self._note(found)
        return found

    def _note(self, place: Located) -> None:
        """Where a placement is stays known for a while."""
        self._noted += len(place.nodes) + 1
        if self._noted > _KEPT:
            self._located.clear()
            self._noted = len(place.nodes) + 1
        self._located[id(place.placement)] = place

    def keep(self, placement: Placement) -> None:
        """A placement that is given to one job after another: where it is stays known between them."""
        if len(self._kept) >= _KEPT_FOR_GOOD:
            self._kept.clear()
        self._kept[id(placement)] = self.locate(placement)

    def ones(self, nodes: int) -> Placement:
        """A processor of each node of a set (:func:`bits`), in their order; it is located at once."""
        found = nodes_of(nodes)
        pairs = self._pairs
        placement = tuple([pairs[node] for node in found])
        self._note(Located.ones(placement, found, nodes))
        return placement

    def take(self, request: Request, placement: Placement) -> dict[str, tuple[int, int]]:
        """A job occupies its nodes. Returns for each domain (:meth:`group`) its processors: all, and
        those on usable nodes."""
        return self._move(request, placement, 1)

    def give_back(self, request: Request, placement: Placement) -> dict[str, tuple[int, int]]:
        """A job leaves its nodes; returns as :meth:`take`."""
        return self._move(request, placement, -1)

    def _move(self, request: Request, placement: Placement, sign: int) -> dict[str, tuple[int, int]]:
        self.moves += 1
        place = self.locate(placement)
        nodes, counts, arrays = place.nodes, place.counts, place.arrays
        self.free.take_at(request, place, sign)
        if request.exclusive or request.parts:
            whole = place.bits if request.exclusive else 0
            for part, its_nodes, _ in divided(request, nodes, counts) if request.parts else ():
                if part.exclusive:
                    for node in its_nodes:
                        whole |= 1 << node
            self._whole_nodes = self._whole_nodes | whole if sign > 0 else self._whole_nodes & ~whole
        if sign < 0:
            self._located.pop(id(placement), None)
        if not self._overfull and sign > 0:
            self._overfull = self._has_too_little(nodes if arrays is None else arrays[0])
        if self._overfull:
            return self._shares_beside_overfull(place, sign)
        if self._same_pools is not None and nodes and (self._all_available or arrays is not None):
            usable = total = place.processors if place.clear else sum(counts)
            if arrays is not None and not self._all_available:
                usable = int(self.available[arrays[0]] @ arrays[1])
            return dict.fromkeys(self._domains_of(self._same_pools), (total, usable))
        shares: dict[str, tuple[int, int]] = {}
        for node, count in zip(nodes, counts, strict=True):
            usable = count if self.available[node] else 0
            for domain in self._domains_of(self.descriptions[self.names[node]].pools):
                total, free = shares.get(domain, (0, 0))
                shares[domain] = (total + count, free + usable)
        return shares

    def _has_too_little(self, nodes: Sequence[int] | Ints) -> bool:
        """Whether more is taken of one of these nodes than it has."""
        free = self.free.processors
        if isinstance(nodes, np.ndarray):
            return bool((free[nodes] < 0).any())
        return any(free[node] < 0 for node in nodes)

    def _shares_beside_overfull(self, place: Located, sign: int) -> dict[str, tuple[int, int]]:
        """As :meth:`take`, after the move: a processor that two have was free for nobody else, and is not
        free when one of them leaves."""
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
            for domain in self._domains_of(self.descriptions[self.names[node]].pools):
                total, free = shares.get(domain, (0, 0))
                shares[domain] = (total + count, free + usable)
        if sign < 0:
            self._overfull = self._has_too_little(np.arange(len(self.names)))
        return shares

    # ------------------------------------------------------------------ the background

    def take_behind(self, request: Request, placement: Placement) -> None:
        """A job is on its nodes in the background: it takes no processor from anybody in front, but memory
        and generic resources as everybody does."""
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

    # ------------------------------------------------------------------ suspended jobs

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

    def free_behind(self) -> Free:
        """What each node has left for the background."""
        processors = self.total - self.behind
        if self._whole_nodes:
            processors[nodes_of(self._whole_nodes)] = 0
        return Free(processors, self.free.memory, self.free.gres)

    def guard_behind(self, request: Request, placement: Placement, pool: str) -> None:
        """As :meth:`guard`, for the background: no processor has two processes there."""
        if request.exclusive:
            raise StateError("the job asks for whole nodes, and nobody has one in the background")
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

    # ------------------------------------------------------------------ questions

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
        """Whether many nodes have their processors ``free`` for a request that asks for nothing else (all of
        them, where it asks for whole nodes), looked at at once; if not, somebody has to look at each of them
        and say why."""
        if len(placement) <= MANY or self.power or self._same_pools is None or pool not in self._same_pools:
            return False
        if not takes_processors_alone(request):
            return False
        place = self.locate(placement)
        if not place.clear or place.arrays is None:
            return False
        nodes, counts = place.arrays
        if not (self._all_available or self.available[nodes].all()):
            return False
        left = free[nodes]
        if not request.exclusive:
            return not np.count_nonzero(left < counts)
        if np.count_nonzero(left != counts) or np.count_nonzero(self.behind[nodes]):
            return False
        return not np.count_nonzero(left != self.total[nodes])

    def _guard_shared(self, request: Request, placement: Placement, pool: str) -> None:
        """As :meth:`guard`, for parts that may have the same nodes."""
        nodes = [self._guard_usable(name, max(count, 1), pool) for name, count in placement]
        node = self.free.lacking(request, nodes, [count for _, count in placement])
        if node is not None:
            raise StateError(f"node {self.names[node]} has too little free for all that is to be there")

    def offers(self, placement: Placement, free: Ints, *, shared: bool = False) -> bool:
        """Whether a placement names nodes that are known, each once, and of none more processors than are
        ``free`` there. ``shared``: parts may have the same nodes."""
        if shared:
            found = by_node(placement)
            return all(name in self.index and n <= free[self.index[name]] for name, n in found.items())
        place = self._kept.get(id(placement))
        if place is not None and place.clear and place.arrays is not None:
            nodes, counts = place.arrays
            return not np.count_nonzero(free[nodes] < counts)
        at = [self.index.get(name, -1) for name, _ in placement]
        if len(set(at)) < len(at) or -1 in at:
            return False
        room = free[at].tolist() if at else at
        return all([0 < count <= most for most, (_, count) in zip(room, placement, strict=True)])

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

    def broken(self, placement: Placement, start: float, end: float, own: str) -> Reservation | None:
        """A reservation other than ``own`` that a job on these nodes during [start, end) would break."""
        if self.reservations:
            for name, _ in placement:
                for kept in self.reservations.get(self.index.get(name, -1), ()):
                    if kept.id != own and kept.start < end and start < kept.end:
                        return kept
        return None

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

    def mask_of(self, names: Iterable[str]) -> Bools:
        """The nodes of these names, as far as they are known."""
        mask = np.zeros(len(self.total), np.bool_)
        mask[[self.index[name] for name in names if name in self.index]] = True
        return mask

    def can_host(
        self,
        request: Request,
        pool: str,
        *,
        confined: Iterable[str] | None = None,
        available_only: bool = True,
    ) -> bool:
        """Whether a request finds its nodes in an idle pool, or among those that it is ``confined`` to."""
        eligible = self.eligible(request, pool, available_only)
        if confined is not None:
            eligible = eligible & self.mask_of(confined)
        slots = self.slots(request, eligible, self.whole)
        if int(slots.sum()) < request.processors:
            return False
        offer = Offer(self, request, slots, self.whole)
        return offer.take(offer.feasible) is not None

    def unreserved(
        self, start: float, end: float, reservation: str, *, confined: bool = True, over: Collection[str] = ()
    ) -> Bools | None:
        """Nodes on which [start, end) breaks no reservation but ``reservation``; None for "all of them".

        For a job that runs inside ``reservation``, that reservation's nodes only; unless it is not
        ``confined`` to it. Reservations in ``over`` yield.
        """
        if not self.reservations:
            return None
        if not reservation and not (self.reserved_from < end).any():
            return None
        confined = confined and bool(reservation)
        mask = np.full(len(self.total), not confined)
        for node, kept in self.reservations.items():
            if confined:
                mask[node] = any(r.id == reservation for r in kept)
            if mask[node]:
                mask[node] = not any(
                    r.id != reservation and r.id not in over and r.start < end and start < r.end for r in kept
                )
        return mask

    def on_by(self, time: float, now: float) -> Bools | None:
        """Nodes that can be on at ``time`` if whoever sleeps is woken ``now``; None for "all of them".

        One that should be on already, and is not, may be any moment, but not now.
        """
        if not self._wakes:
            return None
        mask = np.ones(len(self.total), np.bool_)
        for node, moment in self._waking(now):
            mask[node] = moment <= time
        return mask

    def on_from(self, now: float) -> dict[str, float]:
        """Nodes that are not on -> from when on each can be (see :meth:`on_by`)."""
        return {self.names[node]: moment for node, moment in self._waking(now)}

    def on_times(self, now: float) -> list[float]:
        """The moments after ``now`` from which on more nodes can be on (see :meth:`on_by`)."""
        return sorted({moment for _, moment in self._waking(now)})

    def _waking(self, now: float) -> Iterable[tuple[int, float]]:
        soon = next_after(now)
        for node, (begun, time) in self._wakes.items():
            yield node, max(time if begun else now + time, soon)

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
