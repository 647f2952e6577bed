"""Starts: confirmed where they were asked for, refused where they cannot be."""

from __future__ import annotations

from headway import decisions as d
from headway import events as ev
from headway.conformance.site import Site
from headway.conformance.suite.needs import Drive, need


class TestStart:
    def test_on_the_chosen_nodes_is_confirmed_and_the_end_is_told(self, site: Site, drive: Drive) -> None:
        driven = drive()
        job = site.submit(2, seconds=1)
        driven.submitted(job)
        node = driven.nodes[2]
        started = driven.start(job, ((node, 2),))
        assert started.placement == ((node, 2),)
        ended = driven.until(ev.JobEnded, job)
        assert ended.outcome == "completed"
        assert ended.exit_code in (0, None)
        assert ended.time >= started.time

    def test_on_several_nodes(self, site: Site, drive: Drive) -> None:
        driven = drive()
        whole = driven.whole
        job = site.submit(2 * whole, nodes=2)
        driven.submitted(job)
        placement = ((driven.nodes[0], whole), (driven.nodes[2], whole))
        assert driven.start(job, placement).placement == placement
        assert dict(site.running()[job]) == dict(placement)

    def test_of_a_job_of_several_parts_is_a_start_of_all(self, site: Site, drive: Drive) -> None:
        need(site, "parts")
        driven = drive()
        job = site.submit_parts(1, 2)
        request = driven.submitted(job).job.request
        assert (request.processors, [part.processors for part in request.parts]) == (3, [1, 2])
        placement = ((driven.nodes[2], 1), (driven.nodes[0], 2))
        assert driven.start(job, placement).placement == placement
        driven.end(job)
        assert not site.running()

    def test_of_many_jobs_at_once(self, site: Site, drive: Drive) -> None:
        driven = drive()
        jobs = [site.submit(1) for _ in range(6)]
        for job in jobs:
            driven.submitted(job)
        starts = [d.Start(job, ((driven.nodes[at % 3], 1),)) for at, job in enumerate(jobs)]
        assert all(outcome.accepted for outcome in driven.apply(*starts))
        for start in starts:
            assert driven.until(ev.JobStarted, start.job_id).placement == start.placement

    def test_of_a_job_that_nobody_knows_is_refused(self, site: Site, drive: Drive) -> None:
        driven = drive()
        driven.wait(0.1)
        assert driven.refused(d.Start("987654", ((driven.nodes[0], 1),)))

    def test_of_a_running_job_does_not_start_it_twice(self, site: Site, drive: Drive) -> None:
        driven = drive()
        job = site.submit(1)
        driven.submitted(job)
        driven.start(job, ((driven.nodes[0], 1),))
        driven.refused(d.Start(job, ((driven.nodes[1], 1),)))
        assert site.running() == {job: ((driven.nodes[0], 1),)}

    def test_of_an_ended_job_is_refused(self, site: Site, drive: Drive) -> None:
        driven = drive()
        job = site.submit(1, seconds=1)
        driven.submitted(job)
        driven.start(job, ((driven.nodes[0], 1),))
        driven.until(ev.JobEnded, job)
        assert driven.refused(d.Start(job, ((driven.nodes[0], 1),)))
        assert site.running() == {}

    def test_on_an_unknown_node_is_refused(self, site: Site, drive: Drive) -> None:
        driven = drive()
        job = site.submit(1)
        driven.submitted(job)
        assert driven.refused(d.Start(job, (("nosuchnode", 1),)))
        assert site.running() == {}
        driven.start(job, ((driven.nodes[0], 1),))

    def test_on_a_full_node_is_refused_and_never_oversubscribes(self, site: Site, drive: Drive) -> None:
        driven = drive()
        full, late = site.submit(driven.whole), site.submit(1)
        driven.submitted(full)
        driven.submitted(late)
        node = driven.nodes[0]
        driven.start(full, ((node, driven.whole),))
        assert driven.refused(d.Start(late, ((node, 1),)))
        driven.nothing_oversubscribed()
        assert set(site.running()) == {full}
        # Nothing of the refused start is left behind: it can start elsewhere.
        driven.start(late, ((driven.nodes[1], 1),))

    def test_of_two_that_do_not_fit_together_starts_one(self, site: Site, drive: Drive) -> None:
        driven = drive()
        jobs = [site.submit(driven.whole) for _ in range(2)]
        for job in jobs:
            driven.submitted(job)
        node = driven.nodes[0]
        driven.apply(*(d.Start(job, ((node, driven.whole),)) for job in jobs))
        started = driven.until(ev.JobStarted)
        failed = driven.until(ev.DecisionFailed)
        assert isinstance(failed.decision, d.Start)
        assert {started.job_id, failed.decision.job_id} == set(jobs)
        driven.nothing_oversubscribed()

    def test_twice_the_same_is_one_start(self, site: Site, drive: Drive) -> None:
        driven = drive()
        job = site.submit(1)
        driven.submitted(job)
        start = d.Start(job, ((driven.nodes[0], 1),))
        driven.apply(start)
        driven.apply(start)
        driven.until(ev.JobStarted, job)
        driven.wait(0.4)
        assert not [event for event in driven.events if isinstance(event, ev.JobStarted | ev.JobEnded)]
        assert site.running() == {job: ((driven.nodes[0], 1),)}

    def test_of_a_job_that_vanished_meanwhile_is_refused(self, site: Site, drive: Drive) -> None:
        driven = drive()
        job = site.submit(1)
        driven.submitted(job)
        if "drop" in site.can:
            site.drop(job)
        else:
            site.cancel(job)
        driven.apply(d.Start(job, ((driven.nodes[0], 1),)))
        driven.until(ev.JobEnded, job)
        driven.wait(0.4)
        assert not [event for event in driven.events if isinstance(event, ev.JobStarted)]
        assert site.running() == {}
