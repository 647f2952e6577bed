"""Nodes that sleep: nothing starts on them, and bookings reckon with the time that they take to wake."""

from __future__ import annotations

import pytest
from building import alike, described, node_cluster, plugged

from headway import events as ev
from headway.decisions import Start
from headway.errors import StateError
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription, Reservation
from headway.scheduler import Scheduler
from headway_plugins.policies.conservative import Conservative
from headway_plugins.policies.easy import Easy

WAKE = 30


def scheduler(policy, count: int = 2, **more) -> Scheduler:
    return Scheduler(node_cluster(*alike(count, 4, wake_time=WAKE), **more), plugged(policy))


def submitted(*jobs, now: float = 0) -> list[ev.Event]:
    return [ev.JobSubmitted(now, job) for job in jobs]


def sleeping(*names: str, now: float = 0, power: str = "asleep") -> list[ev.Event]:
    return [ev.NodePowerChanged(now, name, power) for name in names]


def bookings(one: Scheduler) -> dict[str, float]:
    return {booking.job.id: booking.start for booking in one.views["pool"].bookings}


def test_a_sleeping_node_is_capacity_but_no_place() -> None:
    one = scheduler(Easy())
    assert one.step(0, sleeping("n1")) == []
    assert one.state.pools["pool"].total == 8
    (start,) = one.step(1, submitted(described("1", 4, 100), described("2", 4, 100), now=1))
    assert isinstance(start, Start) and start.placement == (("n0", 4),)


def test_the_guard_refuses_a_start_on_it() -> None:
    one = scheduler(Easy())
    one.step(0, [*sleeping("n1"), ev.JobSubmitted(0, described("0", 8, 9))])
    job = one.state.jobs["0"]
    with pytest.raises(StateError, match="node n1 is asleep"):
        one.state.begin(job, (("n0", 4), ("n1", 4)), "foreground", None)


@pytest.mark.parametrize("policy", [Easy, Conservative])
def test_what_waits_for_it_is_booked_from_when_it_can_be_awake(policy) -> None:
    one = scheduler(policy())
    one.step(0, sleeping("n1"))
    one.step(10, submitted(described("1", 4, 1000), described("2", 4, 100), now=10))
    assert bookings(one) == {"2": 10 + WAKE}


@pytest.mark.parametrize("policy", [Easy, Conservative])
def test_a_node_that_ends_its_job_sooner_is_booked_instead(policy) -> None:
    one = scheduler(policy())
    one.step(0, sleeping("n1"))
    one.step(0, submitted(described("1", 4, 20), described("2", 4, 100)))
    assert bookings(one) == {"2": 20}


def test_a_waking_node_is_reckoned_with_from_its_time_on() -> None:
    one = scheduler(Easy())
    one.step(0, sleeping("n1"))
    one.step(5, sleeping("n1", now=5, power="waking"))
    one.step(20, submitted(described("1", 4, 1000), described("2", 4, 100), now=20))
    assert bookings(one) == {"2": 5 + WAKE}
    (start,) = one.step(35, sleeping("n1", now=35, power="on"))
    assert start.job_id == "2"


def test_one_that_should_be_awake_already_is_so_any_moment() -> None:
    one = scheduler(Easy())
    one.step(0, sleeping("n1", power="waking"))
    one.step(500, submitted(described("1", 4, 1000), described("2", 4, 100), now=500))
    assert 500 < bookings(one)["2"] <= 501


def test_a_sleeping_nodes_reservation_is_kept() -> None:
    kept = Reservation("r", 0, 400, nodes=("n1",))
    one = scheduler(Easy(), reservations=(kept,))
    one.step(0, sleeping("n1"))
    one.step(1, submitted(described("1", 4, 1000), described("2", 4, 100), now=1))
    assert bookings(one) == {"2": 400}


class Stretching:
    """Lets each start run twice as long if it may."""

    answers: dict[str, bool]

    def __init__(self, factor: float = 2, push: bool = False) -> None:
        self.factor = factor
        self.push = push
        self.answers = {}

    @hookimpl
    def revise(self, decisions, state):
        for decision in decisions:
            job = state.jobs[decision.job_id]
            view = job.domain.view
            self.answers[job.id] = view.stretch(job, job.expected_runtime * self.factor, push=self.push)
        return None


@pytest.mark.parametrize(
    "cluster", [ClusterDescription.flat(8), node_cluster(*alike(2, 4))], ids=["flat", "nodes"]
)
class TestStretching:
    def test_a_start_that_delays_nothing_may_take_longer(self, cluster) -> None:
        plugin = Stretching()
        one = Scheduler(cluster, plugged(Easy(), plugin))
        one.step(0, submitted(described("1", 4, 100)))
        assert plugin.answers == {"1": True}
        assert one.state.jobs["1"].expected_end == 200

    def test_one_that_would_delay_the_head_may_not(self, cluster) -> None:
        plugin = Stretching(1)
        one = Scheduler(cluster, plugged(Easy(), plugin))
        one.step(0, submitted(described("1", 4, 100)))
        plugin.factor = 2
        one.step(1, submitted(described("head", 8, 50), described("filler", 4, 60), now=1))
        assert plugin.answers == {"1": True, "filler": False}
        assert one.state.jobs["filler"].expected_end == 61

    def test_up_to_the_heads_start_it_may(self, cluster) -> None:
        plugin = Stretching(1)
        one = Scheduler(cluster, plugged(Easy(), plugin))
        one.step(0, submitted(described("1", 4, 100)))
        plugin.factor = 1.5
        one.step(1, submitted(described("head", 8, 50), described("filler", 4, 60), now=1))
        assert plugin.answers["filler"]
        assert one.state.jobs["filler"].expected_end == 91

    def test_what_it_takes_beside_the_head_is_taken_once(self, cluster) -> None:
        # Beside the head 2 processors are left over: enough for one of the two, not for both.
        plugin = Stretching(1)
        one = Scheduler(cluster, plugged(Easy(), plugin))
        one.step(0, submitted(described("1", 4, 100)))
        plugin.factor = 9
        jobs = [described("head", 6, 50), described("a", 2, 60), described("b", 2, 60)]
        one.step(1, submitted(*jobs, now=1))
        assert sorted((plugin.answers["a"], plugin.answers["b"])) == [False, True]

    def test_conservative_bookings_are_kept_as_well(self, cluster) -> None:
        plugin = Stretching(1)
        one = Scheduler(cluster, plugged(Conservative(), plugin))
        one.step(0, submitted(described("1", 4, 100)))
        plugin.factor = 2
        jobs = [described("head", 8, 50), described("second", 8, 50), described("filler", 4, 60)]
        one.step(1, submitted(*jobs, now=1))
        assert plugin.answers["filler"] is False

    @pytest.mark.parametrize("policy", [Easy, Conservative])
    def test_what_was_booked_behind_it_gives_way_if_that_is_wished_for(self, cluster, policy) -> None:
        jobs = [described("1", 6, 100), described("2", 6, 100), described("3", 8, 10)]
        for push in (False, True):
            plugin = Stretching(2, push=push)
            one = Scheduler(cluster, plugged(policy(), plugin))
            one.step(0, submitted(*jobs))
            assert plugin.answers == {"1": push}
            # An arrival at the queue's tail: what was booked before is not taken for valid any more.
            one.step(1, submitted(described("4", 8, 10), now=1))
            assert bookings(one)["2"] == (200 if push else 100)

    def test_what_was_booked_before_it_does_not(self, cluster) -> None:
        plugin = Stretching(1, push=True)
        one = Scheduler(cluster, plugged(Easy(), plugin))
        one.step(0, submitted(described("1", 4, 100)))
        plugin.factor = 2
        one.step(1, submitted(described("head", 8, 50), described("filler", 4, 60), now=1))
        assert plugin.answers["filler"] is False
        assert bookings(one) == {"head": 100}
        # Nor one that stood before the cycle began.
        one = Scheduler(cluster, plugged(Easy(), plugin))
        plugin.factor = 1
        one.step(0, submitted(described("1", 4, 100), described("head", 8, 50)))
        plugin.factor = 2
        one.step(1, submitted(described("filler", 4, 60), now=1))
        assert plugin.answers["filler"] is False

    def test_a_job_that_did_not_start_now_may_not(self, cluster) -> None:
        one = Scheduler(cluster, plugged(Easy()))
        one.step(0, submitted(described("1", 4, 100)))
        one.step(5, [])
        assert not one.views["pool"].stretch(one.state.jobs["1"], 500)
