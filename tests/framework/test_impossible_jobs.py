"""Jobs that could not run even on an idle pool: told once, in no queue, looked at again with the capacity."""

from __future__ import annotations

import pytest
from building import alike, described, node_cluster, plugged

from headway import events as ev
from headway.decisions import Resize
from headway.inquiry import explain
from headway.model import ClusterDescription, NodeDescription, PoolDescription, Reservation
from headway.scheduler import Scheduler, plain_clock
from headway.scheduler.gate import take_effect
from headway.state import Status
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.fcfs import Fcfs

MIB = 1 << 20


def driven(cluster: ClusterDescription, **more) -> Scheduler:
    return Scheduler(cluster, plugged(Fcfs(), FirstFit()), **more)


def submitted(*jobs, now=0):
    return [ev.JobSubmitted(now, job) for job in jobs]


def started(decisions):
    return [decision.job_id for decision in decisions]


def queued(scheduler):
    return [job.id for pool in scheduler.state.domains.values() for job in pool.queue]


def why(scheduler, job_id):
    return scheduler.state.why_waiting(scheduler.state.jobs[job_id])


def flat(processors):
    return PoolDescription("pool", processors)


def test_a_job_larger_than_the_machine_is_in_no_queue_and_is_told_once():
    s = driven(ClusterDescription.flat(8))
    assert started(s.step(0, submitted(described("huge", 9), described("a", 8)))) == ["a"]
    assert queued(s) == []
    assert s.state.jobs["huge"].status is Status.WAITING
    reason = "it can never run as it is: it needs 9 processors, and pool 'pool' has 8"
    assert why(s, "huge") == reason
    assert s.notices == [f"job huge is left out of the queue: {reason}"]
    s.notices.clear()
    s.step(1, [ev.PoolChanged(1, flat(7)), ev.JobStarted(1, "a")])
    s.step(2, [ev.JobEnded(2, "a", "completed")])
    assert s.notices == []
    assert s.problems == []


def test_explain_names_the_reason():
    s = driven(ClusterDescription.flat(8))
    s.step(0, submitted(described("huge", 9)))
    lines = explain(s, "huge", plain_clock)
    assert (
        lines[-1]
        == "It cannot start: it can never run as it is: it needs 9 processors, and pool 'pool' has 8."
    )


def test_it_is_looked_at_when_the_pool_grows():
    s = driven(ClusterDescription.flat(8))
    s.step(0, submitted(described("huge", 9), described("a", 1)))
    assert started(s.step(5, [ev.PoolChanged(5, flat(10))])) == ["huge"]


def test_who_waits_is_left_out_when_the_pool_shrinks():
    s = driven(ClusterDescription.flat(8))
    s.step(0, submitted(described("a", 4), described("b", 6), described("c", 2)))
    assert queued(s) == ["b", "c"]
    assert started(s.step(1, [ev.JobStarted(0, "a"), ev.PoolChanged(1, flat(5))])) == []
    assert queued(s) == ["c"]
    assert started(s.step(2, [ev.JobEnded(2, "a", "completed")])) == ["c"]


def test_it_is_looked_at_when_it_changes():
    s = driven(ClusterDescription.flat(8))
    s.step(0, submitted(described("huge", 9), described("fits", 1)))
    s.notices.clear()
    assert started(s.step(1, [ev.JobChanged(1, described("huge", 10))])) == []
    assert len(s.notices) == 1, "another request is another mistake"
    assert started(s.step(2, [ev.JobChanged(2, described("huge", 7))])) == ["huge"]


def test_a_job_that_may_become_small_enough_is_looked_at_with_the_size_that_was_granted():
    s = driven(ClusterDescription.flat(8))
    s.step(0, submitted(described("huge", 9)))
    take_effect(s.state, Resize("huge", 8))
    assert queued(s) == ["huge"]
    s.state.take_back(Resize("huge", 8))
    assert queued(s) == []
    assert why(s, "huge").startswith("it can never run")


def test_a_held_job_is_held_first_and_impossible_when_it_is_released():
    s = driven(ClusterDescription.flat(8))
    s.step(0, submitted(described("huge", 9, held=True)))
    assert why(s, "huge") == "held by its user or an administrator"
    assert s.notices == []
    s.step(1, [ev.JobReleased(1, "huge")])
    assert why(s, "huge").startswith("it can never run")
    assert len(s.notices) == 1


def test_a_begin_time_still_counts_when_the_pool_has_grown():
    s = driven(ClusterDescription.flat(8))
    s.step(0, submitted(described("huge", 9, begin_time=50)))
    assert why(s, "huge").startswith("it can never run")
    assert started(s.step(10, [ev.PoolChanged(10, flat(9))])) == []
    assert why(s, "huge") == "its begin time 50 has not come"
    assert s.next_wakeup() == 50
    assert started(s.step(50, [])) == ["huge"]


def test_a_job_that_somebody_else_started_and_that_comes_back_is_looked_at_again():
    s = driven(ClusterDescription.flat(8))
    s.step(0, submitted(described("huge", 9)))
    s.step(1, [ev.JobStarted(1, "huge")])
    assert s.state.jobs["huge"].status is Status.RUNNING
    s.step(2, [ev.JobRequeued(2, "huge")])
    assert queued(s) == []
    s.step(3, [ev.JobEnded(3, "huge", "cancelled"), ev.PoolChanged(3, flat(9))])
    assert s.state.jobs == {}


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"processors": 13}, "it needs 13 processors, and pool 'pool' has 12"),
        ({"processors": 4, "nodes": 4}, "it needs 4 nodes, and pool 'pool' has 3"),
        ({"required_nodes": ("n0", "z")}, "it names z, which pool 'pool' does not have"),
        ({"features": ("gold",)}, "no node of pool 'pool' has gold"),
        (
            {"processors": 2, "memory_per_node": 2048 * MIB},
            "the nodes of pool 'pool' do not have what it asks for: 2 processors, 2048 MiB a node",
        ),
        (
            {"processors": 8, "processors_per_chunk": 8},
            "the nodes of pool 'pool' do not have what it asks for: 8 processors, "
            "8 processors together on a node",
        ),
    ],
)  # fmt: skip
def test_on_nodes_the_reason_is_what_they_lack(asked, reason):
    s = driven(node_cluster(*alike(3, 4, memory=1024 * MIB)))
    job = described("x", asked.pop("processors", 1), **asked)
    assert started(s.step(0, submitted(job, described("a", 12)))) == ["a"]
    assert why(s, "x") == f"it can never run as it is: {reason}"


def test_it_is_looked_at_when_a_node_is_added_or_described_anew():
    s = driven(node_cluster(*alike(2, 4)))
    s.step(0, submitted(described("wide", 12), described("gold", 1, features=("gold",))))
    assert queued(s) == []
    more = NodeDescription("n2", 4, pools=("pool",))
    assert started(s.step(1, [ev.NodeUp(1, more)])) == ["wide"]
    s.step(2, [ev.JobStarted(1, "wide"), ev.JobEnded(2, "wide", "completed")])
    gold = NodeDescription("n0", 4, pools=("pool",), features=("gold",))
    assert started(s.step(3, [ev.NodeUp(3, gold)])) == ["gold"]


def test_a_job_that_needs_nodes_that_are_down_holds_up_nobody_until_they_are_back():
    s = driven(node_cluster(*alike(2, 4)))
    s.step(0, [ev.NodeDown(0, "n1", "broken"), *submitted(described("wide", 8), described("a", 4))])
    assert queued(s) == []
    reason = "it cannot run now: 1 of the 2 nodes of pool 'pool' are down"
    assert why(s, "wide") == reason
    assert s.notices == [f"job wide is left out of the queue: {reason}"]
    s.notices.clear()
    back = NodeDescription("n1", 4, pools=("pool",))
    s.step(1, [ev.JobStarted(0, "a"), ev.NodeUp(1, back)])
    assert queued(s) == ["wide"]
    s.step(2, [ev.NodeDown(2, "n1", "broken again")])
    assert queued(s) == []
    assert s.notices == [], "nodes come and go; the job's story was told"


def test_a_site_may_let_others_wait_for_nodes_that_are_down():
    s = driven(node_cluster(*alike(2, 4)), wait_for_down_nodes=True)
    down = ev.NodeDown(0, "n1", "broken")
    assert started(s.step(0, [down, *submitted(described("wide", 8), described("a", 4))])) == []
    assert queued(s) == ["wide", "a"]
    s.step(1, submitted(described("huge", 9), now=1))
    assert queued(s) == ["wide", "a"]


def test_sleeping_nodes_are_there():
    s = driven(node_cluster(*alike(2, 4)))
    asleep = [ev.NodePowerChanged(0, f"n{at}", "asleep") for at in (0, 1)]
    s.step(0, [*asleep, *submitted(described("wide", 8))])
    assert queued(s) == ["wide"]


def test_a_pool_that_has_no_nodes_yet_may_get_some():
    s = driven(ClusterDescription("c", ()))
    pool = ev.PoolChanged(0, PoolDescription("late"))
    s.step(0, [pool, *submitted(described("a", 4, pool="late"))])
    assert why(s, "a") == "it cannot run now: pool 'late' has no nodes"
    node = NodeDescription("n0", 4, pools=("late",))
    assert started(s.step(1, [ev.NodeUp(1, node)])) == ["a"]


def test_what_arrives_with_its_nodes_is_not_told():
    """Events of one instant are one piece of news."""
    s = driven(ClusterDescription("c", ()))
    pool, node = PoolDescription("late"), NodeDescription("n0", 4, pools=("late",))
    step = [*submitted(described("a", 4, pool="late")), ev.PoolChanged(0, pool), ev.NodeUp(0, node)]
    assert started(s.step(0, step)) == ["a"]
    assert s.notices == []


def test_a_reservation_is_all_that_a_job_inside_it_can_get():
    flat_pool = ClusterDescription.flat(8)
    kept = Reservation("r", 10, 1000, pool="pool", processors=4)
    s = driven(ClusterDescription("c", flat_pool.pools, (), (kept,)))
    s.step(10, submitted(described("x", 5, reservation="r"), now=10))
    assert why(s, "x") == "it can never run as it is: it needs 5 processors, and reservation 'r' has 4"
    larger = Reservation("r", 10, 1000, pool="pool", processors=5)
    assert started(s.step(11, [ev.ReservationMade(11, larger)])) == ["x"]


def test_the_same_on_reserved_nodes():
    kept = Reservation("r", 10, 1000, nodes=("n0",))
    s = driven(node_cluster(*alike(2, 4), reservations=(kept,)))
    s.step(10, submitted(described("x", 5, reservation="r"), now=10))
    assert why(s, "x") == "it can never run as it is: it needs 5 processors, and reservation 'r' has 4"
    larger = Reservation("r", 10, 1000, nodes=("n0", "n1"))
    assert started(s.step(11, [ev.ReservationMade(11, larger)])) == ["x"]


def test_jobs_of_one_shape_are_judged_once_until_nodes_change(monkeypatch):
    s = driven(node_cluster(*alike(2, 4)))
    asked = []
    judge = type(s.state.nodes).can_host
    monkeypatch.setattr(
        type(s.state.nodes), "can_host", lambda *a, **more: asked.append(a) or judge(*a, **more)
    )
    jobs = [described(f"j{at}", 8, estimate=100 + at) for at in range(20)]
    s.step(0, submitted(*jobs))
    s.step(1, [])
    assert len(asked) == 1
    s.step(2, [ev.NodeUp(2, NodeDescription("n2", 4, pools=("pool",)))])
    assert len(asked) == 2


def test_what_nodes_have_and_nobody_takes_is_asked_for_and_not_used_up():
    def node(name, memory):
        return NodeDescription(name, 4, pools=("batch",), sizes=(("memory", memory * MIB),))

    cluster = ClusterDescription("c", (PoolDescription("batch"),), (node("n1", 1000), node("n2", 4000)))
    s = driven(cluster)
    large = [described(f"large{i}", 1, least_sizes=(("memory", 3000 * MIB),)) for i in range(3)]
    huge = described("huge", 1, least_sizes=(("memory", 5000 * MIB),))
    disk = described("disk", 1, least_sizes=(("disk", 2),))
    decisions = s.step(0, submitted(huge, disk, *large))
    assert [start.placement for start in decisions] == [(("n2", 1),)] * 3
    assert why(s, "huge") == "it can never run as it is: no node of pool 'batch' has 5000 MiB of memory"
    assert why(s, "disk") == "it can never run as it is: no node of pool 'batch' has 2 disk"
    assert started(s.step(1, [ev.NodeUp(1, node("n1", 8000))])) == ["huge"]


def test_of_very_many_nodes_a_reason_names_some():
    nodes = tuple(NodeDescription(f"n{i}", 4, pools=("batch",)) for i in range(30))
    s = driven(ClusterDescription("c", (PoolDescription("batch"),), nodes))
    s.step(0, submitted(described("none", 1, excluded_nodes=tuple(node.name for node in nodes))))
    assert why(s, "none").endswith("1 processors, not on n0, n1, n2, n3, n4, n5, n6, n7 and 22 more")


def test_many_jobs_that_wait_for_the_same_are_told_in_one_line():
    nodes = [NodeDescription(f"n{i}", 4, pools=("batch",)) for i in range(2)]
    s = driven(ClusterDescription("c", (PoolDescription("batch"),), tuple(nodes)))
    jobs = [described(f"j{i}", 8) for i in range(300)]
    s.step(0, submitted(described("a", 8), *jobs))
    s.step(1, [ev.NodeDown(1, "n0", "not responding"), ev.NodeDown(1, "n1", "not responding")])
    (said,) = s.notices
    assert said.startswith("300 jobs (j0, j1, j2, j3, j4, ...) are left out of the queue: it cannot run now:")
    s.notices.clear()
    s.step(2, [ev.NodeUp(2, node) for node in nodes])
    assert queued(s) == [job.id for job in jobs]
    assert s.notices == []
