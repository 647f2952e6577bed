"""Where a job finds nodes at one moment, beside what is booked and reserved."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headway.model import Placement, Request
from headway.resources import Bools, Free, Ints, Offer, bits, layout_is_open
from headway.resources.placing_parts import place_parts
from headway.state import Status
from headway.state.still_there import nodes_still_taken
from headway.view.interface import View
from headway.view.releases import Releases
from headway.view.timeline import Timeline

if TYPE_CHECKING:
    from headway.state import Job


class NodeFits(View):
    """Nodes, and which of them a job could have."""

    __slots__ = (
        "_bits", "_by_room", "_changes", "_eligible", "_failed", "_kind", "_known", "_largest", "_nowhere",
        "_place", "_reach", "_settled", "_usable", "_without",
    )  # fmt: skip

    def __init__(
        self,
        *args: Any,
        place: Callable[[Job, Offer, View], Placement | None],
        kind: Callable[[Job], Any] | None = None,
        changes: Callable[[Job], Sequence[float]] | None = None,
        by_room: Callable[[], bool] = lambda: False,
    ) -> None:
        """``kind``: what of a job beside its shape decides where ``place`` puts it. ``changes``: when it puts
        a job elsewhere though nothing happens, absolute seconds. ``by_room``: says whether it depends on
        nothing but what nodes have left whether a job finds a place."""
        super().__init__(*args)
        self._by_room = by_room
        #: Shapes that found no place beside what runs alone, and how often something was told and moved by
        #: then: they find none until more is.
        self._nowhere: set[tuple[Any, ...]] = set()
        self._without = (-1, -1)
        self._place = place
        self._kind = kind
        self._changes = changes
        #: What was told of nodes by the time that the following was worked out.
        self._known = -1
        self._eligible: dict[tuple[Any, ...], np.ndarray] = {}
        self._bits: dict[tuple[Any, ...], int] = {}
        #: The processors of the largest node.
        self._largest = 0
        #: 1 for each node of the domain that can be used.
        self._usable: Ints = np.zeros(0, np.int64)
        #: Shape of a request -> runtimes, and the earliest start that was found for each while what is
        #: ahead only became less.
        self._reach: dict[tuple[Any, ...], list[tuple[float, float]]] = {}
        #: Shape of a request that found no place in this cycle -> the shortest runtime that failed.
        #: Unless bookings are dropped, free nodes only become fewer in a cycle, and a longer run meets
        #: more bookings and reservations, so what is as long or longer fails as well.
        self._failed: dict[tuple[Any, ...], float] = {}
        #: Nodes without a start of an earlier cycle of which is not known what it takes there; None: all.
        self._settled: Bools | None = None

    def _overslept(self, now: float) -> bool:
        """Whether a booking counts on nodes that cannot be on by its start any more: no decision woke them,
        or they are late."""
        on = self._state.nodes.on_from(now)
        return any(on.get(name, now) > b.start for b in self.bookings for name, _ in b.placement)

    def _settled_nodes(self) -> Bools | None:
        """The nodes without an unconfirmed start whose processors the batch system shares out itself, and
        without a job that has not left yet.

        The batch system shares them out by what is free at that moment. If a job ends there meanwhile, the
        start may take more on one node, and a job that is started there now would find nothing.
        """
        table = self._state.nodes
        unsettled = nodes_still_taken(self._state) if self._state.before_move else []
        if self._state.cluster.shares_out:
            unsettled += [
                table.index[name]
                for entry in self.domain.running
                if entry[3].status is Status.STARTING and layout_is_open(entry[3].request, entry[3].placement)
                for name, _ in entry[3].placement
            ]
        if not unsettled:
            return None
        settled = np.ones(len(table.total), np.bool_)
        settled[unsettled] = False
        return settled

    def _is_nowhere(self, shape: tuple[Any, ...]) -> bool:
        """Whether it is known that no job of this shape finds a place: a job tried; nothing has changed."""
        table = self._state.nodes
        return self._without == (table.told, table.moves) and shape in self._nowhere

    def _note_nowhere(self, shape: tuple[Any, ...]) -> None:
        table = self._state.nodes
        if not table.unbound:
            return
        known = table.told, table.moves
        if self._without != known:
            self._without = known
            self._nowhere.clear()
        self._nowhere.add(shape)

    def _give_back(self, job: Job, free: Free) -> None:
        """Add what the job has in front to what is free."""
        if job.taken is not None and not job.behind:
            free.take_at(job.taken, self._state.nodes.locate(job.placement), -1)

    def _lend(self, job: Job, free: Free) -> None:
        """Add the job's processors to what is free, and nothing else that it has."""
        if job.taken is not None and not job.behind:
            place = self._state.nodes.locate(job.placement)
            np.add.at(free.processors, *place.as_arrays())

    def _try(
        self,
        job: Job,
        free: Free,
        start: float,
        end: float,
        over: Collection[str] = (),
        among: Bools | None = None,
    ) -> Placement | None:
        """Where the job could run during [start, end) if nodes (``among`` these) have ``free`` left."""
        table = self._state.nodes
        eligible = self._eligible_nodes(job)
        on = table.on_by(start, self.now)
        if on is not None:
            eligible = eligible & on
        if among is not None:
            eligible = eligible & among
        inside = self._state.inside(job)
        named = inside if self._state.confining(job) is not None else ""
        if inside != named and not job.description.reservation:
            # Its own nodes first, so that what is reserved for it stays where it is.
            own = self._on(job, eligible, free, table.unreserved(start, end, inside), start)
            if own is not None:
                return own
        unreserved = table.unreserved(start, end, inside, confined=bool(named))
        found = self._on(job, eligible, free, unreserved, start)
        if found is None and over:
            yielding = table.unreserved(start, end, inside, confined=bool(named), over=over)
            found = self._on(job, eligible, free, yielding, start)
        return found

    def _on(
        self, job: Job, eligible: Bools, free: Free, unreserved: Bools | None, time: float
    ) -> Placement | None:
        """Where the job could start at ``time`` among ``eligible`` nodes that are ``unreserved``."""
        table = self._state.nodes
        request = job.request
        if unreserved is not None:
            eligible = eligible & unreserved
        among = self._eligible_bits(job) if eligible is self._eligible_nodes(job) else None
        offer = table.offer(request, eligible, free, time, among)
        if offer is None:
            return None
        if request.parts:

            def place(offer: Offer) -> Placement | None:
                return self._place(job, offer, self)

            placement = place_parts(table, request, job.pool.name, eligible, free, place, time)
        else:
            placement = self._place(job, offer, self)
        shared = not request.parts_apart
        if placement is not None and not table.offers(placement, free.processors, shared=shared):
            # The placement plugin's mistake, not the policy's: other jobs may have a place.
            self._state.anomalies.append(f"job {job.id} was placed on {placement}, which was not offered")
            return None
        return placement

    def _changing(self, job: Job) -> list[float]:
        """The moments to come at which the job is placed elsewhere though nothing happens."""
        return [] if self._changes is None else [time for time in self._changes(job) if time > self.now]

    def _shape_of(self, job: Job) -> tuple[Any, ...]:
        """All of a job but its runtime that decides where it fits."""
        shape = _shape(job.request, job.description.reservation, job.pool.name)
        return shape if self._kind is None else (*shape, self._kind(job))

    def _whole_nodes(self, request: Request) -> int:
        """How many nodes a request certainly needs as a whole."""
        most = self._largest
        if request.exclusive:
            return max(request.nodes, -(-request.processors // most) if most else 0, 1)
        return request.nodes if request.nodes and request.processors >= request.nodes * most else 0

    def _eligible_nodes(self, job: Job) -> Bools:
        request, pool = job.request, job.pool.name
        key = (pool, request.features, request.excluded_nodes, request.least_sizes)
        eligible = self._eligible.get(key)
        if eligible is None:
            eligible = self._eligible[key] = self._state.nodes.eligible(request, pool)
        return eligible

    def _eligible_bits(self, job: Job) -> int:
        request = job.request
        key = (job.pool.name, request.features, request.excluded_nodes, request.least_sizes)
        known = self._bits.get(key)
        if known is None:
            known = self._bits[key] = bits(self._eligible_nodes(job))
        return known

    def _timeline(self) -> Timeline:
        """What every node has left over time, all bookings taken out."""
        table = self._state.nodes
        grid = self.resolution
        releases = Releases(self.domain.running, table, self.now, grid)
        timeline = Timeline(self.now, releases, table.free, table.total, grid)
        self._reach = {}
        for booking in self._bookings:
            if booking.room is not None:
                timeline.book(booking, table.locate(booking.placement, passing=True))
        return timeline


def _shape(request: Request, reservation: str, pool: str) -> tuple[Any, ...]:
    """All of a request that decides where it fits, without its walltime."""
    return (
        request.processors, request.nodes, request.processors_per_node, request.memory_per_node,
        request.memory_per_processor, request.gres_per_node, request.features, request.required_nodes,
        request.excluded_nodes, request.exclusive, request.processors_per_chunk, request.least_sizes,
        request.parts, request.switches, request.memory_per_chunk, request.gres_per_chunk,
        request.parts_apart, reservation, pool,
    )  # fmt: skip
