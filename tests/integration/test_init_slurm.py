"""`headway init` asks a real Slurm and changes nothing; what it writes watches that Slurm."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from live_daemon import HEADWAY
from slurm_cluster import SlurmCluster

from headway.cli.as_json import schema_of
from headway.cli.init import command

pytestmark = [pytest.mark.slurm, pytest.mark.both_slurms]

MORE = (
    "PartitionName=batch Nodes=ALL Default=YES State=UP",
    "PartitionName=debug Nodes=node[1-2] MaxTime=60 State=UP",
    "PartitionName=a$(id) Nodes=node4 State=UP",
    'PartitionName=b"c Nodes=node4 State=UP',
)


def settings(cluster: SlurmCluster) -> list[str]:
    """The options of the command that reach this cluster."""
    return [word for key, value in cluster.options.items() for word in ("--set", f"{key}={value}")]


def test_a_slurm_is_asked_and_its_files_are_written(
    slurm_factory: Callable[..., SlurmCluster], tmp_path: Path
) -> None:
    lines = [word for line in MORE for word in ("--line", line)]
    cluster = slurm_factory(*lines, "--gpus", "2")
    before = cluster.scontrol("show", "config").splitlines()[1:]
    site = tmp_path / "site"
    done = cluster.call(str(HEADWAY), "init", "slurm", *settings(cluster), "--out", str(site), "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    pools = {pool["name"]: pool for pool in told["pools"]}
    assert pools["batch"]["nodes"] == 4 and pools["batch"]["resources"]["gpu"] == 8
    assert pools["debug"]["max_walltime"] == 3600 and pools["debug"]["shares_nodes_with"] != []
    assert [name for name, pool in pools.items() if pool["managed"]] == ["batch", "debug"]
    assert sum("is left out" in remark for remark in told["remarks"]) == 2
    assert schema_of(command) is not None
    assert cluster.scontrol("show", "config").splitlines()[1:] == before

    config = site / "headway.yaml"
    text = re.sub(r"(?m)^journal: .*", f"journal: {tmp_path / 'journal.db'}", config.read_text())
    config.write_text(re.sub(r"(?m)^  socket: .*\n", "", text))
    checked = cluster.call(str(HEADWAY), "check", "-c", str(config))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert re.search(r"^later +jobs enter held", checked.stdout, re.MULTILINE)


@pytest.mark.installed_slurm
def test_the_filter_is_taken_by_a_real_slurmctld(
    slurm_factory: Callable[..., SlurmCluster], tmp_path: Path
) -> None:
    """Jobs of the partitions that it names enter held; other jobs do not."""
    lines = [word for line in MORE[:2] for word in ("--line", line)]
    first = slurm_factory(*lines)
    site = tmp_path / "site"
    words = [*settings(first), "--partitions", "debug", "--out", str(site)]
    done = first.call(str(HEADWAY), "init", "slurm", *words)
    assert done.returncode == 0, done.stderr
    script = str(site / "job_submit.lua")
    cluster = slurm_factory(*lines, "--set", "JobSubmitPlugins=lua", "--lua", script)
    held = cluster.submit(hold=False, partition="debug")
    free = cluster.submit(hold=False, partition="batch")
    shown = {
        job: cluster.run("squeue", "-h", "-a", "-t", "all", "-j", job, "-o", "%r") for job in (held, free)
    }
    assert shown[held] == "JobHeldUser" and "Held" not in shown[free]
