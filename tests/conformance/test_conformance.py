"""What every adapter must show, on every cluster that there is."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest
from driven import Driven
from sites import Site
from waiting import bound, limit, until

from headway import decisions as d
from headway import events as ev
from headway.model import Dependency, Reservation

Drive = Callable[..., Driven]


def need(site: Site, what: str) -> None:
    if what not in site.can:
        pytest.skip(f"{site.name}: {what} is not tried there")


def able(driven: Driven, kind: type[d.Decision]) -> None:
    if kind not in driven.adapter.capabilities:
        pytest.skip(f"{driven.site.name}: {kind.__name__} is not among its capabilities")


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
        driven = drive()
        first = site.submit(1)
        second = site.submit(1, after=first)
        assert driven.submitted(second).job.dependencies == (Dependency("completed", first),)

    def test_nothing_new_tells_nothing(self, site: Site, drive: Drive) -> None:
        site.submit(1)
        driven = drive()
        driven.first()
        assert driven.wait(0.8) == []


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
        driven.apply(d.Kill(job))
        driven.until(ev.JobEnded, job)
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


class TestHold:
    def test_of_a_user_is_told_and_respected(self, site: Site, drive: Drive) -> None:
        driven = drive()
        job = site.submit(1, held=True)
        assert driven.submitted(job).job.held
        assert driven.refused(d.Start(job, ((driven.nodes[0], 1),)))
        assert site.running() == {}
        site.release(job)
        told = driven.until((ev.JobReleased, ev.JobStarted), job)
        ours = isinstance(told, ev.JobReleased)
        if ours:
            start = d.Start(job, ((driven.nodes[0], 1),), reason="conformance")
            ours = driven.apply(start)[0].accepted
            driven.until(ev.JobStarted, job)
        # Slurm may be quicker with a released job than we are with our own hold.
        assert ours or site.name.startswith("slurm")

    def test_of_ours_keeps_a_job_and_is_taken_away(self, site: Site, drive: Drive) -> None:
        driven = drive()
        able(driven, d.Hold)
        job = site.submit(1)
        driven.submitted(job)
        driven.accepted(d.Hold(job, "conformance"))
        driven.wait(0.4)
        assert job in site.waiting()
        driven.accepted(d.Release(job, "conformance"))
        driven.start_once_seen(job, ((driven.nodes[0], 1),))


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
        able(driven, d.Suspend)
        driven.accepted(d.Suspend(job, "conformance"))
        driven.until(ev.JobSuspended, job)
        driven.accepted(d.Resume(job, "conformance"))
        driven.until(ev.JobResumed, job)

    def test_get_a_signal(self, site: Site, driven: Driven, job: str) -> None:
        """It does not catch it, so it ends; jobs of the emulated cluster take no notice."""
        able(driven, d.Signal)
        signal = d.Signal(job, "TERM", None, "conformance")
        driven.accepted(signal)
        if site.name.startswith("slurm"):
            # One that comes before the job's script has begun reaches nobody there.
            def over() -> bool:
                driven.apply(signal)
                return job not in site.running()

            until(over, "the signal ends it", pause=1.0)
        if site.name != "emulated":
            driven.until(ev.JobEnded, job)

    def test_who_waits_gets_no_signal(self, site: Site, driven: Driven) -> None:
        able(driven, d.Signal)
        job = site.submit(2, seconds=600, minutes=20)
        driven.submitted(job)
        refused = driven.refused(d.Signal(job, "TERM", None, "conformance"))
        assert "run" in refused and job in site.waiting()

    @pytest.mark.parametrize("minutes", [30, 10])
    def test_get_another_limit(self, site: Site, driven: Driven, job: str, minutes: int) -> None:
        decision = d.SetTimeLimit(job, minutes * 60.0, "conformance")
        able(driven, d.SetTimeLimit)
        driven.accepted(decision)
        assert driven.until(ev.JobChanged, job).job.request.walltime == minutes * 60.0

    def test_go_back_to_the_queue(self, site: Site, driven: Driven, job: str) -> None:
        able(driven, d.Requeue)
        driven.accepted(d.Requeue(job, "conformance"))
        driven.until(ev.JobRequeued, job)
        # Slurm may still clean up after its first run.
        until(lambda: job in site.waiting(), "it waits")
        if site.name.startswith("slurm"):
            # Slurm lets a requeued job wait a while before it may run.
            return
        driven.start(job, ((driven.nodes[1], 2),))

    def test_are_killed(self, site: Site, driven: Driven, job: str) -> None:
        driven.accepted(d.Kill(job, "conformance"))
        assert driven.until(ev.JobEnded, job).outcome == "cancelled"
        assert site.running() == {}

    def test_are_killed_by_their_users(self, site: Site, driven: Driven, job: str) -> None:
        site.cancel(job)
        assert driven.until(ev.JobEnded, job).outcome == "cancelled"


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
        driven.accepted(d.Cancel(job, "conformance"))
        assert driven.until(ev.JobEnded, job).outcome == "cancelled"
        assert job not in site.waiting()

    def test_are_removed_by_their_users(self, site: Site, driven: Driven, job: str) -> None:
        site.cancel(job)
        assert driven.until(ev.JobEnded, job).outcome in ("cancelled", "vanished")

    def test_get_another_limit(self, site: Site, driven: Driven, job: str) -> None:
        able(driven, d.SetTimeLimit)
        driven.accepted(d.SetTimeLimit(job, 1800.0, "conformance"))
        assert driven.until(ev.JobChanged, job).job.request.walltime == 1800.0
        driven.start(job, ((driven.nodes[0], 2),))

    def test_are_told_something(self, site: Site, drive: Drive) -> None:
        driven = drive(**site.telling())
        able(driven, d.Annotate)
        job = site.submit(2, minutes=20)
        driven.submitted(job)
        for key, value in (("protect", "encryption=AES-256-GCM,integrity=SHA-512"), ("other", "1:2")):
            driven.accepted(d.Annotate(job, key, value, "conformance"))
        said: dict[str, str] = {}
        while "other" not in said:
            said = driven.until(ev.JobChanged, job).job.attributes["notes"]
        assert said == {"protect": "encryption=AES-256-GCM,integrity=SHA-512", "other": "1:2"}
        # It is as it was otherwise, and is still there when the job runs.
        assert driven.start(job, ((driven.nodes[0], 2),)).placement == ((driven.nodes[0], 2),)


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
        able(driven, d.Reserve)
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


class TestMonitor:
    def test_changes_nothing(self, site: Site, drive: Drive) -> None:
        need(site, "read_only")
        writer = drive()
        runs, waits = site.submit(2), site.submit(1)
        writer.submitted(runs)
        writer.start(runs, ((writer.nodes[0], 2),))
        before = (site.running(), site.waiting())
        driven = drive(read_only=True)
        driven.first()
        ran = len(site.commands(driven.adapter))
        wishes = [
            d.Start(waits, ((driven.nodes[1], 1),)), d.Hold(waits), d.Release(waits), d.Cancel(waits),
            d.SetTimeLimit(runs, 60.0), d.Suspend(runs), d.Requeue(runs), d.Kill(runs),
        ]  # fmt: skip
        outcomes = driven.apply(*wishes)
        assert not any(outcome.accepted for outcome in outcomes)
        driven.wait(0.4)
        assert (site.running(), site.waiting()) == before
        # Only listings ran.
        words = {argv[:2] for argv in site.commands(driven.adapter)[ran:]}
        changing = {"qrun", "qdel", "qhold", "qrls", "qalter", "qsig", "qrerun", "brun", "bkill", "bstop",
                    "bresume", "bmod", "brequeue", "scancel"}  # fmt: skip
        assert not [argv for argv in words if argv[0] in changing or argv[:2] == ("scontrol", "update")]


class TestOutage:
    def test_is_no_news_about_jobs_and_ends_by_itself(self, site: Site, drive: Drive) -> None:
        need(site, "outage")
        patience = bound(2.5)
        driven = drive(command_timeout=patience)
        runs, waits = site.submit(2, seconds=600), site.submit(1)
        for job in (runs, waits):
            driven.submitted(job)
        driven.start(runs, ((driven.nodes[0], 2),))
        driven.wait(0.3)
        driven.events.clear()
        with site.outage():
            began = time.monotonic()
            (outcome,) = driven.apply(d.Kill(runs, "conformance"))
            assert not outcome.accepted
            assert time.monotonic() - began < bound(12.5) + patience
            # On another machine a command that was given up may live a second longer.
            told = driven.wait(patience)
            assert [event for event in told if not isinstance(event, ev.DecisionFailed)] == []
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
        need(site, "faults")
        driven = drive()
        job, *others = (site.submit(2, seconds=600) for _ in range(5))
        for at, one in enumerate((job, *others[:2])):
            driven.submitted(one)
            driven.start(one, ((driven.nodes[at], 2),))
        driven.wait(0.3)
        driven.events.clear()
        with site.fault(kind):
            assert driven.wait(0.8) == []
        assert driven.wait(0.8) == []
        driven.accepted(d.Kill(job, "conformance"))
        driven.until(ev.JobEnded, job)

    def test_a_start_without_an_answer_is_settled_by_the_next_look(self, site: Site, drive: Drive) -> None:
        need(site, "faults")
        driven = drive(command_timeout=1.5)
        job = site.submit(1)
        driven.submitted(job)
        with site.fault("slow:30@qrun,brun"):
            (outcome,) = driven.apply(d.Start(job, ((driven.nodes[0], 1),)))
            assert outcome.accepted
        driven.until(ev.JobStarted, job)
        driven.wait(0.4)
        assert [e for e in driven.events if isinstance(e, ev.JobStarted | ev.JobEnded | ev.JobRequeued)] == []
        assert site.executions(job) == 1

    def test_a_refused_start_is_told_and_can_be_tried_again(self, site: Site, drive: Drive) -> None:
        need(site, "faults")
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


NAMES = (
    "two words",
    "it's",
    'say "hello"',
    "$(touch /tmp/headway-was-here) `id` ; rm -rf ~ | cat > x & exit",
    "-n",
    "ümläut ☃",
    "a<b>c[1] d",
    "back\\slash",
    "new\nline",
)


class TestNames:
    @pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
    def test_are_only_names(self, site: Site, drive: Drive, name: str) -> None:
        need(site, "names")
        if site.name.startswith("slurm") and "\n" in name:
            pytest.skip("sbatch takes no such name")
        if site.name.startswith("slurm-over-ssh") and name != NAMES[3]:
            pytest.skip("tried on the same Slurm without SSH")
        if site.name == "lsf" and name != NAMES[3]:
            pytest.skip("tried on the same LSF in tests/integration/test_drive_lsf.py")
        driven = drive()
        other = site.submit(1)
        job = site.submit(1, name=name)
        driven.submitted(other)
        driven.submitted(job)
        driven.start(job, ((driven.nodes[0], 1),))
        driven.accepted(d.Kill(job, "conformance"))
        driven.until(ev.JobEnded, job)
        assert site.waiting() == {other}


#: What a refusal of each must speak of.
ABOUT = {
    d.Checkpoint: "checkpoint", d.Migrate: "migrate", d.SwapTiers: "swaptiers", d.SetFrequency: "frequenc",
    d.PowerDown: "power|sleep", d.PowerUp: "power|sleep", d.Reserve: "reserv", d.Unreserve: "reserv",
    d.Resize: "resize", d.Suspend: "suspend", d.SubmitSubjob: "submitsubjob",
}  # fmt: skip


class TestCapabilities:
    def test_what_is_not_among_them_is_refused_and_said(self, site: Site, drive: Drive) -> None:
        driven = drive()
        job = site.submit(1)
        described = driven.submitted(job).job
        node = driven.nodes[0]
        later = Reservation("r", site.now() + 3600, site.now() + 7200, nodes=(node,))
        wishes: list[d.Decision] = [
            d.Checkpoint(job), d.Migrate(job, ((node, 1),)), d.SwapTiers(job), d.SetFrequency(job, 1e9),
            d.PowerDown((node,)), d.PowerUp((node,)), d.Reserve(later), d.Unreserve("r"), d.Resize(job, 2),
            d.Suspend(job), d.SubmitSubjob(job, described),
        ]  # fmt: skip
        for wish in wishes:
            if type(wish) not in driven.adapter.capabilities:
                (outcome,) = driven.apply(wish)
                assert not outcome.accepted
                assert re.search(ABOUT[type(wish)], outcome.message.lower()), outcome.message
        assert job in site.waiting()
