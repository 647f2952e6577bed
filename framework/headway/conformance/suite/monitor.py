"""An adapter that only watches changes nothing."""

from __future__ import annotations

from headway import decisions as d
from headway.conformance.site import Site
from headway.conformance.suite.needs import Drive, need


class TestMonitor:
    def test_changes_nothing(self, site: Site, drive: Drive) -> None:
        need(site, "changes", "again")
        writer = drive()
        runs, waits = site.submit(2), site.submit(1)
        writer.submitted(runs)
        writer.start(runs, ((writer.nodes[0], 2),))
        before = (site.running(), site.waiting())
        driven = drive(read_only=True)
        driven.first()
        changes = list(site.changes())
        wishes = [
            d.Start(waits, ((driven.nodes[1], 1),)), d.Hold(waits), d.Release(waits), d.Cancel(waits),
            d.SetTimeLimit(runs, 60.0), d.Suspend(runs), d.Requeue(runs), d.Kill(runs),
        ]  # fmt: skip
        outcomes = driven.apply(*wishes)
        assert not any(outcome.accepted for outcome in outcomes)
        driven.wait(0.4)
        assert (site.running(), site.waiting()) == before
        # Only listings ran.
        assert list(site.changes()) == changes
