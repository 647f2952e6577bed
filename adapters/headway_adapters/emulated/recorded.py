"""What was recorded of a real cluster happens here, too: at the same times, whatever the scheduler decides.

Nodes go down and come back, reservations are made and removed, pools and licences change, users and
administrators hold waiting jobs and release them, the site's policy is told, and a running job is told to be
about to leave.

A node that goes down takes no new jobs. The jobs on it go on to their own ends: how long each runs, and how
it ends, is the workload's. A reservation that the scheduler's jobs stand in the way of is made all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headway import decisions as dec
from headway import events as ev
from headway.results import CapacityChange
from headway_adapters.emulated.guard import Guard
from headway_adapters.emulated.holds import Holds
from headway_adapters.emulated.machine import Machine
from headway_adapters.emulated.reservations import Reservations


class Recorded:
    """Has recorded events happen on the machine."""

    def __init__(
        self, machine: Machine, guard: Guard, reservations: Reservations, events: Sequence[ev.Event]
    ) -> None:
        """Raises ValueError for an event of a kind that cannot happen by itself here."""
        self._machine = machine
        self._guard = guard
        self._reservations = reservations
        self._holds = Holds(machine)
        #: The site's policy is among what is told.
        self.tells_policy = any(isinstance(event, ev.SitePolicyChanged) for event in events)
        kinds: dict[type[ev.Event], Callable[[Any], None]] = {
            ev.NodeDown: self._node_down,
            ev.NodeUp: self._node_up,
            ev.PoolChanged: self._pool_changed,
            ev.LicencesChanged: self._licences_changed,
            ev.ReservationMade: self._reservation_made,
            ev.ReservationEnded: self._reservation_ended,
            ev.JobHeld: lambda event: self._hold(event.job_id, held=True, reason=event.reason),
            ev.JobReleased: lambda event: self._hold(event.job_id, held=False),
            ev.SitePolicyChanged: self._told,
            ev.JobLeaving: self._leaves,
        }
        for event in events:
            if (happens := kinds.get(type(event))) is None:
                raise ValueError(f"{type(event).__name__} cannot happen by itself on the emulated cluster")
            machine.agenda.at(max(event.time, machine.now), happens, event)

    def _node_down(self, event: ev.NodeDown) -> None:
        if event.node in self._machine.nodes.index:
            self._machine.set_available(event.node, False, event.reason)

    def _node_up(self, event: ev.NodeUp) -> None:
        machine, node = self._machine, event.node
        old = machine.nodes.descriptions.get(node.name)
        machine.nodes.put(node)
        machine.news.append(ev.NodeUp(machine.now, node))
        for pool in dict.fromkeys((*node.pools, *(old.pools if old is not None else ()))):
            machine.capacity.append(CapacityChange(machine.now, pool, machine.nodes.count(pool)[0]))

    def _pool_changed(self, event: ev.PoolChanged) -> None:
        self._guard.describe_pool(event.pool)
        self._told(event)

    def _licences_changed(self, event: ev.LicencesChanged) -> None:
        self._guard.licences.set_total(event.licence, event.total)
        self._told(event)

    def _reservation_made(self, event: ev.ReservationMade) -> None:
        # Nodes that this cluster does not have are of pools that are not ours.
        self._reservations.reserve(dec.Reserve(event.reservation))

    def _reservation_ended(self, event: ev.ReservationEnded) -> None:
        # It may be over already: here it ends by itself, too.
        self._reservations.unreserve(dec.Unreserve(event.reservation_id))

    def _hold(self, job_id: str, *, held: bool, reason: str = "") -> None:
        # A job that has started here is held no more.
        if held:
            self._holds.hold(dec.Hold(job_id, reason))
        else:
            self._holds.release(dec.Release(job_id))

    def _leaves(self, event: ev.JobLeaving) -> None:
        # A job that runs later here, or is over, does not leave at that moment.
        if event.job_id in self._machine.running:
            self._told(event)

    def _told(self, event: ev.Event) -> None:
        self._machine.news.append(event)
