"""What a machine of partitions has in use at a moment that a policy asks about: midplanes, and links.

A policy asks where a job fits now, or once others have ended, and shows what each node has left then. Links
are no nodes, so they are read off: a running, starting or booked job has its links as long as none of its
midplanes is free at that moment. That never takes a link for free that is not; where a link may be used
several times it may rarely take one for used that a later booking of the same midplanes does not need any
more.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from headway.model import Placement
from headway.nodes import Offer
from headway.partitions.torus import Geometry, Wires
from headway.state import Job, PoolState, State
from headway.view import View


def connection_of(job: Job, default: str) -> str:
    """How the job's partition is to be wired: its attribute ``connection``, else the machine's default."""
    attributes = job.description.attributes
    if not attributes:
        return default
    said = attributes.get("connection")
    return str(said) if said in ("mesh", "torus") else default


class Occupancy:
    """Reads off what is in use."""

    def __init__(self, geometry: Geometry, state: State) -> None:
        self._geometry = geometry
        self._default = geometry.torus.connection
        #: Where the midplanes are in the scheduler's table of nodes, in the order of their bits.
        self._order = np.array([state.nodes.index[name] for name in geometry.names], np.intp)
        #: By the identity of a placement, which is kept so that nobody else has it, and its wiring.
        self._masks: dict[tuple[int, str], tuple[Placement, tuple[int, int]]] = {}

    def mask(self, nodes: NDArray[np.bool_]) -> int:
        """Nodes of the scheduler's table as bits of midplanes."""
        return int.from_bytes(np.packbits(nodes[self._order], bitorder="little").tobytes(), "little")

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

    def owners(self, pool: PoolState) -> Iterator[tuple[Job, int, int]]:
        """Who has a partition now, with its midplanes and links."""
        for entry in pool.running:
            job = entry[3]
            nodes, links = self.masks_of(job, job.placement)
            if nodes:
                yield job, nodes, links

    def at(self, offer: Offer, view: View) -> tuple[int, int, Wires]:
        """Of the moment that an offer is for: midplanes that the job cannot have, midplanes that are free
        whoever asks, and the wires of all that are not over by then."""
        busy = self.mask(offer.slots <= 0)
        free = self.mask(offer.free.processors == view.nodes.total)
        wires = Wires(self._geometry)
        held = [(nodes, links) for _, nodes, links in self.owners(view.pool) if not nodes & free]
        held += [
            masks
            for booking in view.bookings
            if booking.placement and not (masks := self.masks_of(booking.job, booking.placement))[0] & free
        ]
        for nodes, links in held:
            wires.take(nodes, links)
        return busy, free, wires
