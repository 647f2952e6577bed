"""Pools that come while the scheduler runs, and pools that open and close."""

from __future__ import annotations

from typing import Any

from building import alike, described, node_cluster, plugged

from headway import events as ev
from headway.decisions import Start
from headway.model import ClusterDescription, PoolDescription, Reservation
from headway.scheduler import Scheduler
from headway.state import Status
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.easy import Easy


def scheduler(cluster: ClusterDescription) -> Scheduler:
    return Scheduler(cluster, plugged(Easy(), FirstFit()))


def started(decisions: list[Any]) -> list[tuple[str, Any]]:
    return [(one.job_id, one.placement) for one in decisions if isinstance(one, Start)]


def test_a_pool_of_nodes_that_comes_later_is_scheduled() -> None:
    one = scheduler(node_cluster(*alike(1, 4)))
    one.step(10, [ev.JobSubmitted(10, described("a", 4))])
    late = alike(2, 8, pools=("late",))
    renamed = [ev.NodeUp(20, type(n)("m" + n.name, n.processors, pools=n.pools)) for n in late]
    one.step(20, [ev.PoolChanged(20, PoolDescription("late")), *renamed])
    assert (one.state.pools["late"].total, one.state.pools["late"].free) == (16, 16)
    made = one.step(21, [ev.JobSubmitted(15, described("b", 8, pool="late"))])
    assert started(made) == [("b", (("mn0", 8),))]
    assert not one.problems


def test_nodes_that_came_before_their_pool_count() -> None:
    one = scheduler(node_cluster(*alike(1, 4, pools=("pool", "late"))))
    reserved = Reservation("r", 100, 200, nodes=("n0",))
    one.step(10, [ev.ReservationMade(10, reserved)])
    one.step(20, [ev.PoolChanged(20, PoolDescription("late"))])
    pool = one.state.pools["late"]
    assert (pool.total, pool.reservations) == (4, [reserved])


def test_a_flat_pool_comes_and_grows() -> None:
    one = scheduler(ClusterDescription.flat(4))
    one.step(10, [ev.PoolChanged(10, PoolDescription("late", 8))])
    assert started(one.step(11, [ev.JobSubmitted(11, described("a", 6, pool="late"))])) == [("a", ())]
    one.step(12, [ev.JobStarted(12, "a"), ev.PoolChanged(12, PoolDescription("late", 10))])
    pool = one.state.pools["late"]
    assert (pool.total, pool.free, pool.description.processors) == (10, 4, 10)


def test_a_closed_pool_starts_nothing_until_it_opens() -> None:
    one = scheduler(ClusterDescription.flat(4))
    shut = PoolDescription("pool", 4, open=False)
    one.step(10, [ev.PoolChanged(10, shut)])
    assert not one.step(11, [ev.JobSubmitted(11, described("a"))])
    assert one.state.why_waiting(one.state.jobs["a"]) == "pool 'pool' is closed"
    assert started(one.step(12, [ev.PoolChanged(12, PoolDescription("pool", 4))])) == [("a", ())]
    # And what waits when it closes waits on.
    one.step(13, [ev.JobStarted(13, "a"), ev.JobSubmitted(13, described("b", 4))])
    one.step(14, [ev.PoolChanged(14, shut)])
    assert one.state.jobs["b"].status is Status.WAITING
    assert not one.step(15, [ev.JobEnded(15, "a")])
    assert started(one.step(16, [ev.PoolChanged(16, PoolDescription("pool", 4))])) == [("b", ())]


def test_a_pool_stays_flat_or_not() -> None:
    one = scheduler(ClusterDescription.flat(4))
    one.step(10, [ev.PoolChanged(10, PoolDescription("pool"))])
    assert "cannot become one of nodes" in one.problems[0].message
    assert one.state.pools["pool"].flat and one.state.pools["pool"].total == 4
