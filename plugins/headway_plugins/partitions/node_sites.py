"""The partitions of a cluster whose nodes sleep, and the nodes that a job could have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from headway.decisions import PowerDown, PowerUp
from headway.model import Placement, SwitchDescription
from headway.partitions.bridge import Partition, PartitionSpec, PartitionState
from headway.partitions.sleepers import Sleepers
from headway.resources import Offer
from headway.resources.placing_parts import place_parts
from headway.state import Job, PoolState, State
from headway.view import View
from headway_plugins.partitions.node_blocks import Bools, Ints, NodeBlocks, Site

_INF = float("inf")
#: Seconds by which a node is woken earlier than it has to be, and after which a refused order is repeated.
_MARGIN, RETRY = 5.0, 60.0


class _Late:
    """The nodes that would have to be booted for a job, and nodes that are booted for other jobs."""

    def __init__(self, for_all: Bools, own: dict[str, Ints]) -> None:
        """``for_all``: for a job for which no node is booted; ``own``: by job, the nodes booted for it."""
        self._for_all, self._own = for_all, own

    def of(self, job: Job) -> Bools:
        """The late nodes of a job, not to be changed."""
        own = self._own.get(job.id)
        if own is None:
            return self._for_all
        late = self._for_all.copy()
        late[own] = False
        return late


class NodeSites:
    """What is known of the nodes and their partitions."""

    def __init__(
        self,
        state: State,
        switches: Sequence[SwitchDescription],
        *,
        prepared: bool,
        unit: int,
        keep: float,
        depth: int,
        power: bool,
    ) -> None:
        """``keep``: seconds for which a partition without a job stays on. ``power``: the cluster can wake
        nodes and put them to sleep; without, all that is left is where jobs are placed."""
        self._switches, self._prepared, self._unit = switches, prepared, unit
        self._keep, self._depth, self._power = keep, depth, power
        table = state.nodes
        self._sleepers = Sleepers(table.names, self._changed)
        for node in table.descriptions.values():
            if not node.available:
                self._sleepers.node_broken(node.name, node.reason)
        self._blocks: dict[str, NodeBlocks] = {}
        self._now = 0.0
        self._state = state
        self._made = 0
        #: Partitions that wait for a job, and partitions that have a job: by job.
        self._wanted: dict[str, str] = {}
        self._running: dict[str, str] = {}
        #: By its nodes: a partition that is there.
        self._by_nodes: dict[tuple[str, ...], str] = {}
        #: Since when a partition, or a node that is in none, is on without a job.
        self._idle: dict[str, float] = {}
        self._lone: dict[str, float] = {}
        #: Which job would come late where, as long as nothing is told and ordered.
        self._lateness: _Late | None = None
        #: Since when each partition is being booted.
        self._booting: dict[str, float] = {}
        self._longest = 0.0
        #: When a refused order may be given again, and which.
        self._retry: list[tuple[float, PowerUp | PowerDown]] = []
        self._due = -_INF
        self._counts = {"boots": 0, "failed_boots": 0, "given_back": 0, "starts": 0, "nodes_woken": 0}
        self._boot_seconds = 0.0
        self._booted = 0

    def _changed(self, partition: Partition) -> None:
        """A partition came to another state."""
        name, began = partition.spec.id, self._booting.pop(partition.spec.id, None)
        if partition.state is PartitionState.CONFIGURING:
            self._booting[name] = self._now
        elif partition.state is PartitionState.READY and began is not None and self._now > began:
            self._longest = max(self._longest, self._now - began)
            self._boot_seconds += self._now - began
            self._booted += 1
        elif partition.state is PartitionState.DEALLOCATING and partition.message and began is not None:
            self._counts["failed_boots"] += 1
            self._state.notices.append(
                f"partitions: {named(partition.spec.nodes)} did not boot: {partition.message}"
            )

    def _of(self, pool: str) -> NodeBlocks:
        known = self._blocks.get(pool)
        if known is None or not known.is_of(self._state.nodes):
            known = self._blocks[pool] = NodeBlocks(
                self._state.nodes, pool, self._switches, self._unit, self._prepared
            )
        return known

    def _site(self, job: Job, offer: Offer, view: View) -> Site:
        table = view.nodes
        free = offer.free.processors == table.total
        there = [(entry[3], entry[3].placement) for entry in view.running]
        there += [(booking.job, booking.placement) for booking in view.bookings if booking.job is not job]
        idle = free & ~self._of(job.pool.name).taken(there, free)
        on = None
        if offer.time <= view.now and not offer.slots[self._mask(table.power)].any():
            # It is for a start, not about what would be possible if sleeping nodes were on.
            on = self._on()
            idle = idle & on
        return Site(idle, self._late(job), on)

    def _mask(self, names: Iterable[str]) -> Bools:
        return self._state.nodes.mask_of(names)

    def _on(self) -> Bools:
        return ~self._mask([*self._state.nodes.power, *self._sleepers.leaving()])

    def _late(self, job: Job) -> Bools:
        """The nodes that would have to be booted for a job, and nodes that are booted for other jobs."""
        if self._lateness is None:
            table = self._state.nodes
            sleeps = [name for name, power in table.power.items() if power != "waking"]
            late = self._mask([*sleeps, *self._sleepers.leaving()])
            own = {
                job_id: np.array([table.index[node] for node in self._nodes(name)], np.int64)
                for job_id, name in self._wanted.items()
            }
            for nodes in own.values():
                late[nodes] = True
            self._lateness = _Late(late, own)
        return self._lateness.of(job)

    def _nodes(self, name: str) -> tuple[str, ...]:
        found = self._sleepers.get_partition(name)
        return found.spec.nodes if found is not None else ()

    def _later(self, time: float) -> None:
        """Look again then, if nothing happens before."""
        if time > self._now:
            self._due = min(self._due, time)

    def _made_of(self, nodes: tuple[str, ...]) -> str:
        """The partition of these nodes, made if it is not there."""
        name = self._by_nodes.get(nodes)
        found = self._sleepers.get_partition(name) if name is not None else None
        if name is None or found is None or found.state is PartitionState.DEALLOCATING:
            self._made += 1
            name = self._by_nodes[nodes] = f"P{self._made}"
            self._sleepers.add_partition(PartitionSpec(name, nodes))
        return name

    def _lead(self, pool: PoolState) -> float:
        table = self._state.nodes
        wakes = (table.descriptions[name].wake_time for name in table.power)
        return max([self._longest, *wakes]) + _MARGIN

    def _find(self, job: Job, pool: PoolState, blocks: NodeBlocks, idle: Bools, lead: float) -> Ints | None:
        """The partition for a job for which nothing is booked, among idle nodes, also such that sleep."""
        table, request = self._state.nodes, job.request
        eligible = table.eligible(request, pool.name) & idle
        begin = self._now + lead
        unreserved = table.unreserved(begin, begin + job.estimate, job.description.reservation)
        if unreserved is not None:
            eligible = eligible & unreserved
        offer = Offer(table, request, table.slots(request, eligible, table.free), table.free)
        if int(offer.slots.sum()) < request.processors:
            return None
        site = Site(idle, self._late(job))
        if not request.parts:
            found = blocks.find(offer, site)
            return found[0] if found is not None else None
        if self._prepared:
            together = blocks.find_together(request, eligible, table.free, site)
            return self._block_of(blocks, together) if together is not None else None

        def place(part: Offer) -> Placement | None:
            at = blocks.find(part, site)
            return at[1] if at is not None else None

        placement = place_parts(table, request, pool.name, eligible, table.free, place)
        return self._block_of(blocks, placement) if placement is not None else None

    def _block_of(self, blocks: NodeBlocks, placement: Placement) -> Ints:
        """The nodes that are to be on for a job with this placement."""
        block = blocks.block_of(placement)
        return block[self._state.nodes.available[block]] if self._prepared else block


def named(nodes: Sequence[str]) -> str:
    """Nodes for a person; of many the first and how many more."""
    shown = ", ".join(nodes[:4])
    return f"{shown} and {len(nodes) - 4} more" if len(nodes) > 4 else shown
