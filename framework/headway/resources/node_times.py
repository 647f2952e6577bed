"""When nodes can be had: reservations, and nodes that sleep or wake."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from headway.model import Placement, Reservation
from headway.resources.node_facts import NodeFacts
from headway.resources.node_sets import Bools
from headway.resources.profile import next_after


class NodeTimes(NodeFacts):
    """Nodes over time."""

    def set_power(self, name: str, power: str, time: float) -> None:
        """A node's power state since ``time``: "on", "asleep", "falling asleep" or "waking"."""
        self.told += 1
        at = self.index[name]
        self._is_on[at] = power == "on"
        if power == "on":
            self.power.pop(name, None)
            self._wakes.pop(at, None)
            return
        wake = self.descriptions[name].wake_time
        self.power[name] = power
        self._wakes[at] = (True, time + wake) if power == "waking" else (False, wake)

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

    def broken(self, placement: Placement, start: float, end: float, own: str) -> Reservation | None:
        """A reservation other than ``own`` that a job on these nodes during [start, end) would break."""
        if self.reservations:
            nodes, _ = self.locate(placement, passing=True).as_arrays()
            if not np.count_nonzero(self.reserved_from[nodes] < end):
                return None
            for name, _ in placement:
                for kept in self.reservations.get(self.index.get(name, -1), ()):
                    if kept.id != own and kept.start < end and start < kept.end:
                        return kept
        return None

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
        """Nodes that can be on at ``time`` if all sleeping nodes are woken ``now``; None for "all of them".

        A node that should be on already, and is not, may be on at any moment, but not now.
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
        if not self._wakes:
            return []
        return sorted({moment for _, moment in self._waking(now)})

    def _waking(self, now: float) -> Iterable[tuple[int, float]]:
        soon = next_after(now)
        for node, (begun, time) in self._wakes.items():
            yield node, max(time if begun else now + time, soon)
