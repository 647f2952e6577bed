"""A pending job is bound to a reservation, in emulation and in a federation of emulated clusters."""

from __future__ import annotations

from typing import Any

import pytest
from building import alike, emulate, node_cluster, traced

from headway import decisions as d
from headway import events as ev
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription, PoolDescription, Reservation, Site, Sites
from headway_plugins.policies.easy import Easy


class Wishes:
    """Makes decisions at their times."""

    def __init__(self, *wishes: tuple[float, d.Decision]) -> None:
        self.wishes = list(wishes)
        self.told: list[ev.Event] = []

    @hookimpl
    def startup(self, state: Any) -> None:
        for time, _ in self.wishes:
            state.wake_at(time, next(iter(state.pools.values())))

    @hookimpl
    def observe(self, event: ev.Event) -> None:
        if isinstance(event, ev.JobChanged | ev.DecisionFailed):
            self.told.append(event)

    @hookimpl
    def react(self, state: Any) -> list[d.Decision]:
        due = [decision for time, decision in self.wishes if time <= state.now]
        self.wishes = [wish for wish in self.wishes if wish[0] > state.now]
        return due


def kept(name: str = "r", **more: Any) -> Reservation:
    return Reservation(name, 100.0, 200.0, nodes=("n1",), ours=True, **more)


def run(*wishes: tuple[float, d.Decision], **more: Any):
    cluster = node_cluster(*alike(2, 4), reservations=(kept(**more),))
    plugin = Wishes(*wishes)
    jobs = [traced("1", 8, 60, 0, pool="pool"), traced("2", 4, 50, 1, pool="pool", user="u")]
    return emulate(cluster, jobs, Easy(), plugin), plugin


def test_a_bound_job_runs_in_its_reservation_alone():
    done, plugin = run((10, d.Bind("2", "r")))
    assert done.results["2"].start_time == 100.0
    assert [event.job.reservation for event in plugin.told] == ["r"] and not done.problems


def test_a_job_that_is_bound_no_more_runs_when_there_is_room():
    done, plugin = run((10, d.Bind("2", "r")), (20, d.Bind("2", "")))
    assert done.results["2"].start_time == 60.0
    assert [event.job.reservation for event in plugin.told] == ["r", ""]


def test_a_reservation_of_other_users_takes_no_job_and_the_job_goes_on_as_before():
    done, plugin = run((10, d.Bind("2", "r")), users=("x",))
    (failed,) = plugin.told
    assert isinstance(failed, ev.DecisionFailed) and "not for user" in failed.message
    assert done.results["2"].start_time == 60.0 and not done.problems


@pytest.mark.parametrize("reservation", ["nowhere", "r"])
def test_a_job_that_runs_is_not_bound(reservation):
    done, _ = run((10, d.Bind("1", reservation)))
    assert len(done.problems) == 1 and done.results["1"].start_time == 0.0


def test_a_federation_binds_a_job_at_the_cluster_of_both():
    pools = (PoolDescription("a:q", 4), PoolDescription("b:q", 4))
    sites = Sites((Site("a", pools=("a:q",)), Site("b", pools=("b:q",))))
    made = Reservation("m1-1-b", 100.0, 200.0, pool="b:q", processors=4, ours=True)
    jobs = [
        traced("a:1", 4, 20, 0, pool="a:q"), traced("b:1", 4, 20, 0, pool="b:q"),
        traced("b:2", 4, 20, 1, pool="b:q"),
    ]  # fmt: skip
    wishes = Wishes((5, d.Reserve(made)), (6, d.Bind("b:2", "m1-1-b")))
    done = emulate(ClusterDescription("all", pools, sites=sites), jobs, Easy(), wishes)
    assert done.results["b:2"].start_time == 100.0 and not done.problems
    assert [event.job.reservation for event in wishes.told] == ["m1-1-b"]
