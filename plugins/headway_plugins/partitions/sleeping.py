"""The partition manager over nodes that sleep and wake: for which jobs they boot, and when they sleep again.

The same two ways as on a torus, after Y. Aridor and others (2005), on nodes whose power saving boots them:

``on-demand``
    the manager wakes the nodes that a job needs, and they sleep again after it, as do all nodes that no job
    needs.
``prepared``
    jobs run on whole blocks, which stay on.

With ``keep`` a partition without a job stays on for so long in either way. Where a job's partition is:
:mod:`.node_blocks`. Decided here:

- The manager wakes nodes for the first ``depth`` jobs of each queue. For a job that the policy has booked it
  wakes them in time for the booking. For any other job it wakes them at once, but only where the job would be
  over before a booking needs the nodes. Where the policy books nothing, it looks at no job behind a job that
  has no place.
- "In time" is the longest of the nodes' wake times and of the boots seen in this run, and a little more.
- A boot that fails is told, and the job gets another partition; the node counts as down until it is mended.
- A refused order is given again after a minute: to wake, and to sleep if no job needs the nodes then.
- A job of several parts has the nodes of all parts as one partition; prepared, they are all in one block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from headway.decisions import Decision, PowerDown, PowerUp, Start
from headway.events import DecisionFailed, Event, NodeDown, NodePowerChanged, NodeUp
from headway.model import Placement
from headway.model.parts import placements_of
from headway.partitions.bridge import Partition, PartitionState
from headway.resources import Offer
from headway.results import RunResult
from headway.state import Job, PoolState, State, Status
from headway.state.choices import queued_for
from headway.view import View
from headway_plugins.partitions.node_blocks import Ints, NodeBlocks, Site
from headway_plugins.partitions.node_sites import RETRY, NodeSites, named

_INF = float("inf")


#: The events that change what becomes of nodes and orders.
OBSERVED: tuple[type[Event], ...] = (NodePowerChanged, NodeDown, NodeUp, DecisionFailed)


class SleepingNodes(NodeSites):
    """Sees to the partitions of a cluster whose nodes sleep."""

    def observe(self, event: Event) -> None:
        """What became of nodes and orders."""
        self._lateness = None
        if isinstance(event, NodePowerChanged):
            self._now = event.time
            self._sleepers.node_power(event.node, event.power)
        elif isinstance(event, NodeDown):
            self._now = event.time
            self._sleepers.node_broken(event.node, event.reason)
        elif isinstance(event, NodeUp):
            if event.node.available:
                self._sleepers.node_there(event.node.name)
        elif isinstance(event, DecisionFailed):
            if isinstance(event.decision, PowerDown):
                self._sleepers.refused(event.decision.nodes)
            if isinstance(event.decision, PowerUp | PowerDown):
                self._retry.append((event.time + RETRY, event.decision))

    def decided(self, decisions: Iterable[Decision]) -> None:
        """Count."""
        self._counts["starts"] += sum(isinstance(decision, Start) for decision in decisions)

    def admit_job(self, job: Job) -> str | None:
        """A refusal of a job that no block could ever hold."""
        if job.pool.flat or self._of(job.pool.name).fits_at_all(job.request):
            return None
        return f"no partition for {job.processors} processors exists: no switch connects as many nodes"

    def place(self, job: Job, offer: Offer, view: View) -> Placement | tuple[()]:
        """The job's nodes at the time of an offer."""
        blocks, site = self._of(job.pool.name), self._site(job, offer, view)
        if self._prepared and job.request.parts:
            return self._place_part(job, offer, blocks, site)
        found = blocks.find(offer, site)
        return () if found is None else found[1]

    def _place_part(self, job: Job, offer: Offer, blocks: NodeBlocks, site: Site) -> Placement | tuple[()]:
        """The nodes of a part, where all parts of the job find nodes in the same block."""
        table, request = self._state.nodes, job.request
        eligible = table.eligible(request, job.pool.name)
        end = offer.time + job.expected_runtime
        unreserved = table.unreserved(offer.time, end, self._state.inside(job))
        if unreserved is not None:
            eligible = eligible & unreserved
        together = blocks.find_together(request, eligible, offer.free, site)
        if together is None:
            return ()
        for part, placement in zip(request.parts, placements_of(request, together), strict=True):
            # Of equal parts, the first whose nodes no part has yet.
            if part is offer.request and all(offer.slots[table.index[name]] for name, _ in placement):
                return placement
        return ()

    def control(self, state: State) -> list[Decision]:
        """Bring the partitions in line with the jobs that run and wait."""
        self._now, self._due = state.now, _INF
        self._lateness = None
        self._again()
        running = {
            entry[3].id: entry[3]
            for domain in state.domains.values() if not domain.flat for entry in domain.running
        }  # fmt: skip
        self._follow(running)
        plan: dict[str, tuple[str, ...]] = {}
        for pool in state.pools.values():
            if not pool.flat and pool.open:
                self._plan(pool, plan)
        self._carry_out(plan)
        self._give_back()
        orders = list(self._orders())
        self._lateness = None
        if self._due < _INF:
            for pool in state.pools.values():
                state.wake_at(self._due, pool)
                break
        return orders

    def _again(self) -> None:
        left = []
        for time, order in self._retry:
            if time > self._now:
                left.append((time, order))
                self._later(time)
            elif isinstance(order, PowerUp):
                self._sleepers.refused(order.nodes)
            else:
                self._sleepers.may_sleep(order.nodes)
        self._retry = left

    def _follow(self, running: dict[str, Job]) -> None:
        """Jobs that are gone leave their partitions; jobs that have come are on their partitions."""
        for job_id in [job_id for job_id in self._running if job_id not in running]:
            name = self._running.pop(job_id)
            self._sleepers.vacate(name)
            self._idle[name] = self._now
        for job_id, job in running.items():
            if job_id in self._running or not job.placement:
                continue
            table = self._state.nodes
            block = self._of(job.pool.name).block_of(job.placement)
            nodes = tuple(table.names[at] for at in block if table.available[at] or not self._prepared)
            name = self._made_of(nodes)
            wanted = self._wanted.pop(job_id, None)
            if wanted not in (None, name):
                # It was booted for the job, which has found another place.
                self._idle.setdefault(wanted, self._now)
            if self._sleepers.create_partition(name).ok:
                self._sleepers.occupy(name, job_id)
                self._running[job_id] = name
                self._idle.pop(name, None)

    def _plan(self, pool: PoolState, plan: dict[str, tuple[str, ...]]) -> None:
        """The nodes that are to be on for the jobs that wait in a pool."""
        domain, queue = pool.domain, queued_for(pool)
        if not queue:
            return
        table, blocks = self._state.nodes, self._of(pool.name)
        free = table.free.processors == table.total
        there = [(entry[3], entry[3].placement) for entry in domain.running]
        idle = free & table.available & ~blocks.taken(there, free)
        idle &= ~self._mask(name for nodes in plan.values() for name in nodes)
        bookings = {b.job.id: b for b in domain.view.bookings} if domain.view is not None else {}
        lead = self._lead(pool)
        kept: list[tuple[float, Ints]] = []
        for job in queue[: self._depth]:
            if job.status is not Status.PENDING or job.id in plan:
                # A job of several pools has its nodes in the first that has some.
                continue
            booking = bookings.get(job.id)
            if booking is not None and booking.placement:
                found: Ints | None = self._block_of(blocks, booking.placement)
                if booking.start - lead > self._now:
                    kept.append((booking.start, blocks.block_of(booking.placement)))
                    self._later(booking.start - lead)
                    continue
            else:
                room = idle.copy()
                for start, nodes in kept:
                    if self._now + lead + job.estimate > start:
                        room[nodes] = False
                found = self._find(job, pool, blocks, room, lead)
                if found is None and not bookings:
                    break
            if found is not None:
                plan[job.id] = tuple(table.names[at] for at in found)
                idle[found] = False

    def _carry_out(self, plan: dict[str, tuple[str, ...]]) -> None:
        """Have the partitions of the plan booted, and none that was wanted for a job before."""
        for job_id, name in list(self._wanted.items()):
            if plan.get(job_id) != self._nodes(name):
                del self._wanted[job_id]
                self._idle.setdefault(name, self._now)
        for job_id, nodes in plan.items():
            name = self._made_of(nodes)
            if self._wanted.get(job_id) != name:
                self._counts["boots"] += any(node in self._state.nodes.power for node in nodes)
            self._wanted[job_id] = name
            self._idle.pop(name, None)
            self._sleepers.create_partition(name)

    def _give_back(self) -> None:
        """Give back partitions that no job has had for long enough, and nodes that are in no partition."""
        needed = {*self._wanted.values(), *self._running.values()}
        for name, since in list(self._idle.items()):
            found = self._sleepers.get_partition(name)
            if found is None or name in needed or found.state is PartitionState.FREE:
                del self._idle[name]
            elif since + self._keep <= self._now:
                self._counts["given_back"] += self._sleepers.destroy_partition(name).changed
                del self._idle[name]
            else:
                self._later(since + self._keep)
        machine = self._sleepers.get_machine()
        for partition in machine.partitions:
            if partition.state is PartitionState.FREE and partition.spec.id not in needed:
                self._sleepers.remove_partition(partition.spec.id)
                if self._by_nodes.get(partition.spec.nodes) == partition.spec.id:
                    del self._by_nodes[partition.spec.nodes]
        if self._keep < _INF:
            self._let_lone_nodes_sleep(machine.partitions)

    def _let_lone_nodes_sleep(self, partitions: Iterable[Partition]) -> None:
        """Nodes that are on without an order: since before this run, or mended, or woken by hand."""
        table = self._state.nodes
        owned = {node for partition in partitions for node in partition.spec.nodes}
        free = (table.free.processors == table.total) & table.available & (table.total > 0)
        lone = [
            name for at, name in enumerate(table.names)
            if free[at] and name not in owned and name not in table.power
        ]  # fmt: skip
        self._lone = {name: self._lone.get(name, self._now) for name in lone}
        tired = [name for name, since in self._lone.items() if since + self._keep <= self._now]
        self._sleepers.let_sleep(tired)
        for since in self._lone.values():
            self._later(since + self._keep)

    def _orders(self) -> Iterator[Decision]:
        wake, sleep = self._sleepers.orders()
        table = self._state.nodes
        if self._power and (kept := [name for name in sleep if table.lenders[table.index[name]]]):
            # A suspended job still has its memory there.
            self._sleepers.refused(kept)
            self._retry.append((self._now + RETRY, PowerDown(tuple(kept))))
            self._later(self._now + RETRY)
            sleep = tuple(name for name in sleep if name not in kept)
        if not self._power:
            self._sleepers.refused(sleep)
            return
        if wake:
            self._counts["nodes_woken"] += len(wake)
            waiting = [job for job, name in self._wanted.items() if set(self._nodes(name)) & set(wake)]
            waiters = f"job {waiting[0]}" if len(waiting) == 1 else f"{len(waiting)} jobs"
            yield PowerUp(wake, f"partitions for {waiters}")
        if sleep:
            yield PowerDown(sleep, "no partition needs them")

    def why_not_placed(self, job: Job) -> str:
        """What a job waits for."""
        found = self._sleepers.get_partition(self._wanted.get(job.id, ""))
        if found is None or found.state is not PartitionState.CONFIGURING:
            return ""
        nodes = found.spec.nodes
        on = sum(node not in self._state.nodes.power for node in nodes)
        return (
            f"It waits for its partition, {named(nodes)}, which is being booted: {on} of {len(nodes)} nodes"
            " are on"
        )

    def figures(self, result: RunResult) -> dict[str, Any]:
        """What it cost."""
        return {
            **self._counts,
            "boots_per_job": self._counts["boots"] / max(self._counts["starts"], 1),
            "boot_seconds": self._boot_seconds / max(self._booted, 1),
        }
