"""Heterogeneous jobs on a real Slurm: their components start together on the chosen nodes, or not at all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from driven_slurm import Driven
from live_daemon import Daemon, Diary
from waiting import until

from headway import decisions as d
from headway import events as ev
from headway_adapters.slurm.give_back import SlurmGivingBack
from headway_adapters.slurm.options import SlurmOptions

pytestmark = pytest.mark.slurm

FAST = ("--set", "SchedulerParameters=batch_sched_delay=0,bf_interval=1")


@pytest.fixture
def cluster(slurm_factory: Callable[..., Any]) -> Any:
    """Four nodes of four processors, whose backfill scheduler looks around each second."""
    return slurm_factory(*FAST)


@pytest.fixture
def drive(cluster: Any) -> Iterator[Callable[..., Driven]]:
    opened: list[Driven] = []

    def begin(**options: Any) -> Driven:
        opened.append(Driven(cluster, **{"start_timeout": 20.0, **options}))
        return opened[-1]

    yield begin
    for driven in opened:
        driven.adapter.close()


def submit(cluster: Any, *components: str, script: str = "sleep 30", hold: bool = True) -> str:
    """Submit a heterogeneous job of components such as ``-n2 --exclude=node1``; its leader's number."""
    words = ["sbatch", "--parsable", "-o", "/dev/null", "-D", "/"]
    for at, component in enumerate(components):
        words += [":"] if at else []
        words += ["-t5", *(["--hold"] if hold else []), *component.split()]
    job_id: str = cluster.run(*words, "--wrap", script).split(";")[0]
    if hold:
        cluster.scontrol("update", f"JobId={job_id}", "Priority=0")
    return job_id


def fields(cluster: Any, number: int) -> dict[str, str]:
    shown = cluster.scontrol("-o", "show", "job", str(number)).splitlines()
    records = [dict(word.partition("=")[::2] for word in line.split() if "=" in word) for line in shown]
    return next(record for record in records if record["JobId"] == str(number))


def of_user(cluster: Any, leader: str, count: int) -> list[tuple[str, str]]:
    """What Slurm knows of the nodes that the users of the components asked for and excluded."""
    numbers = range(int(leader), int(leader) + count)
    return [(fields(cluster, n)["ReqNodeList"], fields(cluster, n)["ExcNodeList"]) for n in numbers]


def test_the_components_are_one_job_and_start_together(cluster: Any, drive: Callable[..., Driven]) -> None:
    # What sbatch is not told of a component it takes from another.
    job = submit(cluster, "-n1 --exclude=node1", "-n2 --exclude=node4", "-n4 -N2 --exclude=node2")
    driven = drive()
    (told,) = driven.wait()
    assert isinstance(told, ev.JobSubmitted)
    assert (told.job.id, told.job.held, told.job.request.processors) == (job, False, 7)
    assert [part.processors for part in told.job.request.parts] == [1, 2, 4]
    assert told.job.request.parts[1].excluded_nodes == ("node4",)
    driven.wait(1.0)
    placement = (("node4", 1), ("node2", 2), ("node1", 2), ("node3", 2))
    started = driven.start(job, placement)
    # How Slurm shares four processors out over two nodes is its own decision.
    assert [node for node, _ in started.placement] == ["node4", "node2", "node1", "node3"]
    assert started.placement[:2] == placement[:2]
    assert sum(count for _, count in started.placement) == 7
    numbers = range(int(job), int(job) + 3)
    assert [fields(cluster, number)["NodeList"] for number in numbers] == ["node4", "node2", "node[1,3]"]
    assert len({fields(cluster, number)["StartTime"] for number in numbers}) == 1
    driven.wait(1.0)
    assert driven.apply(d.Suspend(job))[0].accepted
    driven.until(ev.JobSuspended, job)
    assert driven.apply(d.Resume(job))[0].accepted
    driven.until(ev.JobResumed, job)
    assert driven.apply(d.Requeue(job))[0].accepted
    driven.until(ev.JobRequeued, job)
    driven.wait(3.0)
    assert {cluster.jobs()[str(number)]["job_state"] for number in numbers} == {"PENDING"}
    assert driven.apply(d.Cancel(job))[0].accepted
    assert driven.until(ev.JobEnded, job).outcome == "cancelled"
    assert not [event for event in driven.events if isinstance(event, ev.JobEnded) and event.job_id != job]


def test_a_start_that_cannot_happen_is_taken_back_whole(cluster: Any, drive: Callable[..., Driven]) -> None:
    """One component finds its node busy: none of them starts, and their users' wishes are as before."""
    blocker = submit_plain(cluster, "node2")
    # Before headway is there, which would take it over.
    cluster.until(lambda: cluster.state(blocker) == "RUNNING")
    job = submit(
        cluster, "-n1 --exclude=node3", "-n2 --exclude=node4 -w node2", "-n1 --exclude=node4 -w node1"
    )
    before = of_user(cluster, job, 3)
    driven = drive(start_timeout=4.0)
    driven.wait()
    placement = (("node4", 1), ("node2", 2), ("node1", 1))
    assert driven.apply(d.Start(job, placement))[0].accepted
    failed = driven.until(ev.DecisionFailed, job)
    assert "it did not start" in failed.message
    numbers = range(int(job), int(job) + 3)
    records = cluster.jobs()
    states = [(records[str(n)]["job_state"], records[str(n)]["priority"]) for n in numbers]
    assert states == [("PENDING", 0)] * 3
    assert of_user(cluster, job, 3) == before
    cluster.run("scancel", blocker)
    driven.until(ev.JobEnded, blocker)
    time.sleep(3)
    states = {cluster.jobs()[str(number)]["job_state"] for number in numbers}
    assert states == {"PENDING"}, "nothing starts later"
    assert driven.start(job, placement).placement == placement


def submit_plain(cluster: Any, node: str) -> str:
    job_id: str = cluster.submit(4, 60, hold=False, nodelist=node)
    return job_id


@pytest.mark.parametrize("after", ["pinning the leader", "pinning all", "releasing"])
def test_a_crash_on_the_way_leaves_nothing_behind(
    cluster: Any, drive: Callable[..., Driven], after: str
) -> None:
    job = submit(cluster, "-n1 --exclude=node3", "-n2 --exclude=node4")
    before = of_user(cluster, job, 2)
    first = drive()
    first.wait(1.0)
    change, calls = first.adapter.commands.change, []

    def dies(argvs: Any) -> Any:
        calls.append(argvs)
        if len(calls) > ["pinning the leader", "pinning all", "releasing"].index(after) + 1:
            raise KeyboardInterrupt
        return change(argvs)

    first.adapter.commands.change = dies  # type: ignore[method-assign]
    placement = (("node4", 1), ("node2", 2))
    try:
        first.apply(d.Start(job, placement))
    except KeyboardInterrupt:
        assert after != "releasing"
    first.adapter.close()
    second = drive()
    if after == "releasing":
        started = second.until(ev.JobStarted, job)
        assert started.placement == placement
        return
    second.wait(2.0)
    until(lambda: (second.wait(0.5), of_user(cluster, job, 2) == before)[1], "the users' wishes are back")
    assert {cluster.jobs()[str(int(job) + at)]["job_state"] for at in range(2)} == {"PENDING"}
    told = [event.job for event in second.events if isinstance(event, ev.JobSubmitted | ev.JobChanged)]
    assert [part.excluded_nodes for part in told[-1].request.parts] == [("node3",), ("node4",)]
    assert second.start(job, placement).placement == placement


def give_back(cluster: Any) -> list[tuple[str, str]]:
    """The jobs that are given back, and what is said of them."""
    with SlurmGivingBack(SlurmOptions(partitions=("batch",), **cluster.options)) as giving:
        return [(one.name, one.said) for one in giving.give_back(("batch",), lambda: True)]


def test_one_that_enters_released_is_taken_over_and_given_back(
    cluster: Any, drive: Callable[..., Driven]
) -> None:
    job = submit(cluster, "-n1", "-n16 -N4", hold=False)
    driven = drive()
    numbers = range(int(job), int(job) + 2)
    until(
        lambda: (driven.wait(0.5), all(cluster.jobs()[str(n)]["priority"] == 0 for n in numbers))[1], "held"
    )
    driven.adapter.close()
    assert give_back(cluster) == [(job, "released")]
    assert all(cluster.jobs()[str(n)]["priority"] > 0 for n in numbers)
    assert {fields(cluster, n).get("AdminComment", "") for n in numbers} == {""}


def test_a_component_that_is_cancelled_gives_its_nodes_back(
    cluster: Any, drive: Callable[..., Driven]
) -> None:
    job = submit(cluster, "-n1", "-n2")
    driven = drive()
    driven.wait(1.0)
    driven.start(job, (("node1", 1), ("node2", 2)))
    cluster.run("scancel", str(int(job) + 1))
    moved = driven.until(ev.JobMigrated, job)
    assert moved.placement == (("node1", 1),)
    cluster.run("scancel", job)
    driven.until(ev.JobEnded, job)


def test_what_headway_cannot_start_together_is_said(slurm_factory: Callable[..., Any]) -> None:
    lines = [
        word
        for name in ("batch Default=YES", "other")
        for word in ("--line", f"PartitionName={name} Nodes=node[1-4] State=UP")
    ]
    cluster = slurm_factory(*FAST, *lines)
    job = submit(cluster, "-n1 -p batch", "-n1 -p other")
    driven = Driven(cluster, partitions=["batch", "other"])
    (told,) = driven.wait()
    assert isinstance(told, ev.JobSubmitted) and told.job.id == job
    assert told.job.held and "in several partitions (batch, other)" in told.reason
    driven.adapter.close()


def test_the_daemon_starts_them_in_turn(cluster: Any, tmp_path: Path) -> None:
    """A heterogeneous job behind a stream of small ones is booked, and all run once."""
    diary = Diary(cluster)
    daemon = Daemon(cluster, tmp_path, plugins=["easy", "first-fit"], options={"start_timeout": 30})
    try:
        daemon.start()
        small = [cluster.submit(4, script=diary.script(2), minutes=1) for _ in range(6)]
        wide = [submit(cluster, "-n4", "-n8 -N2", "-n4", script=diary.script(1)) for _ in range(2)]
        small += [cluster.submit(4, script=diary.script(2), minutes=1) for _ in range(8)]
        narrow = submit(cluster, "-n1", "-n1", script=diary.script(1))
        never = submit(cluster, "-n1", "-n1", "-n1", "-n1", "-n1")
        daemon.until(lambda: diary.ended().total() == len(small) + 3, what="all run")
        explained = daemon.command("explain", never).stdout
        assert "no nodes for all of its 5 parts beside each other" in explained
        explained = daemon.command("explain", f"{never}+1").stdout
        assert "no nodes for all of its 5 parts beside each other" in explained
        assert daemon.stop() == 0
    finally:
        daemon.clean_up()
    assert set(diary.begun().values()) == {1}
    assert set(diary.begun()) == {*small, *wide, narrow}
    assert not daemon.said("a start did not happen")
    assert not daemon.said("a job started that headway did not start")
    daemon.assert_replays()


def test_with_long_rounds_of_the_backfill_scheduler_it_stays_held(slurm_cluster: Any) -> None:
    """Until its round has come, Slurm starts nothing that is released after it in its partition."""
    job = submit(slurm_cluster, "-n1", "-n1")
    driven = Driven(slurm_cluster)
    (told,) = driven.wait()
    assert isinstance(told, ev.JobSubmitted) and told.job.id == job
    assert told.job.held and "with sched/backfill and bf_interval=1" in told.reason
    driven.adapter.close()


def test_a_planned_start_is_shown_of_all_components_and_given_back(
    cluster: Any, drive: Callable[..., Driven]
) -> None:
    job, other = submit(cluster, "-n1", "-n2 --exclude=node4"), submit(cluster, "-n1", "-n2")
    driven = drive(show_starts=True)
    driven.wait()
    driven.adapter.show_starts([(job, time.time() + 3000), (other, time.time() + 4000)])
    driven.meanwhile(
        lambda: all(driven.adapter.overlay.detail(each).shown for each in (job, other)), "they are shown"
    )
    marks = [fields(cluster, int(job) + at)["AdminComment"] for at in (0, 1)]
    assert marks[0] == marks[1] and marks[0].startswith("headway:held;shown=")
    assert fields(cluster, int(job) + 1)["StartTime"] == fields(cluster, int(job))["StartTime"]
    known = driven.adapter.overlay.known(job)
    assert known is not None and known.job.begin_time is None
    driven.start(job, (("node1", 1), ("node2", 2)))
    assert (other, "released") in give_back(cluster)
    until(lambda: cluster.state(other) == "RUNNING", "Slurm starts it")
