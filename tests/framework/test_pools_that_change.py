"""Pools that come while the scheduler runs, and pools that open and close."""

from __future__ import annotations

from typing import Any

import pytest
from building import alike, described, node_cluster, plugged

from headway import events as ev
from headway.decisions import Start
from headway.model import ClusterDescription, NodeDescription, PoolDescription, Reservation
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
    assert (one.state.pools["late"].total, one.state.domains["late"].free) == (16, 16)
    made = one.step(21, [ev.JobSubmitted(15, described("b", 8, pool="late"))])
    assert started(made) == [("b", (("mn0", 8),))]
    assert not one.problems


def test_nodes_that_came_before_their_pool_count() -> None:
    one = scheduler(node_cluster(*alike(1, 4, pools=("pool", "late"))))
    reserved = Reservation("r", 100, 200, nodes=("n0",))
    one.step(10, [ev.ReservationMade(10, reserved)])
    one.step(20, [ev.PoolChanged(20, PoolDescription("late"))])
    domain = one.state.domains["pool+late"]
    assert (one.state.pools["late"].total, domain.total, domain.reservations) == (4, 4, [reserved])


def test_a_flat_pool_comes_and_grows() -> None:
    one = scheduler(ClusterDescription.flat(4))
    one.step(10, [ev.PoolChanged(10, PoolDescription("late", 8))])
    assert started(one.step(11, [ev.JobSubmitted(11, described("a", 6, pool="late"))])) == [("a", ())]
    one.step(12, [ev.JobStarted(12, "a"), ev.PoolChanged(12, PoolDescription("late", 10))])
    pool = one.state.domains["late"]
    assert (pool.total, pool.free, pool.pools[0].description.processors) == (10, 4, 10)


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
    assert "cannot become a pool of nodes" in one.problems[0].message
    assert one.state.pools["pool"].flat and one.state.pools["pool"].total == 4


@pytest.mark.parametrize("tier", ["foreground", "background"])
def test_who_was_on_a_node_before_it_is_described_has_its_processors(tier: str) -> None:
    # A server that comes back lists its jobs before its nodes have told it what they have.
    one = scheduler(node_cluster(*alike(1, 4)))
    placement = (("n0", 2), ("m0", 6), ("m1", 1))
    submitted = ev.JobSubmitted(10, described("a", 9, memory_per_processor=2))
    one.step(10, [submitted, ev.JobStarted(10, "a", placement, tier=tier)])
    for name, at in (("m0", 20), ("m1", 21)):
        one.step(at, [ev.NodeUp(at, NodeDescription(name, 8, memory=100, pools=("pool",)))])
    pool, nodes, job = one.state.domains["pool"], one.state.nodes, one.state.jobs["a"]
    front = tier == "foreground"
    assert (pool.total, pool.free) == (20, 20 - 9 if front else 20)
    assert list(nodes.free.processors[: len(nodes)]) == ([2, 2, 7] if front else [4, 8, 8])
    assert list(nodes.behind[: len(nodes)]) == ([0, 0, 0] if front else [2, 6, 1])
    assert list(nodes.free.memory[1 : len(nodes)]) == [100 - 12, 100 - 2]
    assert [entry[2] for entry in pool.running] == ([9] if front else [])
    assert job.start_time == 10 and job.placement == placement
    one.step(40, [ev.JobEnded(40, "a", "completed")])
    assert (pool.free, list(nodes.free.processors[: len(nodes)])) == (20, [4, 8, 8])
    assert not pool.running and not nodes.behind.any() and not one.problems


def test_one_that_left_before_its_node_is_described_takes_nothing() -> None:
    one = scheduler(node_cluster(*alike(1, 4)))
    one.step(10, [ev.JobSubmitted(10, described("a", 6)), ev.JobStarted(10, "a", (("m0", 6),))])
    one.step(11, [ev.JobSubmitted(11, described("b", 6)), ev.JobStarted(11, "b", (("m0", 6),))])
    one.step(12, [ev.JobEnded(12, "a", "completed"), ev.JobMigrated(12, "b", (("n0", 4),))])
    one.step(20, [ev.NodeUp(20, NodeDescription("m0", 8, pools=("pool",)))])
    assert (one.state.pools["pool"].total, one.state.domains["pool"].free) == (12, 8)
    assert list(one.state.nodes.free.processors[:2]) == [0, 8]


def test_one_that_runs_is_not_told_to_be_left_out() -> None:
    one = scheduler(ClusterDescription("c", pools=(PoolDescription("pool"),)))
    running = [ev.JobSubmitted(10, described("a", 4)), ev.JobStarted(10, "a", (("m0", 4),))]
    one.step(10, [*running, ev.JobSubmitted(10, described("b", 4))])
    assert one.notices == ["job b is left out of the queue: it cannot run now: pool 'pool' has no nodes"]


def on_a_smaller_node() -> Scheduler:
    """Two nodes of four processors, both in use, of which n0 has become a node of one."""
    one = scheduler(node_cluster(*alike(2, 4)))
    events = [ev.JobSubmitted(10, described("a", 4)), ev.JobSubmitted(10, described("b", 2))]
    assert len(started(one.step(10, events))) == 2
    one.step(11, [ev.JobStarted(11, "a", (("n0", 4),)), ev.JobStarted(11, "b", (("n1", 2),))])
    one.step(12, [ev.NodeUp(12, NodeDescription("n0", 1, pools=("pool",)))])
    return one


def test_a_node_that_became_smaller_than_its_jobs_takes_nothing_from_the_others() -> None:
    one = on_a_smaller_node()
    pool = one.state.domains["pool"]
    assert (pool.total, pool.free) == (5, 2)
    made = one.step(13, [ev.JobSubmitted(13, described("c", 2))])
    assert started(made) == [("c", (("n1", 2),))]
    assert pool.free == 0


def test_what_leaves_a_node_that_became_smaller_gives_back_what_the_node_has() -> None:
    one = on_a_smaller_node()
    pool = one.state.domains["pool"]
    one.step(14, [ev.JobEnded(14, "a")])
    assert pool.free == 3
    one.step(15, [ev.JobEnded(15, "b")])
    assert pool.free == pool.total == 5


def test_jobs_that_share_processors_of_a_node_take_nothing_from_other_nodes() -> None:
    """Somebody else started them there."""
    one = scheduler(node_cluster(*alike(2, 4)))
    pool = one.state.domains["pool"]
    for at, name in enumerate(("a", "b")):
        told = [ev.JobSubmitted(10, described(name, 4, held=True)), ev.JobStarted(10, name, (("n0", 4),))]
        one.step(10 + at, told)
    assert pool.free == 4
    made = one.step(13, [ev.JobSubmitted(13, described("c", 4))])
    assert started(made) == [("c", (("n1", 4),))]
    one.step(14, [ev.JobEnded(14, "a")])
    assert pool.free == 0
    one.step(15, [ev.JobEnded(15, "b")])
    assert pool.free == 4


def test_what_runs_on_a_node_that_changes_its_pool_gives_it_back_to_the_new_one() -> None:
    """Its end is expected there, and who waits there starts then."""
    here, there = ("pool",), ("late",)
    one = scheduler(node_cluster(*alike(1, 4, pools=here), pools=("pool", "late")))
    one.step(10, [ev.JobSubmitted(10, described("a", 4, 100, pool="pool"))])
    one.step(11, [ev.JobStarted(11, "a", (("n0", 4),))])
    one.step(12, [ev.NodeUp(12, NodeDescription("n0", 4, pools=there))])
    assert not started(one.step(13, [ev.JobSubmitted(13, described("b", 4, pool="late"))]))
    pools = one.state.pools
    assert not one.state.domains["pool"].running
    assert [(end, job.id) for end, _, _, job in one.state.domains["late"].running] == [(111, "a")]
    assert started(one.step(20, [ev.JobEnded(20, "a")])) == [("b", (("n0", 4),))]
    assert (pools["late"].total, one.state.domains["late"].free, one.state.domains["pool"].free) == (4, 0, 0)
