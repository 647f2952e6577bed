"""Licences: what is booked, what the guard refuses, what is told, what changes while jobs run."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from building import POLICIES, alike, described, node_cluster, plugged, traced

from headway import events as ev
from headway.decisions import Start
from headway.hookspecs import hookimpl
from headway.inquiry import explain
from headway.model import ClusterDescription, PoolDescription, Reservation
from headway.scheduler import Scheduler, plain_clock
from headway_adapters.emulated import EmulatedAdapter, Faults
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.easy import Easy

FLAT = ClusterDescription("cluster", (PoolDescription("pool", 8),), licences=(("matlab", 3), ("ansys", 1)))
NODES = node_cluster(*alike(4, 2), licences=FLAT.licences)


def matlab(job_id, amount, estimate=100, processors=1, **more):
    return described(job_id, processors, estimate, licences=(("matlab", amount),), **more)


def at(s, now, *events):
    decisions = s.step(now, list(events))
    assert s.problems == []
    return [d.job_id for d in decisions]


def running(cluster, *jobs, policy="easy"):
    """A scheduler with these jobs, of which those that start run since 0."""
    s = Scheduler(cluster, plugged(POLICIES[policy](), FirstFit()))
    started = s.step(0, [ev.JobSubmitted(0, job) for job in jobs])
    s.step(0, [ev.JobStarted(0, d.job_id, d.placement) for d in started])
    assert s.problems == []
    return s


@pytest.mark.parametrize("cluster", [FLAT, NODES], ids=["flat", "nodes"])
@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_a_booking_waits_for_its_licences_and_nobody_takes_them_away(cluster, policy):
    s = running(cluster, matlab("a", 2), policy=policy)
    wide = matlab("wide", 3, 50)
    assert at(s, 10, ev.JobSubmitted(10, wide), ev.JobSubmitted(10, described("plain", 1, 500))) == ["plain"]
    # The last licence is free, but only until 100.
    assert at(
        s, 20, ev.JobSubmitted(20, matlab("long", 1, 81)), ev.JobSubmitted(20, matlab("short", 1, 80))
    ) == ["short"]
    assert s.views["pool"].booked(s.state.jobs["wide"]).start == 100
    said = explain(s, "wide", plain_clock)
    assert any("kept for it from 100 on" in line for line in said)
    assert said[-1] == "It needs 3 of licence 'matlab', of which 3 of 3 are in use."
    assert at(s, 100, ev.JobEnded(100, "a", "completed"), ev.JobEnded(100, "short", "completed")) == ["wide"]


def test_the_guard_gives_nothing_twice():
    class Reckless:
        @hookimpl
        def schedule(self, view):
            return [d for job in view.queue if (d := view.start_on(job, (), reason="")) is not None]

        @hookimpl
        def control(self, state):
            return [Start(job.id) for job in state.jobs.values() if job.status.value == "pending"]

    s = Scheduler(FLAT, plugged(Reckless()))
    decisions = s.step(0, [ev.JobSubmitted(0, matlab(name, 2)) for name in "ab"])
    assert [d.job_id for d in decisions] == ["a"]
    assert any("job b needs 2 of licence 'matlab', 1 are free" in p.message for p in s.problems)


def test_the_emulated_cluster_refuses_what_is_not_there():
    adapter = EmulatedAdapter(
        FLAT, [traced("a", licences=(("matlab", 2),)), traced("b", licences=(("matlab", 2),))]
    )
    adapter.wait(None)
    first, second = adapter.apply(0, [Start("a"), Start("b")])
    assert first.accepted
    assert second.message == "job b needs 2 of licence 'matlab', 1 are free"


@pytest.mark.parametrize(
    "wanted, why",
    [
        ((("matlab", 4),), "it needs 4 of licence 'matlab', and there are 3"),
        ((("nowhere", 1),), "it needs 1 of licence 'nowhere', and the cluster does not have it"),
    ],
)
@pytest.mark.parametrize("cluster", [FLAT, NODES], ids=["flat", "nodes"])
def test_who_needs_more_than_there_is_holds_up_nobody(cluster, wanted, why):
    s = running(cluster, described("large", 1, 10, licences=wanted), described("small", 1, 10))
    assert s.state.jobs["small"].status.value == "running"
    assert why in s.state.why_waiting(s.state.jobs["large"])
    assert at(s, 5, ev.LicencesChanged(5, wanted[0][0], 4)) == ["large"]


def test_fewer_than_are_in_use_keep_others_waiting_until_enough_came_back():
    s = running(FLAT, matlab("a", 1, 50), matlab("b", 2, 100), matlab("c", 1, 10))
    assert at(s, 5, ev.LicencesChanged(5, "matlab", 1)) == []
    assert s.notices == [
        "licence 'matlab': 3 are in use and there are only 1; no job starts with this licence until enough "
        "are free again"
    ]
    assert at(s, 50, ev.JobEnded(50, "a", "completed"), ev.JobSubmitted(50, described("d"))) == ["d"]
    assert at(s, 90, ev.JobEnded(90, "b", "completed")) == ["c"]


def test_a_negative_amount_is_told_and_ignored():
    s = running(FLAT)
    s.step(5, [ev.LicencesChanged(5, "matlab", -1)])
    assert [
        "licence 'matlab': expected an amount of at least 0, found -1" in p.message for p in s.problems
    ] == [True]
    assert s.state.licences.total["matlab"] == 3


def test_what_appears_while_jobs_run_is_counted_with_what_they_have():
    bare = msgspec.structs.replace(FLAT, licences=())
    s = Scheduler(bare, plugged(Easy()))
    at(s, 0, ev.JobSubmitted(0, matlab("a", 2)), ev.JobStarted(0, "a", ()))
    assert at(s, 1, ev.LicencesChanged(1, "matlab", 3), ev.JobSubmitted(1, matlab("b", 2))) == []
    assert at(s, 2, ev.JobEnded(2, "a", "completed")) == ["b"]


@pytest.mark.parametrize("cluster", [FLAT, NODES], ids=["flat", "nodes"])
def test_what_a_running_job_turns_out_to_have_is_counted_beside_what_was_known_before(cluster):
    ansys = msgspec.structs.replace(cluster, licences=(("ansys", 1),))
    s = running(ansys, described("a"))
    news = [ev.JobChanged(1, matlab("a", 2)), ev.LicencesChanged(1, "matlab", 3)]
    assert at(s, 1, *news, ev.JobSubmitted(1, matlab("b", 2))) == []
    assert s.state.licences.used("matlab") == 2
    assert at(s, 2, ev.JobEnded(2, "a", "completed")) == ["b"]


def test_what_a_running_job_turns_out_not_to_have_is_there_for_others_of_any_pool():
    pools = (PoolDescription("left", 4), PoolDescription("right", 4))
    s = running(
        ClusterDescription("cluster", pools, licences=FLAT.licences),
        matlab("a", 3, pool="left"),
        matlab("b", 2, pool="right"),
    )
    assert at(s, 1, ev.JobChanged(1, matlab("a", 1, pool="left"))) == ["b"]
    assert s.state.licences.used("matlab") == 3


def test_reserved_licences_are_for_the_jobs_of_the_reservation_wherever_they_run():
    for cluster in (FLAT, NODES):
        s = running(cluster)
        kept = Reservation("course", 0, 1000, licences=(("matlab", 2),))
        inside = matlab("inside", 2, reservation="course")
        news = [
            ev.JobSubmitted(1, matlab("outside", 2)),
            ev.JobSubmitted(1, inside),
            ev.JobSubmitted(1, matlab("one", 1)),
        ]
        assert at(s, 1, ev.ReservationMade(1, kept), *news) == ["inside", "one"]
        assert at(s, 5, ev.ReservationEnded(5, "course"), ev.JobEnded(5, "inside", "completed")) == [
            "outside"
        ]


def test_what_another_pool_gives_back_is_news():
    cluster = ClusterDescription(
        "cluster", (PoolDescription("left", 4), PoolDescription("right", 4)), licences=FLAT.licences
    )
    s = running(cluster, matlab("a", 3, pool="left"), matlab("b", 2, pool="right"))
    assert s.state.jobs["b"].status.value == "pending"
    assert at(s, 40, ev.JobEnded(40, "a", "completed")) == ["b"]


@pytest.mark.parametrize("policy", ["easy", "conservative"])
@pytest.mark.parametrize("ends", [5, 10])
def test_a_later_job_of_another_pool_takes_no_licence_that_is_booked(policy, ends):
    cluster = ClusterDescription(
        "cluster", (PoolDescription("left", 4), PoolDescription("right", 4)), licences=FLAT.licences
    )
    s = running(cluster, matlab("a", 3, 10, pool="left"), matlab("b", 2, pool="right"), policy=policy)
    assert at(s, 1, ev.JobSubmitted(1, matlab("c", 2, submit=1, pool="left"))) == []
    assert at(s, ends, ev.JobEnded(ends, "a", "completed")) == ["b"]


@pytest.mark.parametrize(
    "text, said",
    [
        ("1,matlab\n", "use.csv:1: expected job_id,licence,amount, found '1,matlab'"),
        ("1,matlab,none\n", "use.csv:1: expected a whole number above 0, found 'none'"),
        ("1,matlab,1\n1,matlab,1\n", "use.csv:2: licence 'matlab' of job 1 is named twice"),
    ],
)
def test_a_wrong_file_of_licences_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    from headway.errors import UserError
    from headway.workload.licence_use import read_licence_use

    (tmp_path / "use.csv").write_text(text)
    with pytest.raises(UserError) as raised:
        read_licence_use(tmp_path / "use.csv")
    assert str(raised.value).endswith(said)


def test_an_amount_below_nothing_is_no_option() -> None:
    with pytest.raises(ValueError, match="greater than or equal to 0"):
        Faults(licences=[{"at": 1, "licence": "matlab", "total": -1}])
