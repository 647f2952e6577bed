"""What Slurm's and LSF's own accounting says of jobs that ran there, and the models fitted to it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from batch_servers import BatchServer
from live_daemon import HEADWAY
from slurm_cluster import SlurmCluster
from slurm_releases import Release

from headway.workload.accounting import history_of, parse_accounting

COLUMNS = "JobIDRaw,JobName,User,Submit,Start,End,ElapsedRaw,TimelimitRaw,NCPUS,State,Partition"
PARTITIONS = [
    "PartitionName=batch Nodes=ALL Default=YES State=UP MaxTime=INFINITE",
    "PartitionName=short Nodes=ALL State=UP MaxTime=60",
]


def fitted(path: Path) -> dict[str, dict[int, float]]:
    """Queue -> its limits (seconds) with their shares (per cent), as they are fitted to a file."""
    model = path.with_suffix(".yaml")
    subprocess.run([HEADWAY, "estimates", "fit", path, "-o", model, "--by-queue"], check=True, timeout=120)
    queues = yaml.safe_load(model.read_text())["queues"]
    return {name: {time: round(share) for time, share in own["pairs"]} for name, own in queues.items()}


@pytest.mark.slurm
def test_each_partition_of_a_slurm_has_its_limits(
    slurm_factory: Callable[..., SlurmCluster], slurm: Release, tmp_path: Path
) -> None:
    slurm.require_accounting()
    begun = time.time()
    cluster = slurm_factory("--accounting", "--line", PARTITIONS[0], "--line", PARTITIONS[1])
    for minutes, partition in [(10, "batch"), (30, "batch"), (30, "batch"), (5, "short"), (5, "short")]:
        words = ("-p", partition, "-t", str(minutes), "-J", f"{minutes} minutes", "-D", "/tmp")
        cluster.run("sbatch", *words, "-o", "/dev/null", "--wrap", "sleep 1")

    def told() -> str:
        return cluster.run("sacct", "-a", "-X", "-P", "-o", COLUMNS)

    cluster.until(lambda: told().count("|COMPLETED|") == 5, what="the accounting knows all ends")
    path = tmp_path / "sacct.txt"
    path.write_text(told())
    assert fitted(path) == {"batch": {1800: 67, 600: 33}, "short": {300: 100}}
    assert_a_history_is_of_the_clock_of_the_world(cluster, path, begun)


def assert_a_history_is_of_the_clock_of_the_world(cluster: SlurmCluster, path: Path, begun: float) -> None:
    """Whatever the site's zone."""
    there = ("env", "TZ=Asia/Tokyo", "SLURM_TIME_FORMAT=%s", "sacct", "-a", "-X", "-P", "-o", COLUMNS)
    path.write_text(cluster.run(*there))
    found = history_of(path, None)
    assert len(found) == 5
    assert all(begun - 1 <= job.start <= job.end <= time.time() for job in found if job.start is not None)


@pytest.mark.lsf
def test_lsf_tells_of_its_jobs(lsf_server: BatchServer, tmp_path: Path) -> None:
    logs = lsf_server.root / "work" / "logdir"
    names = {f"accounted {at}": minutes for at, minutes in enumerate([10, 30, 30])}
    for name, minutes in names.items():
        words = ("-q", "normal", "-W", str(minutes), "-J", name, "-P", "scopred:app=ft", "-o", "/dev/null")
        lsf_server.run("bsub", *words, "sleep", "1", user="alice")

    def ended() -> bool:
        acct = logs / "lsb.acct"
        return acct.exists() and all(name in acct.read_text() for name in names)

    lsf_server.until(ended, "they ended")
    lines = [line for log in ("lsb.events", "lsb.acct") for line in (logs / log).read_text().splitlines()]
    mine = [line for line in lines if any(f'"{name}"' in line for name in names)]
    found = {job.name: job for job in parse_accounting("\n".join(mine), "lsf")}
    assert {name: job.limit for name, job in found.items()} == {n: 60 * m for n, m in names.items()}
    assert {(job.user, job.pool, job.comment, job.completed) for job in found.values()} == {
        ("alice", "normal", "scopred:app=ft", True)
    }
    assert all(1 <= job.seconds < 60 for job in found.values())
    path = tmp_path / "lsf.txt"
    path.write_text("\n".join(mine))
    assert fitted(path) == {"normal": {1800: 67, 600: 33}}
