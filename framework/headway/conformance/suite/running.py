"""What is done to jobs that run."""

from __future__ import annotations

import pytest

from headway import decisions as d
from headway import events as ev
from headway.conformance.driven import Driven
from headway.conformance.site import Site
from headway.conformance.suite.needs import Drive
from headway.conformance.waiting import until


class TestRunningJobs:
    @pytest.fixture
    def driven(self, drive: Drive) -> Driven:
        return drive()

    @pytest.fixture
    def job(self, site: Site, driven: Driven) -> str:
        """A job that runs on two processors of the first node."""
        job = site.submit(2, seconds=600, minutes=20)
        driven.submitted(job)
        driven.start(job, ((driven.nodes[0], 2),))
        return job

    def test_are_suspended_and_resumed(self, site: Site, driven: Driven, job: str) -> None:
        driven.able(d.Suspend, d.Resume)
        driven.accepted(d.Suspend(job, "conformance"))
        driven.until(ev.JobSuspended, job)
        driven.accepted(d.Resume(job, "conformance"))
        driven.until(ev.JobResumed, job)

    def test_get_a_signal(self, site: Site, driven: Driven, job: str) -> None:
        """The job does not catch it."""
        driven.able(d.Signal)
        signal = d.Signal(job, "TERM", None, "conformance")
        driven.accepted(signal)
        if site.loses_early_signals:

            def over() -> bool:
                driven.apply(signal)
                return job not in site.running()

            until(over, "the signal ends it", pause=1.0)
        if "signals" in site.can:
            driven.until(ev.JobEnded, job)

    def test_get_no_signal_while_they_wait(self, site: Site, driven: Driven) -> None:
        driven.able(d.Signal)
        job = site.submit(2, seconds=600, minutes=20)
        driven.submitted(job)
        refused = driven.refused(d.Signal(job, "TERM", None, "conformance"))
        assert "run" in refused and job in site.waiting()

    @pytest.mark.parametrize("minutes", [30, 10])
    def test_get_another_limit(self, site: Site, driven: Driven, job: str, minutes: int) -> None:
        driven.able(d.SetTimeLimit)
        driven.accepted(d.SetTimeLimit(job, minutes * 60.0, "conformance"))
        assert driven.until(ev.JobChanged, job).job.request.walltime == minutes * 60.0

    def test_go_back_to_the_queue(self, site: Site, driven: Driven, job: str) -> None:
        driven.able(d.Requeue)
        driven.accepted(d.Requeue(job, "conformance"))
        driven.until(ev.JobRequeued, job)
        # The batch system may still clean up after its first run.
        until(lambda: job in site.waiting(), "it waits")
        if site.rests_requeued:
            return
        driven.start(job, ((driven.nodes[1], 2),))

    def test_are_killed(self, site: Site, driven: Driven, job: str) -> None:
        driven.able(d.Kill)
        driven.accepted(d.Kill(job, "conformance"))
        assert driven.until(ev.JobEnded, job).outcome == "cancelled"
        assert site.running() == {}

    def test_are_killed_by_their_users(self, site: Site, driven: Driven, job: str) -> None:
        site.cancel(job)
        assert driven.until(ev.JobEnded, job).outcome == "cancelled"
