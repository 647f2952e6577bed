"""What the emulated cluster refuses to start, whoever wishes for it."""

from __future__ import annotations

import pytest
from building import alike, emulate, node_cluster, traced

from headway import events as ev
from headway.decisions import Reserve, SetTimeLimit, Start, Suspend
from headway.model import ClusterDescription, Dependency, PoolDescription, Reservation
from headway_adapters.emulated import EmulatedAdapter
from headway_plugins.policies.fcfs import Fcfs

FLAT = ClusterDescription.flat(8)


def machine(*jobs, reservations=(), cluster=FLAT, now=0.0):
    """The cluster at ``now``, all jobs that are submitted by then waiting."""
    adapter = EmulatedAdapter(cluster, jobs)
    adapter.wait(None)
    adapter.apply(0, [Reserve(each) for each in reservations])
    while adapter.now < now:
        adapter.wait(now)
    return adapter


def start(adapter, job_id, placement=()):
    """Why it may not start; "" if it did."""
    (outcome,) = adapter.apply(adapter.now, [Start(job_id, placement)])
    assert outcome.accepted == (not outcome.message)
    return outcome.message


# ---------------------------------------------------------------- begin times, holds, pools


def test_a_begin_time_is_waited_for():
    adapter = machine(traced("a", begin_time=50.0))
    assert "begin time 50 has not come" in start(adapter, "a")
    while adapter.now < 50:
        adapter.wait(50)
    assert start(adapter, "a") == ""


def test_a_held_job_is_not_started():
    assert "held" in start(machine(traced("a", held=True)), "a")


def test_a_closed_pool_starts_nothing():
    closed = ClusterDescription("c", (PoolDescription("pool", 8, open=False),))
    assert "pool 'pool' is closed" in start(machine(traced("a"), cluster=closed), "a")


# ---------------------------------------------------------------- dependencies


def depends(job_id, *on, **more):
    return traced(job_id, dependencies=tuple(Dependency(kind, other) for kind, other in on), **more)


@pytest.mark.parametrize("kind", ["ended", "completed", "failed", "started"])
def test_a_job_does_not_start_before_what_it_depends_on(kind):
    adapter = machine(traced("a"), depends("b", (kind, "a")))
    assert f"waits for job a ({kind})" in start(adapter, "b")


def test_a_dependency_on_a_start_is_met_by_it():
    adapter = machine(traced("a"), depends("b", ("started", "a")))
    assert start(adapter, "a") == start(adapter, "b") == ""


@pytest.mark.parametrize(
    ("kind", "outcome", "may"),
    [
        ("ended", "failed", True), ("completed", "completed", True), ("completed", "failed", False),
        ("failed", "failed", True), ("failed", "cancelled", True), ("failed", "completed", False),
        ("started", "failed", True),
    ],
)  # fmt: skip
def test_what_became_of_the_other_decides(kind, outcome, may):
    adapter = machine(traced("a", estimate=10, outcome=outcome), depends("b", (kind, "a")))
    start(adapter, "a")
    adapter.wait(10)
    adapter.wait(10)
    assert (start(adapter, "b") == "") == may


def test_any_one_dependency_is_enough_where_the_job_says_so():
    both = (("completed", "a"), ("completed", "c"))
    jobs = [
        traced("a", estimate=10),
        traced("c"),
        depends("b", *both),
        depends("d", *both, any_dependency=True),
    ]
    adapter = machine(*jobs)
    assert start(adapter, "a") == ""
    adapter.wait(None)
    adapter.wait(None)
    assert start(adapter, "d") == ""
    assert "waits for job c (completed)" in start(adapter, "b")


def test_namesakes_run_one_by_one():
    alone = {"name": "nightly", "user": "ann", "dependencies": (Dependency("singleton", ""),)}
    adapter = machine(traced("a", **alone), traced("b", **alone), traced("c", **{**alone, "user": "bob"}))
    assert "namesakes" in start(adapter, "b")
    assert start(adapter, "a") == start(adapter, "c") == ""
    assert "namesakes" in start(adapter, "b")


def test_a_job_runs_although_what_it_depends_on_ended_before_it_came():
    """The scheduler has forgotten the other job: the cluster says that nothing is waited for any more."""
    jobs = [
        traced("good", estimate=10),
        traced("bad", estimate=10, outcome="failed"),
        depends("ok", ("completed", "good"), submit=20),
        depends("both", ("completed", "good"), ("ended", "bad"), submit=20),
        depends("any", ("completed", "bad"), ("ended", "bad"), submit=20, any_dependency=True),
        depends("never", ("completed", "bad"), submit=20),
    ]
    run = emulate(FLAT, jobs, Fcfs())
    assert run.starts == {"good": 0, "bad": 0, "ok": 20, "both": 20, "any": 20, "never": None}
    told = {e.job.id: e.job.dependencies for e in run.adapter.told if isinstance(e, ev.JobSubmitted)}
    assert told["ok"] == told["both"] == told["any"] == ()
    assert told["never"] == (Dependency("completed", "bad"),)


def test_a_dependency_is_judged_when_its_job_arrives_not_before():
    jobs = [traced("a", estimate=30), depends("b", ("completed", "a"), submit=20)]
    run = emulate(FLAT, jobs, Fcfs())
    assert run.starts == {"a": 0, "b": 30}


def test_a_dependency_on_an_array_waits_for_all_of_it():
    array = {"array_id": "x", "outcome": "completed"}
    jobs = [
        traced("x_1", estimate=10, **{**array, "outcome": "failed"}),
        traced("x_2", estimate=30, **array),
        *(depends(kind, (kind, "x")) for kind in ("ended", "completed", "failed", "started")),
        depends("late", ("failed", "x"), submit=50),
    ]
    run = emulate(FLAT, jobs, Fcfs())
    assert run.starts == {
        "x_1": 0, "x_2": 0, "started": 0, "ended": 30, "failed": 30, "completed": None, "late": 50,
    }  # fmt: skip


def test_a_delay_counts_from_a_start():
    delayed = {"dependencies": (Dependency("started", "a", 60.0),)}
    for runtime in (10, 500):
        jobs = [traced("a", estimate=runtime), traced("b", **delayed), traced("late", submit=40, **delayed)]
        run = emulate(FLAT, jobs, Fcfs())
        assert run.starts == {"a": 0, "b": 60, "late": 60}


# ---------------------------------------------------------------- reservations, flat


def test_a_job_whose_limit_reaches_into_a_reservation_is_refused():
    adapter = machine(
        traced("long", 4, 100, runtime=5), traced("short", 4, 50), traced("small", 2, 100),
        reservations=[Reservation("r", 50, 90, pool="pool", processors=6)],
    )  # fmt: skip
    assert start(adapter, "long") == "job long would break reservation r"
    assert start(adapter, "small") == ""
    assert start(adapter, "short") == ""


def test_what_runs_to_its_limit_counts_against_a_reservation():
    adapter = machine(
        traced("a", 4, 200), traced("b", 2, 60),
        reservations=[Reservation("r", 50, 90, pool="pool", processors=4)],
    )  # fmt: skip
    assert start(adapter, "a") == ""
    assert start(adapter, "b") == "job b would break reservation r"
    adapter.apply(0, [SetTimeLimit("a", 50), Suspend("a")])
    assert start(adapter, "b") == ""


@pytest.mark.parametrize(("now", "message"), [(0, "outside the time"), (60, ""), (95, "does not exist")])
def test_a_job_in_a_reservation_runs_in_its_time(now, message):
    kept = Reservation("r", 50, 90, pool="pool", processors=8)
    assert message in start(machine(traced("a", 8, 20, reservation="r"), reservations=[kept], now=now), "a")


def test_a_reservation_is_given_once():
    kept = Reservation("r", 50, 90, pool="pool", processors=4)
    jobs = [traced("a", 3, 20, reservation="r"), traced("b", 2, 20, reservation="r")]
    adapter = machine(*jobs, reservations=[kept], now=50)
    assert start(adapter, "a") == ""
    assert start(adapter, "b") == "job b does not fit in what reservation r has left"


def test_a_job_does_not_run_on_from_its_reservation_into_another():
    kept = [
        Reservation("r", 50, 90, pool="pool", processors=4),
        Reservation("s", 100, 120, pool="pool", processors=6),
    ]
    jobs = [traced("a", 4, 80, reservation="r"), traced("b", 2, 80, reservation="r")]
    adapter = machine(*jobs, reservations=kept, now=50)
    assert start(adapter, "a") == "job a would run on after reservation r into another one"
    assert start(adapter, "b") == ""


def test_a_reservation_that_is_kept_for_a_job_is_for_it_alone():
    kept = Reservation("job_a", 50, 90, pool="pool", processors=8, ours=True)
    jobs = [traced("a", 8, 20), traced("b", 8, 20), traced("c", 8, 20, reservation="job_a")]
    adapter = machine(*jobs, reservations=[kept], now=60)
    assert start(adapter, "b") == "job b would break reservation job_a"
    assert start(adapter, "c") == "reservation 'job_a' is kept for job a alone"
    assert start(adapter, "a") == ""


# ---------------------------------------------------------------- reservations, nodes


def test_reserved_nodes_are_for_those_who_name_the_reservation():
    cluster = node_cluster(*alike(2, 4))
    jobs = [traced("a", 4, 100), traced("b", 4, 100), traced("m", 4, 20, reservation="r")]
    adapter = machine(*jobs, cluster=cluster, reservations=[Reservation("r", 50, 90, nodes=("n1",))], now=50)
    assert start(adapter, "a", (("n1", 4),)) == "job a would break reservation r on its nodes"
    assert start(adapter, "a", (("n0", 4),)) == ""
    assert "n0" in start(adapter, "m", (("n0", 4),))
    assert start(adapter, "m", (("n1", 4),)) == ""


def test_a_node_is_used_until_its_reservation_begins_and_after_it_ends():
    cluster = node_cluster(*alike(1, 4))
    kept = Reservation("r", 50, 90, nodes=("n0",))
    jobs = [traced("a", 4, 50), traced("b", 4, 51)]
    adapter = machine(*jobs, cluster=cluster, reservations=[kept])
    assert start(adapter, "b", (("n0", 4),)) == "job b would break reservation r on its nodes"
    assert start(adapter, "a", (("n0", 4),)) == ""
    while adapter.now < 90:
        adapter.wait(90)
    assert start(adapter, "b", (("n0", 4),)) == ""


def test_only_nodes_of_its_reservation_are_named_to_a_job():
    cluster = node_cluster(*alike(2, 4))
    kept = Reservation("r", 0, 90, nodes=("n1",))
    adapter = machine(traced("m", 4, 20, reservation="r"), cluster=cluster, reservations=[kept])
    assert start(adapter, "m", (("n0", 4),)) == "node n0 is not in reservation r, which job m asks for"
