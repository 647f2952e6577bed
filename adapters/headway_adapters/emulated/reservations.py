"""Advance reservations: made, begun, over."""

from __future__ import annotations

from headway import decisions as dec
from headway import events as ev
from headway.model import Reservation
from headway_adapters.emulated.machine import Machine


class Reservations:
    """The reservations that are not over."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        #: By id.
        self.kept: dict[str, Reservation] = {r.id: r for r in machine.cluster.reservations}
        for reservation in self.kept.values():
            self._plan(reservation)
        self._changed()

    def reserve(self, decision: dec.Reserve) -> str:
        """Make or change a reservation. Returns why not, or ""."""
        machine, reservation = self._machine, decision.reservation
        if reservation.end <= max(reservation.start, machine.now):
            return f"reservation {reservation.id} ends before it begins or in the past"
        unknown = [name for name in reservation.nodes if name not in machine.nodes.index]
        if unknown:
            return f"reservation {reservation.id} names unknown nodes: {', '.join(unknown)}"
        if self.kept.get(reservation.id) == reservation:
            return ""
        self.kept[reservation.id] = reservation
        self._changed()
        self._plan(reservation)
        machine.news.append(ev.ReservationMade(machine.now, reservation))
        return ""

    def unreserve(self, decision: dec.Unreserve) -> str:
        """Remove a reservation. Returns why not, or ""."""
        if self.kept.pop(decision.reservation_id, None) is None:
            return f"reservation {decision.reservation_id} is not known"
        self._changed()
        self._machine.news.append(ev.ReservationEnded(self._machine.now, decision.reservation_id))
        return ""

    def _changed(self) -> None:
        self._machine.nodes.set_reservations(self.kept.values())

    def _plan(self, reservation: Reservation) -> None:
        agenda = self._machine.agenda
        if reservation.start > self._machine.now:
            agenda.at(reservation.start, self._begins, reservation)
        agenda.at(reservation.end, self._ends, reservation)

    def _begins(self, reservation: Reservation) -> None:
        if self.kept.get(reservation.id) is reservation:
            self._machine.news.append(ev.ReservationStarted(self._machine.now, reservation.id))

    def _ends(self, reservation: Reservation) -> None:
        if self.kept.get(reservation.id) is reservation:
            del self.kept[reservation.id]
            self._changed()
            self._machine.news.append(ev.ReservationEnded(self._machine.now, reservation.id))
