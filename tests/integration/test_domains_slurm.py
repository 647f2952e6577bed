"""Partitions over the same nodes on a real Slurm: one queue, by their tiers, and one set of bookings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_daemon import Daemon

from headway import events as ev

pytestmark = pytest.mark.slurm

#: Three nodes of four processors each.
PARTITIONS = (
    "--nodes", "3", "--prefix", "n",
    "--line", "PartitionName=workq Nodes=n[1-3] Default=YES PriorityTier=1 State=UP",
    "--line", "PartitionName=hwtest Nodes=n[1-3] PriorityTier=1 State=UP",
    "--line", "PartitionName=urgent Nodes=n[2-3] PriorityTier=5 State=UP",
)  # fmt: skip
NAMES = ["workq", "hwtest", "urgent"]


@pytest.fixture
def cluster(slurm_factory: Callable[..., Any]) -> Any:
    return slurm_factory(*PARTITIONS)


@pytest.fixture
def daemon(cluster: Any, tmp_path: Path) -> Iterator[Daemon]:
    made = Daemon(cluster, tmp_path, options={"partitions": NAMES})
    yield made
    made.clean_up()


def started(daemon: Daemon) -> list[str]:
    """The jobs in the order in which their starts were decided."""
    return [start.job_id for _, start in daemon.starts()]


def test_the_head_of_one_partition_is_not_passed_by_later_jobs_of_another(
    cluster: Any, daemon: Daemon
) -> None:
    first = cluster.submit(4, seconds=15, nodes=1, minutes=1, partition="workq")
    bob = cluster.submit(12, seconds=1, nodes=3, minutes=5, partition="hwtest")
    alice = [cluster.submit(4, seconds=600, nodes=1, minutes=20, partition="workq") for _ in range(5)]
    daemon.start()
    daemon.until(lambda: cluster.state(first) == "RUNNING", what="the first job runs")
    daemon.until(lambda: f"job {bob} of pool 'hwtest'" in daemon.command("explain", alice[0]).stdout)
    daemon.until(lambda: len(started(daemon)) > 2, what="bob's job and then alice's are started")
    assert started(daemon)[:2] == [first, bob]
    assert daemon.stop() == 0
    daemon.assert_replays()


def test_a_partition_of_a_higher_tier_comes_first_on_the_nodes_that_it_has(
    cluster: Any, daemon: Daemon
) -> None:
    full = cluster.submit(12, seconds=5, nodes=3, minutes=5, partition="workq")
    daemon.start()
    daemon.until(lambda: cluster.state(full) == "RUNNING", what="all is taken")
    late = [cluster.submit(12, seconds=1, nodes=3, minutes=1, partition="workq"),
            cluster.submit(8, seconds=1, nodes=2, minutes=1, partition="urgent"),
            cluster.submit(4, seconds=1, nodes=1, minutes=1, partition="workq,urgent")]  # fmt: skip
    daemon.until(lambda: set(late) <= set(started(daemon)), what="all have been started")
    wide, urgent, either = late
    assert started(daemon)[:2] == [full, urgent] and started(daemon).index(either) < started(daemon).index(
        wide
    )
    placed = {start.job_id: [name for name, _ in start.placement] for _, start in daemon.starts()}
    assert placed[urgent] == ["n2", "n3"]
    done = daemon.command("check").stdout
    assert "one queue for urgent (tier 5), workq (tier 1), hwtest (tier 1)" in " ".join(done.split())


def test_the_operator_changes_partitions_while_jobs_wait_and_the_daemon_is_killed(
    cluster: Any, daemon: Daemon
) -> None:
    def change(**partitions: str) -> None:
        for name, what in partitions.items():
            cluster.scontrol("update", f"PartitionName={name}", what)

    def ended(job: str) -> bool:
        return job in {event.job_id for event in daemon.events(ev.JobEnded)}

    full = cluster.submit(12, seconds=600, nodes=3, minutes=20, partition="workq")
    daemon.start()
    daemon.until(lambda: cluster.state(full) == "RUNNING", what="all is taken")
    wide = [cluster.submit(12, seconds=1, nodes=3, partition=name) for name in ("workq", "hwtest")]
    change(hwtest="PriorityTier=9")
    tiers = [("hwtest", 9)]
    daemon.until(
        lambda: [(e.pool.name, e.pool.priority_tier) for e in daemon.events(ev.PoolChanged)] == tiers,
        what="the tier is known",
    )
    daemon.kill()
    # Apart, none has three nodes.
    change(workq="Nodes=n[1-2]", urgent="Nodes=n2", hwtest="Nodes=n3")
    daemon.start()
    small = cluster.submit(4, seconds=1, nodes=1, partition="hwtest")
    cluster.run("scancel", full)
    daemon.until(lambda: ended(small), what="a job of one node runs")
    assert started(daemon) == [full, small]
    daemon.kill()
    daemon.start()
    # Joined while it runs, that of the first job before the others.
    change(hwtest="Nodes=n[1-3]")
    change(workq="Nodes=n[1-3]", urgent="Nodes=n[2-3]")
    daemon.until(lambda: all(map(ended, wide)), what="the jobs of three nodes run")
    assert not daemon.said("a pool is gone")
    cluster.scontrol("delete", "PartitionName=urgent")
    daemon.until(lambda: daemon.said("a pool is gone"), what="the daemon says so")
    last = cluster.submit(4, seconds=1, nodes=1, partition="workq")
    daemon.until(lambda: ended(last), what="the others go on")
    assert started(daemon) == [full, small, *reversed(wide), last]
    assert daemon.stop() == 0
    assert [entry["pool"] for entry in daemon.said("a pool is gone")] == ["urgent"]
    assert not daemon.events(ev.DecisionFailed)
    daemon.assert_replays()
    # As the log said.
    daemon.start(await_log=False)
    assert daemon.ended(60) == 2
