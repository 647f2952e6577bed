"""What a machine of partitions has in use at a moment that a policy asks about: midplanes, and links.

A policy asks where a job fits now, or once other jobs have ended, and shows what each node has left then.
Links are no nodes, so they are read off: a running, starting or booked job has its links as long as no
midplane of it is free at that moment. That never takes a link for free that is not; where a link may be used
several times it may rarely take one for used that a later booking of the same midplanes does not need any
more.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headway.model import Placement
from headway.partitions.torus import Geometry
from headway.resources import NodeTable, Offer, bits
from headway.state import Job, State
from headway.view import View


def connection_of(job: Job, default: str) -> str:
    """How the job's partition is to be wired: its attribute ``connection``, else the machine's default."""
    attributes = job.description.attributes
    if not attributes:
        return default
    said = attributes.get("connection")
    return str(said) if said in ("mesh", "torus") else default


class Held:
    """The links of partitions that are not over at some moment."""

    __slots__ = ("_geometry", "_links", "full")

    def __init__(self, geometry: Geometry, links: Sequence[int]) -> None:
        self._geometry, self._links = geometry, links
        #: The links that no other job can use beside them.
        self.full = geometry.without_room(links)

    def full_with(self, others: Sequence[int]) -> int:
        """The links that no other job can use beside them and ``others``."""
        if not others:
            return self.full
        if not self._geometry.shared:
            return self._geometry.without_room([self.full, *others])
        return self._geometry.without_room([*self._links, *others])


class Occupancy:
    """Knows which job has which midplanes and links: told of each job that takes its nodes and gives them
    back, so that it need not look at all running jobs (:mod:`headway.state.watchers`)."""

    def __init__(self, geometry: Geometry, state: State) -> None:
        self._geometry = geometry
        self._default = geometry.torus.connection
        order = np.array([state.nodes.index[name] for name in geometry.names], np.intp)
        #: Where the midplanes are in the scheduler's table of nodes, in the order of their bits; None: they
        #: are its first nodes, in this order.
        self._order = None if np.array_equal(order, np.arange(len(order))) else order.tolist()
        self._everything = (1 << geometry.size) - 1
        #: By the identity of a placement, which is kept so that no other object has it, and its wiring.
        self._masks: dict[tuple[int, str], tuple[Placement, tuple[int, int]]] = {}
        #: The jobs that have a partition now: midplanes and links by job.
        self._held: dict[str, tuple[int, int]] = {}
        #: How often a job took a partition or gave it back.
        self.changes = 0
        #: The midplanes that can be used, and what was told by then.
        self._usable: tuple[int, int] = -1, 0
        #: The links that were held at the moment that was asked for last, and what that followed from.
        self._last: tuple[tuple[object, ...], Held] = (), Held(geometry, ())

    def took(self, job: Job) -> None:
        """The job has its nodes."""
        masks = self.masks_of(job, job.placement)
        if masks[0] and not job.behind:
            self._held[job.id] = masks
        self.changes += 1

    def gave(self, job: Job) -> None:
        """It has given them back."""
        self._held.pop(job.id, None)
        self.changes += 1

    def midplanes(self, nodes: int) -> int:
        """Nodes of the scheduler's table (:func:`headway.resources.nodes.bits`) as bits of midplanes."""
        if self._order is None:
            return nodes & self._everything
        return sum((nodes >> node & 1) << at for at, node in enumerate(self._order))

    def know(self, placement: Placement, connection: str, masks: tuple[int, int]) -> None:
        """The midplanes and links of a placement that was made of a box."""
        self._masks[id(placement), connection] = placement, masks

    def masks_of(self, job: Job, placement: Placement) -> tuple[int, int]:
        """The midplanes and links of a job that has this placement."""
        key = id(placement), connection_of(job, self._default)
        known = self._masks.get(key)
        if known is None:
            box = self._geometry.box_of([name for name, _ in placement], key[1])
            masks = self._geometry.masks(box) if not isinstance(box, str) else (0, 0)
            if len(self._masks) > 100_000:
                self._masks.clear()
            known = self._masks[key] = placement, masks
        return known[1]

    def free_now(self, table: NodeTable) -> int:
        """The midplanes of which nothing is taken now, whether they can be used or not."""
        return self.midplanes(table.idle(table.free))

    def usable(self, table: NodeTable) -> int:
        """The midplanes that can be used."""
        if table.told != self._usable[0]:
            self._usable = table.told, self.midplanes(bits(table.available))
        return self._usable[1]

    @property
    def used(self) -> int:
        """The midplanes of all jobs that have a partition now."""
        used = 0
        for nodes, _ in self._held.values():
            used |= nodes
        return used

    def held(self, free: int = 0, bookings: Sequence[tuple[int, int]] = ()) -> Held:
        """The links of all partitions of which no midplane is ``free``, ``bookings`` (midplanes and links)
        included."""
        told = self.changes, free, bookings
        if told != self._last[0]:
            links = [links for nodes, links in self._held.values() if not nodes & free]
            links += [links for nodes, links in bookings if not nodes & free]
            self._last = told, Held(self._geometry, links)
        return self._last[1]

    def at(self, offer: Offer, view: View) -> tuple[int, Held]:
        """Of the moment that an offer is for: midplanes that the job cannot have, and the links of all
        partitions that are not over by then."""
        busy = self._everything & ~self.midplanes(offer.nodes)
        booked = tuple([
            self.masks_of(booking.job, booking.placement) for booking in view.bookings if booking.placement
        ])  # fmt: skip
        return busy, self.held(self.midplanes(view.nodes.idle(offer.free)), booked)
