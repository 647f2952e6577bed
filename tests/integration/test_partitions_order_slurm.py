"""Overlapping partitions with tiers on a real Slurm: headway and Slurm's own scheduler start the same jobs in
the same order, side by side and by priorities too; and where they do not."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from live_daemon import Daemon
from test_domains_slurm import NAMES, PARTITIONS

pytestmark = pytest.mark.slurm

#: By priorities, then first come, first served, by tiers: nothing is backfilled.
IN_ORDER = ("--set", "SchedulerType=sched/builtin", "--set", "PriorityType=priority/basic")
#: ``--nice`` alone makes priorities.
BY_NICE = {"multifactor": {"weights": {"age": 0.0}}}
#: The same partitions, each of all nodes.
SAME_NODES = tuple(word.replace("n[2-3]", "n[1-3]") for word in PARTITIONS)
#: What a job names -> how many nodes it may ask for, of three: no other runs beside it.
WHOLE = {"workq": (3,), "hwtest": (3,), "urgent": (2,), "workq,urgent": (2,)}
#: The same where jobs run side by side.
ANY = dict.fromkeys(WHOLE, (1, 2, 3))
Layout = tuple[tuple[str, ...], dict[str, tuple[int, ...]]]


@dataclass(frozen=True)
class Asked:
    """What a job asks for."""

    partition: str
    nodes: int
    nice: int

    @property
    def place(self) -> tuple[int, int]:
        """Its place in the order, the first the least."""
        return (-5 if "urgent" in self.partition else -1, self.nice)


def wanted(count: int, sizes: dict[str, tuple[int, ...]]) -> list[Asked]:
    """So many jobs in the order of submission; the same in each run."""
    draws = random.Random(count)
    found = []
    for _ in range(count):
        partition = draws.choice(list(sizes))
        found.append(Asked(partition, draws.choice(sizes[partition]), draws.choice((0, -1000, -2000))))
    return found


@pytest.mark.both_slurms
@pytest.mark.parametrize("layout", [(PARTITIONS, WHOLE), (SAME_NODES, ANY)], ids=["whole", "side-by-side"])
@pytest.mark.parametrize("count", [24, pytest.param(100, marks=pytest.mark.slow)])
def test_starts_come_in_the_order_of_slurms_own_scheduler(
    slurm_factory: Callable[..., Any], tmp_path: Path, count: int, layout: Layout
) -> None:
    partitions, sizes = layout
    asked = wanted(count, sizes)
    clusters = [slurm_factory(*partitions, *IN_ORDER) for _ in range(2)]
    daemon = in_order(clusters[0], tmp_path)
    try:
        with ThreadPoolExecutor() as at_once:
            driven, own = at_once.map(partial(ran, asked), clusters, (daemon, None))
    finally:
        daemon.clean_up()
    assert driven == own
    assert [number for number, _ in own] == sorted(range(count), key=lambda at: (asked[at].place, at))


def in_order(cluster: Any, directory: Path, policy: str = "fcfs") -> Daemon:
    """A headway that serves the partitions by tiers, then by priorities."""
    return Daemon(cluster, directory, options={"partitions": NAMES}, plugins=[BY_NICE, policy, "first-fit"])


def ran(asked: list[Asked], cluster: Any, daemon: Daemon | None) -> list[tuple[int, str]]:
    """Each job's number and the partition that it ran in, in the order in which Slurm started them by itself,
    or headway decided so."""
    held = daemon is not None
    first = cluster.submit(12, seconds=600, nodes=3, partition="workq", minutes=20, hold=held)
    if daemon is not None:
        daemon.start()
    cluster.until(lambda: cluster.state(first) == "RUNNING", what="all is taken")
    numbers = {submit(cluster, job, held=held): number for number, job in enumerate(asked)}
    cluster.run("scancel", first)
    cluster.until(lambda: len(allocated(cluster)) > len(asked), what="all have started")
    real = [(numbers[job], partition) for job, partition in allocated(cluster)[1:]]
    if daemon is None:
        return real
    decided = {numbers[start.job_id]: at for at, start in daemon.starts() if start.job_id != first}
    # What is decided at the same moment Slurm starts at the same moment, in any order.
    assert [decided[number] for number, _ in real] == sorted(decided.values())
    assert (len(set(decided.values())) < len(asked)) == any(job.nodes == 1 for job in asked)
    return [(number, dict(real)[number]) for number in decided]


def submit(cluster: Any, job: Asked, *, held: bool, seconds: float = 0) -> str:
    return str(
        cluster.submit(
            4 * job.nodes, seconds, nodes=job.nodes, hold=held, minutes=5,
            partition=job.partition, nice=job.nice,
        )
    )  # fmt: skip


def allocated(cluster: Any) -> list[tuple[str, str]]:
    """The jobs and their partitions in the order in which slurmctld gave them nodes, as it logs it."""
    log = (cluster.root / "log" / "slurmctld.log").read_text()
    return re.findall(r"sched: Allocate JobId=(\d+) .* Partition=(\S+)", log)


@dataclass
class Blocked:
    """A cluster on which a job of ``urgent``, which has n2 and n3 of the three, waits for n2."""

    cluster: Any
    first: str
    #: The job of ``urgent``, and one of ``workq`` behind it.
    jobs: list[str]

    @classmethod
    def made(cls, cluster: Any, *, held: bool) -> Blocked:
        first = cluster.submit(4, 600, nodes=1, partition="workq", nodelist="n2", hold=False)
        cluster.until(lambda: cluster.state(first) == "RUNNING", what="n2 is taken")
        jobs = [submit(cluster, Asked("urgent", 2, 0), held=held, seconds=600)]
        # At its submission Slurm looks at a job as if no other waited, and at all of them a moment later.
        asked = ("squeue", "-h", "-a", "-j", jobs[0], "-o", "%r")
        cluster.until(lambda: cluster.run(*asked) in ("Resources", "JobHeldAdmin"), what="it waits")
        jobs.append(submit(cluster, Asked("workq", 1, 0), held=held, seconds=600))
        return cls(cluster, first, jobs)

    def runs(self, job: str) -> bool:
        return self.cluster.state(job) == "RUNNING"


def test_on_nodes_that_the_blocked_partition_has_not_slurm_starts_later_jobs(
    slurm_factory: Callable[..., Any],
) -> None:
    one = Blocked.made(slurm_factory(*PARTITIONS, *IN_ORDER), held=False)
    urgent, behind = one.jobs
    one.cluster.until(lambda: one.runs(behind), what="the job behind it runs")
    assert one.cluster.state(urgent) == "PENDING"


@pytest.mark.parametrize(("policy", "waits"), [("fcfs", True), ("easy", False)])
def test_there_fcfs_waits_for_the_first_job_and_easy_does_not(
    slurm_factory: Callable[..., Any], tmp_path: Path, policy: str, waits: bool
) -> None:
    one = Blocked.made(slurm_factory(*PARTITIONS, *IN_ORDER), held=True)
    urgent, behind = one.jobs
    daemon = in_order(one.cluster, tmp_path, policy)
    daemon.start()
    try:
        if waits:
            asked = partial(daemon.command, "explain", behind)
            daemon.until(lambda: f"job {urgent} of pool 'urgent'" in asked().stdout, what="it waits")
        else:
            daemon.until(lambda: one.runs(behind), what="the job behind it runs")
        one.cluster.run("scancel", one.first)
        daemon.until(lambda: one.runs(urgent) and one.runs(behind), what="both run")
    finally:
        daemon.clean_up()
    assert [start.job_id for _, start in daemon.starts()] == (one.jobs if waits else one.jobs[::-1])
