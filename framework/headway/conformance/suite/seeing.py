"""The cluster and its jobs are seen as they are."""

from __future__ import annotations

from headway import decisions as d
from headway import events as ev
from headway.conformance.site import Site
from headway.conformance.suite.needs import Drive, need
from headway.model import Dependency


class TestSeeing:
    def test_the_cluster_is_described(self, site: Site, drive: Drive) -> None:
        driven = drive()
        description = driven.description
        assert description.name
        assert len(driven.nodes) >= 3
        assert all(node.available for node in description.nodes if node.processors)
        pools = {pool.name for pool in description.pools}
        assert pools
        assert all(set(node.pools) <= pools for node in description.nodes)
        assert d.Start in driven.adapter.capabilities

    def test_the_first_wait_tells_every_job(self, site: Site, drive: Drive) -> None:
        jobs = {site.submit(2, name=f"job{n}") for n in range(3)}
        told = drive().first()
        assert {event.job.id for event in told if isinstance(event, ev.JobSubmitted)} == jobs

    def test_and_where_those_run_that_run(self, site: Site, drive: Drive) -> None:
        need(site, "again")
        first = drive()
        job = site.submit(2)
        first.submitted(job)
        placement = first.start(job, ((first.nodes[1], 2),)).placement
        told = drive().first()
        (started,) = [event for event in told if isinstance(event, ev.JobStarted)]
        assert (started.job_id, started.placement) == (job, placement)

    def test_a_submission_is_seen_with_what_it_asks_for(self, site: Site, drive: Drive) -> None:
        driven = drive()
        driven.wait(0.1)
        job = site.submit(3, minutes=7, name="seven")
        described = driven.submitted(job).job
        assert described.request.processors == 3
        assert described.request.walltime == 420
        assert described.name == "seven"
        assert described.user
        assert described.pool in {pool.name for pool in driven.description.pools}
        assert not described.held
        assert abs(described.submit_time - site.now()) < 120

    def test_a_request_for_nodes_is_seen(self, site: Site, drive: Drive) -> None:
        need(site, "shapes")
        driven = drive()
        job = site.submit(4, nodes=2)
        request = driven.submitted(job).job.request
        assert request.processors == 4
        # Told as so many nodes, or as so many processors on each.
        assert request.nodes == 2 or request.processors_per_node == 2

    def test_what_a_job_waits_for_is_told(self, site: Site, drive: Drive) -> None:
        need(site, "after")
        driven = drive()
        first = site.submit(1)
        second = site.submit(1, after=first)
        assert driven.submitted(second).job.dependencies == (Dependency("completed", first),)

    def test_nothing_new_tells_nothing(self, site: Site, drive: Drive) -> None:
        site.submit(1)
        driven = drive()
        driven.first()
        assert driven.wait(0.8) == []
