"""Jobs that name several partitions (``-p a,b``) on a real Slurm."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from driven_slurm import Driven
from live_daemon import Daemon

from headway import decisions as d
from headway import events as ev

pytestmark = pytest.mark.slurm

#: Two nodes of four processors each: a runs nothing of more than ten minutes.
PARTITIONS = (
    "--prefix", "n", "--line", "PartitionName=a Nodes=n[1-2] Default=YES MaxTime=10 DefaultTime=5 State=UP",
    "--line", "PartitionName=b Nodes=n[3-4] MaxTime=INFINITE DefaultTime=7 State=UP",
    "--line", "PartitionName=other Nodes=n[1-4] State=UP",
)  # fmt: skip


@pytest.fixture
def cluster(slurm_factory: Callable[..., Any]) -> Any:
    return slurm_factory(*PARTITIONS)


@pytest.fixture
def daemon(cluster: Any, tmp_path: Path) -> Iterator[Daemon]:
    made = Daemon(cluster, tmp_path, options={"partitions": ["a", "b"], "start_timeout": 3.0})
    yield made
    made.clean_up()


def partition(cluster: Any, job: str) -> str:
    """As Slurm shows it: the list while the job waits, then the one in which it runs."""
    return str(cluster.jobs()[job]["partition"])


def runs_in(cluster: Any, job: str, name: str) -> bool:
    return cluster.state(job) == "RUNNING" and partition(cluster, job) == name


def waits(cluster: Any, *jobs: str) -> bool:
    return all(cluster.state(job) == "PENDING" for job in jobs)


def test_each_runs_in_the_partition_where_it_can_be_first_and_keeps_its_list_until_then(
    cluster: Any, daemon: Daemon
) -> None:
    too_long = cluster.submit(1, partition="a,b", minutes=20)
    on_n4 = cluster.submit(2, partition="a,b", nodelist="n4")
    unlimited = cluster.submit(1, partition="a,b", time="UNLIMITED")
    full_a = cluster.submit(8, partition="a", minutes=9)
    never = cluster.submit(1, partition="a", minutes=20)
    unmanaged = cluster.submit(1, partition="b,other")
    daemon.start()
    for job, name in ((too_long, "b"), (on_n4, "b"), (unlimited, "b"), (full_a, "a"), (unmanaged, "b")):
        daemon.until(lambda job=job, name=name: runs_in(cluster, job, name), what=f"{job} runs in {name}")
    listed = cluster.submit(4, partition="b,a", nodes=1)
    second = cluster.submit(8, partition="a,b")
    daemon.until(lambda: waits(cluster, listed, second, never))
    told = daemon.command("explain", listed).stdout
    assert "in pools 'b' and 'a'" in told and "In pools 'b' and 'a' it is number 1 of 2 in the queue" in told
    reason = "it can never run as it is: it asks for 1200 s, and pool 'a' runs jobs of at most 600 s"
    assert reason in daemon.command("explain", never).stdout
    assert (partition(cluster, listed), partition(cluster, second)) == ("b,a", "a,b")

    cluster.run("scancel", full_a)
    daemon.until(lambda: runs_in(cluster, listed, "a"), what="a frees first")
    cluster.run("scontrol", "requeue", listed)
    daemon.until(lambda: partition(cluster, listed) == "b,a", what="its list is back")
    daemon.kill()
    third = cluster.submit(8, partition="b,a")
    daemon.start()
    daemon.until(lambda: len(daemon.command("explain", third).stdout.splitlines()) > 2)
    assert daemon.stop() == 0
    done = subprocess.run(
        [sys.executable, "-m", "headway_adapters.slurm.give_back", "a", "b"],
        env=cluster.env, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    shown = {job: partition(cluster, job) for job in (listed, second, third) if waits(cluster, job)}
    assert shown.items() <= {listed: "b,a", second: "a,b", third: "b,a"}.items()
    daemon.assert_replays()


def driven(cluster: Any, **options: Any) -> Driven:
    return Driven(cluster, partitions=["a", "b"], start_timeout=2.0, **options)


def fill_n3(cluster: Any) -> None:
    blocker = cluster.submit(4, partition="b", nodes=1, nodelist="n3", hold=False)
    cluster.until(lambda: cluster.state(blocker) == "RUNNING")


def test_a_start_that_does_not_happen_gives_the_list_back(cluster: Any) -> None:
    fill_n3(cluster)
    headway = driven(cluster)
    job = cluster.submit(4, partition="a,b", nodes=1)
    headway.until(ev.JobSubmitted, job)
    (outcome,) = headway.apply(d.Start(job, (("n3", 4),), pool="b"))
    assert outcome.accepted and partition(cluster, job) == "b"
    failed = headway.until(ev.DecisionFailed, job)
    assert failed.decision.pool == "b"
    headway.meanwhile(lambda: partition(cluster, job) == "a,b", "the list is back")
    assert not any(event.job.id == job for event in headway.events if isinstance(event, ev.JobChanged))
    headway.apply(d.Start(job, (("n2", 4),), pool="a"))
    headway.until(ev.JobStarted, job)
    assert runs_in(cluster, job, "a")


def test_a_start_that_slurm_refuses_gives_the_list_back(cluster: Any) -> None:
    headway = driven(cluster)
    job = cluster.submit(1, partition="a,b")
    headway.until(ev.JobSubmitted, job)
    (outcome,) = headway.apply(d.Start(job, (("n9", 1),), pool="b"))
    assert not outcome.accepted
    headway.meanwhile(lambda: partition(cluster, job) == "a,b", "the list is back")


def test_a_restart_amid_a_start_knows_the_list(cluster: Any) -> None:
    fill_n3(cluster)
    before = driven(cluster)
    job = cluster.submit(4, partition="a,b", nodes=1)
    before.until(ev.JobSubmitted, job)
    before.apply(d.Start(job, (("n3", 4),), pool="b"))
    after = driven(cluster)
    releasing = after.until(ev.JobReleasing, job)
    (submitted,) = [e.job for e in after.events if isinstance(e, ev.JobSubmitted) and e.job.id == job]
    assert (releasing.pool, submitted.pools) == ("b", ("a", "b"))
    after.until(ev.DecisionFailed, job)
    after.meanwhile(lambda: partition(cluster, job) == "a,b", "the list is back")


def test_elements_of_an_array_choose_each_for_itself(cluster: Any, daemon: Daemon) -> None:
    array = cluster.submit(4, partition="a,b", nodes=1, array="1-5")
    daemon.start()
    elements = [f"{array}_{at}" for at in range(1, 6)]
    daemon.until(lambda: sum(cluster.state(each) == "RUNNING" for each in elements) == 4, what="four run")
    found = [partition(cluster, each) for each in elements if cluster.state(each) == "RUNNING"]
    assert sorted(found) == ["a", "a", "b", "b"]


def test_a_partition_that_is_closed_is_left_out_until_it_is_open(cluster: Any, daemon: Daemon) -> None:
    cluster.scontrol("update", "PartitionName=a", "State=DOWN")
    one, two = (cluster.submit(8, partition="a,b") for _ in range(2))
    daemon.start()
    daemon.until(lambda: runs_in(cluster, one, "b"), what="it runs in b")
    assert partition(cluster, two) == "a,b"
    cluster.scontrol("update", "PartitionName=a", "State=UP")
    daemon.until(lambda: runs_in(cluster, two, "a"), what="it runs in a")


def test_the_list_is_changed_while_the_job_waits(cluster: Any, daemon: Daemon) -> None:
    full = [cluster.submit(8, partition=name) for name in ("a", "b")]
    job = cluster.submit(8, partition="a,b")
    daemon.start()
    daemon.until(lambda: all(cluster.state(each) == "RUNNING" for each in full), what="both are full")
    cluster.scontrol("update", f"JobId={job}", "Partition=b")
    daemon.until(lambda: "in pool 'b'" in daemon.command("explain", job).stdout, what="headway has seen it")
    cluster.run("scancel", full[0])
    other = cluster.submit(8, partition="a")
    daemon.until(lambda: runs_in(cluster, other, "a"), what="a goes to the other")
    cluster.run("scancel", full[1])
    daemon.until(lambda: runs_in(cluster, job, "b"), what="it runs in b")
