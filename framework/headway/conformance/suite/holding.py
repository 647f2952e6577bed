"""Holds of users and of headway."""

from __future__ import annotations

from headway import decisions as d
from headway import events as ev
from headway.conformance.site import Site
from headway.conformance.suite.needs import Drive, need


class TestHold:
    def test_of_a_user_is_told_and_respected(self, site: Site, drive: Drive) -> None:
        need(site, "holds")
        driven = drive()
        job = site.submit(1, held=True)
        assert driven.submitted(job).job.held
        assert driven.refused(d.Start(job, ((driven.nodes[0], 1),)))
        assert site.running() == {}
        site.release(job)
        told: ev.Event = driven.until((ev.JobReleased, ev.JobStarted), job)
        ours = isinstance(told, ev.JobReleased)
        if ours:
            start = d.Start(job, ((driven.nodes[0], 1),), reason="conformance")
            ours = driven.apply(start)[0].accepted
            driven.until(ev.JobStarted, job)
        assert ours or site.starts_released

    def test_of_ours_keeps_a_job_and_is_taken_away(self, site: Site, drive: Drive) -> None:
        driven = drive()
        driven.able(d.Hold, d.Release)
        job = site.submit(1)
        driven.submitted(job)
        driven.accepted(d.Hold(job, "conformance"))
        driven.wait(0.4)
        assert job in site.waiting()
        driven.accepted(d.Release(job, "conformance"))
        driven.start_once_seen(job, ((driven.nodes[0], 1),))
