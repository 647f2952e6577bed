"""Outages, nonsense, and an adapter that is made anew in the middle of starts."""

from __future__ import annotations

import time

import pytest

from headway import decisions as d
from headway import events as ev
from headway.conformance.site import Site
from headway.conformance.suite.needs import Drive, need
from headway.conformance.waiting import bound, limit

#: What is told of an outage itself.
_SILENCE = (ev.ClusterSilent, ev.ClusterAnswers)


class TestOutage:
    def test_is_no_news_about_jobs_and_ends_by_itself(self, site: Site, drive: Drive) -> None:
        need(site, "outage")
        patience = bound(2.5)
        driven = drive(command_timeout=patience)
        runs, waits = site.submit(2, seconds=600), site.submit(1)
        for job in (runs, waits):
            driven.submitted(job)
        driven.start(runs, ((driven.nodes[0], 2),))
        able = d.Kill in driven.adapter.capabilities
        order = d.Kill(runs, "conformance") if able else d.Start(waits, ((driven.nodes[1], 1),))
        driven.wait(0.3)
        driven.events.clear()
        with site.outage():
            began = time.monotonic()
            (outcome,) = driven.apply(order)
            assert not outcome.accepted
            assert time.monotonic() - began < bound(12.5) + patience
            # On another machine a command that was given up may live a second longer.
            told = driven.wait(patience)
            assert [event for event in told if not isinstance(event, (ev.DecisionFailed, *_SILENCE))] == []
            driven.until(ev.ClusterSilent)
        driven.until(ev.ClusterAnswers)
        late = site.submit(1)
        driven.submitted(late)
        about_jobs = [
            event
            for event in driven.events
            if isinstance(event, ev.JobEnded | ev.JobStarted | ev.JobRequeued)
        ]
        assert about_jobs == []
        driven.all_up()
        driven.start(waits, ((driven.nodes[1], 1),))


class TestFaults:
    @pytest.mark.parametrize("kind", ["truncate", "garbage"])
    def test_nonsense_is_an_outage_too(self, site: Site, drive: Drive, kind: str) -> None:
        need(site, kind)
        driven = drive()
        job, *others = (site.submit(2, seconds=600) for _ in range(5))
        for at, one in enumerate((job, *others[:2])):
            driven.submitted(one)
            driven.start(one, ((driven.nodes[at], 2),))
        driven.wait(0.3)
        driven.events.clear()
        with site.fault(kind):
            driven.until(ev.ClusterSilent)
        driven.until(ev.ClusterAnswers)
        driven.wait(0.8)
        assert [event for event in driven.events if not isinstance(event, _SILENCE)] == []
        driven.end(job)

    def test_a_start_without_an_answer_is_settled_by_the_next_look(self, site: Site, drive: Drive) -> None:
        need(site, "slow-start")
        driven = drive(command_timeout=bound(1.5))
        job = site.submit(1)
        driven.submitted(job)
        with site.fault("slow-start"):
            (outcome,) = driven.apply(d.Start(job, ((driven.nodes[0], 1),)))
            assert outcome.accepted
        driven.until(ev.JobStarted, job)
        driven.wait(0.4)
        assert [e for e in driven.events if isinstance(e, ev.JobStarted | ev.JobEnded | ev.JobRequeued)] == []
        if "executions" in site.can:
            assert site.executions(job) == 1

    def test_a_refused_start_is_told_and_can_be_tried_again(self, site: Site, drive: Drive) -> None:
        need(site, "refuse-start")
        driven = drive()
        job = site.submit(1)
        driven.submitted(job)
        start = d.Start(job, ((driven.nodes[0], 1),))
        with site.fault("refuse-start"):
            assert driven.refused(start)
        assert site.waiting() == {job}
        driven.start(job, start.placement)


class TestRestart:
    def test_in_the_middle_of_starts_loses_nothing_and_starts_nothing_twice(
        self, site: Site, drive: Drive
    ) -> None:
        need(site, "again")
        first = drive()
        jobs = [site.submit(2, seconds=600) for _ in range(3)]
        for job in jobs:
            first.submitted(job)
        # Two are asked for and nobody waits for the confirmation.
        starts = [d.Start(job, ((first.nodes[at], 2),)) for at, job in enumerate(jobs[:2])]
        assert all(outcome.accepted for outcome in first.apply(*starts))
        first.adapter.close()

        second = drive()
        told = second.first()
        assert {event.job.id for event in told if isinstance(event, ev.JobSubmitted)} == set(jobs)
        end = time.monotonic() + limit()
        while len(site.running()) < 2 and time.monotonic() < end:
            second.wait(0.2)
        second.wait(0.4)
        started = {e.job_id: e.placement for e in second.events if isinstance(e, ev.JobStarted)}
        assert started == {start.job_id: start.placement for start in starts}
        # What the journal would repeat is refused or does nothing.
        second.apply(*starts)
        second.wait(0.4)
        assert site.running() == started
        assert site.waiting() == {jobs[2]}
        second.start(jobs[2], ((second.nodes[2], 2),))
