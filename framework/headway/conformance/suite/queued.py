"""What is done to jobs that wait."""

from __future__ import annotations

import pytest

from headway import decisions as d
from headway import events as ev
from headway.conformance.driven import Driven
from headway.conformance.site import Site
from headway.conformance.suite.needs import Drive, need


class TestWaitingJobs:
    @pytest.fixture
    def driven(self, drive: Drive) -> Driven:
        return drive()

    @pytest.fixture
    def job(self, site: Site, driven: Driven) -> str:
        job = site.submit(2, minutes=20)
        driven.submitted(job)
        return job

    def test_are_cancelled(self, site: Site, driven: Driven, job: str) -> None:
        driven.able(d.Cancel)
        driven.accepted(d.Cancel(job, "conformance"))
        assert driven.until(ev.JobEnded, job).outcome == "cancelled"
        assert job not in site.waiting()

    def test_are_removed_by_their_users(self, site: Site, driven: Driven, job: str) -> None:
        site.cancel(job)
        assert driven.until(ev.JobEnded, job).outcome in ("cancelled", "vanished")

    def test_get_another_limit(self, site: Site, driven: Driven, job: str) -> None:
        driven.able(d.SetTimeLimit)
        driven.accepted(d.SetTimeLimit(job, 1800.0, "conformance"))
        assert driven.until(ev.JobChanged, job).job.request.walltime == 1800.0
        driven.start(job, ((driven.nodes[0], 2),))

    def test_go_to_another_pool(self, site: Site, drive: Drive) -> None:
        need(site, "pools")
        pool, options = site.second_pool()
        driven = drive(**options)
        driven.able(d.Route)
        job = site.submit(2, minutes=20)
        driven.submitted(job)
        driven.accepted(d.Route(job, pool, "conformance"))
        assert driven.until(ev.JobRouted, job).pool == pool
        # It waits there as it did before, and starts when it is told to.
        assert job in site.waiting()
        assert driven.start(job, ((driven.nodes[0], 2),)).placement == ((driven.nodes[0], 2),)
        driven.refused(d.Route(job, driven.description.pools[0].name, "conformance"))

    def test_go_to_no_pool_that_is_not_there(self, site: Site, driven: Driven, job: str) -> None:
        driven.able(d.Route)
        driven.refused(d.Route(job, "nowhere", "conformance"))
        assert job in site.waiting()

    def test_are_told_something(self, site: Site, drive: Drive) -> None:
        driven = drive(**site.telling())
        driven.able(d.Annotate)
        job = site.submit(2, minutes=20)
        driven.submitted(job)
        for key, value in (("protect", "encryption=AES-256-GCM,integrity=SHA-512"), ("other", "1:2")):
            driven.accepted(d.Annotate(job, key, value, "conformance"))
        said: dict[str, str] = {}
        while "other" not in said:
            said = (driven.until(ev.JobChanged, job).job.attributes or {})["notes"]
        assert said == {"protect": "encryption=AES-256-GCM,integrity=SHA-512", "other": "1:2"}
        # It is as it was otherwise, and is still there when the job runs.
        assert driven.start(job, ((driven.nodes[0], 2),)).placement == ((driven.nodes[0], 2),)
