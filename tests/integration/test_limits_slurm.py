"""Limits of a real Slurm with accounting: what was used before headway began counts."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from live_daemon import Daemon
from slurm_cluster import SYSTEM, SlurmCluster
from waiting import until

from headway_adapters.slurm.reader.spent import read_spent

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

WORDS = (
    "--accounting", "--set", "AccountingStorageEnforce=associations",
    "--set", "PriorityType=priority/multifactor", "--set", "PriorityCalcPeriod=00:01:00",
    "--set", "PriorityDecayHalfLife=0",
)  # fmt: skip


def used(cluster: SlurmCluster) -> dict[str, float]:
    """Minutes of GrpWall by account, as Slurm has them."""
    text = cluster.run("scontrol", "-o", "show", "assoc_mgr", "flags=assoc,qos")
    return {
        name: about.get("wall_minutes", 0.0) for name, about in read_spent(text).get("account", {}).items()
    }


def submit(cluster: SlurmCluster, minutes: int, seconds: int, *words: str) -> str:
    line = ["sbatch", "--parsable", "-A", "lab", "-D", "/tmp", "-o", "/dev/null", "-t", str(minutes), *words]
    return cluster.run(*line, "--wrap", f"sleep {seconds}", user="daemon").split(";")[0]


@pytest.fixture
def counted(slurm_factory: Callable[..., SlurmCluster]) -> SlurmCluster:
    """An account that may run for five minutes, of which Slurm has counted some seconds."""
    missing = [name for name in ("slurmdbd", "mariadbd") if shutil.which(name, path=SYSTEM) is None]
    if missing:
        pytest.skip(f"Slurm's accounting is not installed: {' '.join(missing)} (slurmdbd, mariadb-server)")
    cluster = slurm_factory(*WORDS)
    cluster.run("sacctmgr", "-i", "add", "account", "lab", "GrpWall=5")
    cluster.run("sacctmgr", "-i", "add", "user", "daemon", "account=lab")
    # A slurmctld that began without accounts counts no usage.
    cluster.kill("slurmctld", "TERM")
    until(lambda: "is DOWN" in cluster.run("scontrol", "ping", check=False), what="slurmctld is down")
    cluster.up("slurmctld")
    until(lambda: "is UP" in cluster.run("scontrol", "ping", check=False), what="slurmctld is up")
    submit(cluster, 1, 10)
    until(lambda: used(cluster).get("lab"), what="Slurm has counted the job", seconds=300)
    until(lambda: not cluster.run("squeue", "-h"), what="the job is over")
    return cluster


@pytest.fixture
def driving(counted: SlurmCluster, tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(counted, tmp_path, plugins=[{"limits": {"of": "from-slurm"}}, "easy"])
    yield daemon
    daemon.clean_up()


def test_minutes_of_grpwall_that_slurm_counted_before_are_used_up(driving: Daemon) -> None:
    cluster = driving.cluster
    waits, runs = (submit(cluster, minutes, 1, "--hold") for minutes in (5, 4))
    driving.start()
    driving.until(
        lambda: runs in {start.job_id for _, start in driving.starts()}, what="four minutes are left"
    )
    assert waits not in {start.job_id for _, start in driving.starts()}
    assert (
        "minutes of running jobs, past and still to come, of account 'lab'"
        in driving.command("explain", waits).stdout
    )
