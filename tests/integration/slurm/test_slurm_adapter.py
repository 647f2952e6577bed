"""The Slurm adapter on a real Slurm: each test starts one of 4 nodes with 4 CPUs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from driven_slurm import Driven
from waiting import bound, limit

from headway import decisions as d
from headway import events as ev
from headway.model import Reservation

pytestmark = pytest.mark.slurm


@pytest.fixture
def drive(slurm_cluster: Any) -> Iterator[Callable[..., Driven]]:
    opened: list[Driven] = []

    def begin(**options: Any) -> Driven:
        opened.append(Driven(slurm_cluster, **options))
        return opened[-1]

    yield begin
    for driven in opened:
        driven.adapter.close()


def test_the_cluster_and_its_queue_are_seen(slurm_cluster: Any, drive: Callable[..., Driven]) -> None:
    job = slurm_cluster.submit(8, 30, nodes=2)
    driven = drive()
    assert [node.name for node in driven.description.nodes] == ["node1", "node2", "node3", "node4"]
    assert all(node.processors == 4 and node.available for node in driven.description.nodes)
    assert [pool.name for pool in driven.description.pools] == ["batch"]
    (event,) = driven.wait()
    assert isinstance(event, ev.JobSubmitted)
    assert (event.job.id, event.job.pool, event.job.held) == (job, "batch", False)
    assert (event.job.request.processors, event.job.request.nodes) == (8, 2)
    assert event.job.request.walltime == 300


def test_a_job_starts_on_the_nodes_that_were_chosen(slurm_cluster: Any, drive: Callable[..., Driven]) -> None:
    job = slurm_cluster.submit(6, 1)
    driven = drive()
    driven.wait()
    began = time.time()
    started = driven.start(job, (("node2", 4), ("node4", 2)))
    assert time.time() - began < bound(5.0)
    assert [node for node, _ in started.placement] == ["node2", "node4"]
    assert sum(count for _, count in started.placement) == 6
    ended = driven.until(ev.JobEnded, job)
    assert (ended.outcome, ended.exit_code) == ("completed", 0)
    assert ended.time >= started.time + 1
    assert not [e for e in driven.events if isinstance(e, ev.JobChanged | ev.JobHeld)]


def test_twenty_starts_at_once(slurm_cluster: Any, drive: Callable[..., Driven]) -> None:
    jobs = [slurm_cluster.submit(1, 30) for _ in range(16)]
    driven = drive()
    driven.wait()
    starts = [d.Start(job, ((f"node{1 + at % 4}", 1),)) for at, job in enumerate(jobs)]
    assert all(outcome.accepted for outcome in driven.apply(*starts))
    placements = {}
    end = time.time() + limit()
    while len(placements) < len(jobs) and time.time() < end:
        for event in driven.wait(0.5):
            if isinstance(event, ev.JobStarted):
                placements[event.job_id] = event.placement
    assert placements == {start.job_id: start.placement for start in starts}


def test_a_start_on_an_unknown_node_is_refused_and_the_job_stays_held(
    slurm_cluster: Any, drive: Callable[..., Driven]
) -> None:
    job = slurm_cluster.submit(1, 30)
    driven = drive()
    driven.wait()
    outcome = driven.apply(d.Start(job, (("node99", 1),)))[0]
    assert not outcome.accepted
    assert "Invalid node name" in outcome.message
    failed = driven.until(ev.DecisionFailed, job)
    assert "Invalid node name" in failed.message
    record = slurm_cluster.jobs()[job]
    assert (record["job_state"], record["priority"]) == ("PENDING", 0)


def test_a_start_that_does_not_happen_is_taken_back(slurm_cluster: Any, drive: Callable[..., Driven]) -> None:
    blocker = slurm_cluster.submit(4, 60)
    job = slurm_cluster.submit(2, 60)
    driven = drive(start_timeout=4.0)
    driven.wait()
    driven.start(blocker, (("node1", 4),))
    assert driven.apply(d.Start(job, (("node1", 2),)))[0].accepted
    failed = driven.until(ev.DecisionFailed, job, 15)
    assert "did not start" in failed.message
    record = slurm_cluster.jobs()[job]
    assert (record["job_state"], record["priority"], record["required_nodes"]) == ("PENDING", 0, "")
    driven.start(job, (("node2", 2),))


def test_a_users_hold_is_respected_until_he_releases_the_job(
    slurm_cluster: Any, drive: Callable[..., Driven]
) -> None:
    job = slurm_cluster.submit(1, 60, administrator=False)
    driven = drive()
    driven.wait()
    (submitted,) = [e for e in driven.events if isinstance(e, ev.JobSubmitted)]
    assert submitted.job.held
    assert not driven.apply(d.Start(job, (("node1", 1),)))[0].accepted
    for node in range(1, 5):
        slurm_cluster.scontrol("update", f"NodeName=node{node}", "State=DRAIN", "Reason=test")
    slurm_cluster.scontrol("release", job)
    driven.until(ev.JobReleased, job)
    slurm_cluster.until(lambda: slurm_cluster.jobs()[job]["state_reason"] == "JobHeldAdmin")


def test_an_administrators_own_hold_is_respected(slurm_cluster: Any, drive: Callable[..., Driven]) -> None:
    job = slurm_cluster.submit(1, 60)
    slurm_cluster.scontrol("update", f"JobId={job}", "AdminComment=hold: ask me first")
    driven = drive()
    driven.wait()
    assert [e.job.held for e in driven.events if isinstance(e, ev.JobSubmitted)] == [True]
    slurm_cluster.scontrol("update", f"JobId={job}", "AdminComment=")
    driven.until(ev.JobReleased, job)


def test_a_job_that_enters_released_is_taken_over(slurm_cluster: Any, drive: Callable[..., Driven]) -> None:
    for _ in range(4):
        slurm_cluster.submit(4, 60, hold=False)
    late = slurm_cluster.submit(4, 60, hold=False)
    driven = drive()
    driven.meanwhile(lambda: slurm_cluster.jobs()[late]["admin_comment"].startswith("headway:held"))
    record = slurm_cluster.jobs()[late]
    assert (record["priority"], record["state_reason"]) == (0, "JobHeldAdmin")


def test_monitor_mode_changes_nothing(slurm_cluster: Any, drive: Callable[..., Driven]) -> None:
    for _ in range(4):
        slurm_cluster.submit(4, 60, hold=False)
    loose = slurm_cluster.submit(4, 60, hold=False)
    held = slurm_cluster.submit(1, 60)
    slurm_cluster.until(lambda: slurm_cluster.state(loose) == "PENDING")
    before = slurm_cluster.jobs()[loose]["priority"]
    driven = drive(read_only=True)
    driven.wait()
    driven.wait(1.5)
    assert not driven.apply(d.Start(held, (("node1", 1),)), d.Cancel(loose))[0].accepted
    driven.wait(0.5)
    assert slurm_cluster.jobs()[loose]["priority"] == before > 0
    assert slurm_cluster.jobs()[held]["required_nodes"] == ""


def test_slurmctld_dies_and_comes_back(slurm_cluster: Any, drive: Callable[..., Driven]) -> None:
    running = slurm_cluster.submit(2, 60)
    waiting = slurm_cluster.submit(1, 60)
    driven = drive(command_timeout=bound(2.0))
    driven.wait()
    driven.start(running, (("node1", 2),))
    slurm_cluster.saved()
    driven.wait()
    slurm_cluster.kill("slurmctld")
    began = time.time()
    assert all(isinstance(event, ev.ClusterSilent) for event in driven.wait(4.0))
    assert time.time() - began < bound(7.0)
    assert not driven.apply(d.Start(waiting, (("node2", 1),)))[0].accepted
    slurm_cluster.up("slurmctld")
    assert not [e for e in driven.wait(6.0) if isinstance(e, ev.JobEnded)]
    slurm_cluster.run("scancel", running)
    assert driven.until(ev.JobEnded, running).outcome == "cancelled"
    driven.start(waiting, (("node2", 1),))


def test_a_hanging_slurmctld_delays_neither_the_deadline_nor_a_wake(
    slurm_cluster: Any, drive: Callable[..., Driven]
) -> None:
    driven = drive()
    driven.wait()
    slurm_cluster.kill("slurmctld", "STOP")
    try:
        began = time.time()
        for _ in range(3):
            driven.wait(0.7)
        assert time.time() - began < bound(6.0)
        driven.adapter.wake()
        began = time.time()
        assert driven.adapter.wait(time.time() + 30) is not None
        assert time.time() - began < bound(1.0)
    finally:
        slurm_cluster.kill("slurmctld", "CONT")


def test_a_start_from_before_is_on_its_way(slurm_cluster: Any, drive: Callable[..., Driven]) -> None:
    blocker = slurm_cluster.submit(4, 60)
    job = slurm_cluster.submit(2, 60)
    first = drive()
    first.wait()
    first.start(blocker, (("node3", 4),))
    first.apply(d.Start(job, (("node3", 2),)))
    first.adapter.close()
    second = drive(start_timeout=2.0)
    events = second.wait()
    (releasing,) = [e for e in events if isinstance(e, ev.JobReleasing)]
    assert (releasing.job_id, releasing.placement) == (job, (("node3", 2),))
    (submitted,) = [e for e in events if isinstance(e, ev.JobSubmitted) and e.job.id == job]
    assert submitted.job.request.required_nodes == ()
    second.until(ev.DecisionFailed, job)
    assert slurm_cluster.jobs()[job]["priority"] == 0


def test_a_pin_left_behind_is_cleared(slurm_cluster: Any, drive: Callable[..., Driven]) -> None:
    """A predecessor died between pinning and releasing."""
    job = slurm_cluster.submit(2, 60, nodelist="node2")
    comment = "headway:pin=node2,node3;asked=node2;nodes=0-0;cpus=node2:1/node3:1;run=0"
    slurm_cluster.scontrol("update", f"JobId={job}", "ReqNodeList=node2,node3", f"AdminComment={comment}")
    driven = drive()
    driven.meanwhile(lambda: slurm_cluster.jobs()[job]["required_nodes"] == "node2")


def test_time_limits_in_whole_minutes(slurm_cluster: Any, drive: Callable[..., Driven]) -> None:
    pending, running = slurm_cluster.submit(1, 60), slurm_cluster.submit(1, 60)
    driven = drive()
    driven.wait()
    driven.start(running, (("node1", 1),))
    for job in (pending, running):
        assert driven.apply(d.SetTimeLimit(job, 601.0))[0].accepted
        assert driven.until(ev.JobChanged, job).job.request.walltime == 660


def test_suspend_and_resume(slurm_cluster: Any, drive: Callable[..., Driven]) -> None:
    job = slurm_cluster.submit(1, 60)
    driven = drive()
    driven.wait()
    refused = driven.apply(d.Suspend(job))[0]
    assert not refused.accepted and "pending" in refused.message
    driven.start(job, (("node1", 1),))
    assert driven.apply(d.Suspend(job))[0].accepted
    driven.until(ev.JobSuspended, job)
    assert driven.apply(d.Resume(job))[0].accepted
    driven.until(ev.JobResumed, job)


def test_requeue_leaves_the_job_to_us(slurm_cluster: Any, drive: Callable[..., Driven]) -> None:
    job = slurm_cluster.submit(2, 60)
    driven = drive()
    driven.wait()
    driven.start(job, (("node1", 2),))
    assert driven.apply(d.Requeue(job))[0].accepted
    driven.until(ev.JobRequeued, job)
    driven.wait(1.5)
    record = slurm_cluster.jobs()[job]
    assert (record["state_reason"], record["required_nodes"]) == ("JobHeldAdmin", "")
    held = [e for e in driven.events if isinstance(e, ev.JobHeld)]
    assert not held


def test_cancel_and_kill(slurm_cluster: Any, drive: Callable[..., Driven]) -> None:
    pending, running = slurm_cluster.submit(1, 60), slurm_cluster.submit(1, 60)
    driven = drive()
    driven.wait()
    driven.start(running, (("node1", 1),))
    assert all(o.accepted for o in driven.apply(d.Cancel(pending), d.Kill(running)))
    driven.wait(3.0)
    outcomes = {e.job_id: e.outcome for e in driven.events if isinstance(e, ev.JobEnded)}
    assert outcomes == {pending: "cancelled", running: "cancelled"}
    again = driven.apply(d.Kill(running))[0]
    assert again.accepted


def test_reservations(slurm_cluster: Any, drive: Callable[..., Driven]) -> None:
    driven = drive()
    driven.wait()
    start = float(int(time.time()) + 3600)
    wanted = Reservation(id="exam", start=start, end=start + 1800, nodes=("node1", "node2"), users=("root",))
    assert driven.apply(d.Reserve(wanted))[0].accepted
    made = driven.until(ev.ReservationMade).reservation
    assert (made.id, made.start, made.end, made.nodes, made.ours) == (
        "exam", start, start + 1800, ("node1", "node2"), True,
    )  # fmt: skip
    longer = Reservation(id="exam", start=start, end=start + 3600, nodes=("node1",), users=("root",))
    assert driven.apply(d.Reserve(longer))[0].accepted
    assert driven.until(ev.ReservationMade).reservation.end == start + 3600
    assert driven.apply(d.Unreserve("exam"))[0].accepted
    driven.until(ev.ReservationEnded)
    # What is gone already needs no removing.
    assert driven.apply(d.Unreserve("exam"))[0].accepted


def test_a_job_gives_a_node_back(slurm_cluster: Any, drive: Callable[..., Driven]) -> None:
    job = slurm_cluster.submit(4, 60, nodes=2, ntasks_per_node=2)
    driven = drive()
    driven.wait()
    driven.start(job, (("node1", 2), ("node2", 2)))
    outcome = driven.apply(d.Resize(job, 2, (("node1", 2),)))[0]
    assert outcome.accepted, outcome.message
    assert driven.until(ev.JobMigrated, job).placement == (("node1", 2),)


def test_array_elements_are_jobs(slurm_cluster: Any, drive: Callable[..., Driven]) -> None:
    array = slurm_cluster.submit(1, 60, array="1-4%2")
    driven = drive()
    driven.wait()
    held = {e.job.id: e.job.held for e in driven.events if isinstance(e, ev.JobSubmitted)}
    assert held == {f"{array}_1": False, f"{array}_2": False, f"{array}_3": True, f"{array}_4": True}
    driven.start(f"{array}_2", (("node4", 1),))
    driven.wait(1.0)
    elements = slurm_cluster.jobs()
    assert elements[f"{array}_2"]["nodes"] == "node4"
    assert elements[array]["priority"] == 0


def test_an_exclusive_job_gets_whole_nodes(slurm_cluster: Any, drive: Callable[..., Driven]) -> None:
    job = slurm_cluster.submit(1, 60, exclusive=True)
    driven = drive()
    driven.wait()
    assert driven.start(job, (("node3", 4),)).placement == (("node3", 4),)


def test_nodes_go_down_and_up(slurm_cluster: Any, drive: Callable[..., Driven]) -> None:
    driven = drive()
    driven.wait()
    slurm_cluster.scontrol("update", "NodeName=node2", "State=DRAIN", "Reason=fan")
    down = driven.until(ev.NodeDown)
    assert (down.node, down.reason) == ("node2", "drained: fan")
    slurm_cluster.scontrol("update", "NodeName=node2", "State=RESUME")
    up = driven.until(ev.NodeUp).node
    assert (up.name, up.available) == ("node2", True)


def test_dependencies_are_met_when_slurm_says_so(slurm_cluster: Any, drive: Callable[..., Driven]) -> None:
    first = slurm_cluster.submit(1, 1)
    second = slurm_cluster.submit(1, 1, dependency=f"afterok:{first}")
    driven = drive()
    driven.wait()
    (described,) = [e.job for e in driven.events if isinstance(e, ev.JobSubmitted) and e.job.id == second]
    assert [(x.kind, x.job_id) for x in described.dependencies] == [("completed", first)]
    driven.start(first, (("node1", 1),))
    driven.until(ev.JobEnded, first)
    driven.start(second, (("node1", 1),))


def test_check_says_what_a_site_must_mend(slurm_cluster: Any, drive: Callable[..., Driven]) -> None:
    found = {check.subject: check for check in drive().adapter.check()}
    for subject in ("slurm's commands", "slurmctld", "batch_sched_delay", "partition batch", "clock"):
        assert found[subject].ok, found[subject]
    if os.geteuid() == 0:
        assert found["privilege"].ok
    assert not found["jobs enter held"].ok
    assert "job_submit.lua" in found["jobs enter held"].remedy


@pytest.mark.parametrize("what", ["some", "all"])
def test_an_array_cancelled_by_its_user_stops_nobody(
    slurm_cluster: Any, drive: Callable[..., Driven], what: str
) -> None:
    array = slurm_cluster.submit(1, 60, array="1-50")
    other = slurm_cluster.submit(1, 60)
    driven = drive(array_limit=45)
    driven.wait()
    slurm_cluster.run("scancel", f"{array}_[20-30]" if what == "some" else array)
    driven.until(ev.JobEnded, f"{array}_25", seconds=60)
    driven.wait(2)
    ended = {e.job_id: e.outcome for e in driven.events if isinstance(e, ev.JobEnded)}
    gone = range(20, 31) if what == "some" else range(1, 46)
    assert {key: how for key, how in ended.items() if key != array} == dict.fromkeys(
        (f"{array}_{n}" for n in gone), "cancelled"
    )
    assert not driven.adapter.outages()
    driven.start(other, (("node1", 1),))
    if what == "some":
        driven.start(f"{array}_31", (("node2", 1),))
