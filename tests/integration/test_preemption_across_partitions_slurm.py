"""Preemption on a real Slurm where partitions share nodes: the victim has nodes of the urgent partition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_daemon import Daemon, Diary

from headway.decisions import Requeue

pytestmark = pytest.mark.slurm

#: n1 is of left alone, n2 of both, n3 of right alone; four processors each.
PARTITIONS = (
    "--nodes", "3", "--prefix", "n",
    "--line", "PartitionName=left Nodes=n[1-2] Default=YES State=UP",
    "--line", "PartitionName=right Nodes=n[2-3] State=UP",
)  # fmt: skip
RULES = {"rules": [{"who": {"account": ["urgent"]}, "whom": {"account": ["spare"]}}]}


@pytest.fixture
def daemon(slurm_factory: Callable[..., Any], tmp_path: Path) -> Iterator[Daemon]:
    made = Daemon(
        slurm_factory(*PARTITIONS), tmp_path, options={"partitions": ["left", "right"]},
        plugins=["easy", "first-fit", {"preemption": RULES}],
    )  # fmt: skip
    yield made
    made.clean_up()


@pytest.mark.parametrize(
    ("asked", "goes", "node"),
    [
        # The job on n3 would lose least; but partition left does not have n3.
        ("left", "second", "n2"),
        ("left,right", "third", "n3"),
    ],
)
def test_the_job_goes_that_loses_least_of_those_on_the_partitions_nodes(
    daemon: Daemon, asked: str, goes: str, node: str
) -> None:
    cluster = daemon.cluster
    diary = Diary(cluster)
    daemon.start()
    spare: dict[str, str] = {}
    # The fewer processors it has the less it loses; each has its node alone as far as the urgent job goes.
    for name, partition, processors, on in (
        ("first", "left", 4, "n1"), ("second", "left", 2, "n2"), ("third", "right", 1, "n3"),
    ):  # fmt: skip
        spare[name] = cluster.submit(
            processors, nodes=1, script=diary.script("0; sleep 600"), account="spare", partition=partition,
            minutes=20, nodelist=on,
        )  # fmt: skip
    daemon.until(lambda: set(spare.values()) <= set(diary.begun()), what="the spare jobs run")
    high = cluster.submit(
        4, nodes=1, script=diary.script("1; sleep 600"), account="urgent", partition=asked, minutes=20
    )
    daemon.until(lambda: high in diary.begun(), what="the urgent job runs")
    requeues = [decision.job_id for _, decision in daemon.decisions() if isinstance(decision, Requeue)]
    assert requeues == [spare[goes]]
    placed = {start.job_id: start.placement for _, start in daemon.starts()}
    assert [name for name, _ in placed[high]] == [node]
    assert daemon.stop() == 0
    daemon.assert_replays()
