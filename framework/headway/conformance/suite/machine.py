"""Nodes that go and come back, and reservations."""

from __future__ import annotations

from headway import decisions as d
from headway import events as ev
from headway.conformance.site import Site
from headway.conformance.suite.needs import Drive, need
from headway.model import Reservation


class TestNodes:
    def test_that_are_drained_are_told_and_take_nothing(self, site: Site, drive: Drive) -> None:
        need(site, "drain")
        driven = drive()
        job = site.submit(1)
        driven.submitted(job)
        node = driven.nodes[1]
        site.drain(node)
        site.drained.add(node)
        driven.until(ev.NodeDown, node)
        assert driven.refused(d.Start(job, ((node, 1),)))
        assert site.running() == {}
        site.undrain(node)
        site.drained.clear()
        assert driven.until(ev.NodeUp, node).node.available
        driven.start(job, ((node, 1),))


class TestReservations:
    def test_are_made_and_removed(self, site: Site, drive: Drive) -> None:
        driven = drive(**site.reserving())
        driven.able(d.Reserve, d.Unreserve)
        driven.wait(0.4)
        pool = driven.description.pools[0].name
        # Whole minutes, as some systems have no others.
        start = (site.now() // 60 + 60) * 60
        reservation = Reservation(
            "headway-test", start, start + 1800, pool=pool, nodes=tuple(driven.nodes[:2])
        )
        driven.accepted(d.Reserve(reservation, "conformance"))
        made = driven.until(ev.ReservationMade)
        assert set(made.reservation.nodes) == set(driven.nodes[:2])
        assert (made.reservation.start, made.reservation.end) == (start, start + 1800)
        driven.accepted(d.Unreserve(made.reservation.id, "conformance"))
        driven.until(ev.ReservationEnded, made.reservation.id)
