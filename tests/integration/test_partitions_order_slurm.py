"""Overlapping partitions with tiers on a real Slurm: headway and Slurm's own scheduler start the same jobs in
the same order."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from live_daemon import Daemon
from test_domains_slurm import NAMES, PARTITIONS

pytestmark = [pytest.mark.slurm, pytest.mark.both_slurms]

#: First come, first served, by tiers: nothing is backfilled.
IN_ORDER = ("--set", "SchedulerType=sched/builtin", "--set", "PriorityType=priority/basic")
#: What a job names -> how many nodes it asks for, of three: no other runs beside it.
WHOLE = {"workq": 3, "hwtest": 3, "urgent": 2, "workq,urgent": 2}


def wanted(count: int) -> list[str]:
    """The partition of each job, in the order of submission; the same in each run."""
    draws = random.Random(count)
    return [draws.choice(list(WHOLE)) for _ in range(count)]


def submit(cluster: Any, partitions: list[str], order: Path, *, held: bool) -> None:
    """Jobs that write their numbers, in the order of the partitions."""
    for number, partition in enumerate(partitions):
        nodes = WHOLE[partition]
        cluster.submit(
            4 * nodes, nodes=nodes, hold=held, minutes=1, partition=partition,
            script=f"echo {number} >> {order}",
        )  # fmt: skip


@pytest.mark.parametrize("count", [24, pytest.param(100, marks=pytest.mark.slow)])
def test_starts_come_in_the_order_of_slurms_own_scheduler(
    slurm_factory: Callable[..., Any], tmp_path: Path, count: int
) -> None:
    partitions = wanted(count)
    orders = [ran(slurm_factory(*PARTITIONS, *IN_ORDER), partitions, None),
              ran(slurm_factory(*PARTITIONS, *IN_ORDER), partitions, tmp_path)]  # fmt: skip
    assert orders[0] == orders[1]
    tiers = [5 if "urgent" in partitions[number] else 1 for number in orders[1]]
    assert tiers == sorted(tiers, reverse=True)


def ran(cluster: Any, partitions: list[str], directory: Path | None) -> list[int]:
    """The numbers of the jobs as they started: by headway, in this directory, or by Slurm itself."""
    order: Path = cluster.root / "order"
    order.touch()
    order.chmod(0o666)
    driven = directory is not None
    first = cluster.submit(12, seconds=600, nodes=3, partition="workq", minutes=20, hold=driven)
    daemon = None
    if directory is not None:
        daemon = Daemon(cluster, directory, options={"partitions": NAMES}, plugins=["fcfs", "first-fit"])
        daemon.start()
    cluster.until(lambda: cluster.state(first) == "RUNNING", what="all is taken")
    submit(cluster, partitions, order, held=driven)
    cluster.run("scancel", first)
    cluster.until(lambda: len(order.read_text().split()) == len(partitions), what="all have run")
    if daemon is not None:
        daemon.clean_up()
    return [int(number) for number in order.read_text().split()]
