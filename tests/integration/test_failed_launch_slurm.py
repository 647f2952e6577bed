"""A job whose launch failed waits for an administrator, who gives it back without letting Slurm start it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from live_daemon import Daemon
from slurm_cluster import SlurmCluster

pytestmark = [pytest.mark.slurm, pytest.mark.long]

FAILED = "launch failed requeued held"


def test_a_hold_gives_a_job_back_whose_launch_failed(
    slurm_factory: Callable[..., SlurmCluster], tmp_path: Path
) -> None:
    prolog, broken = tmp_path / "prolog", tmp_path / "broken"
    prolog.write_text(f"#!/bin/sh\n[ ! -e {broken} ]\n")
    prolog.chmod(0o755)
    broken.touch()
    cluster = slurm_factory("--set", f"Prolog={prolog}", nodes=1)
    daemon = Daemon(cluster, tmp_path)
    job = cluster.submit(1, 300, user="nobody")
    daemon.start()
    try:
        daemon.until(lambda: cluster.jobs()[job]["state_description"] == FAILED, what="the launch fails")
        # Slurm may forget why it holds the job as soon as the node is back.
        daemon.until(lambda: FAILED in daemon.command("explain", job).stdout, what="headway says so")
        broken.unlink()
        cluster.scontrol("update", "NodeName=node1", "State=RESUME")
        # Another that comes now is started, so headway has looked at this one with room for it.
        other = cluster.submit(1, 300, user="nobody")
        daemon.until(lambda: cluster.state(other) == "RUNNING", what="another job starts")
        assert len([start for _, start in daemon.starts() if start.job_id == job]) == 1
        cluster.scontrol("hold", job)
        # Slurm lets what was requeued wait for two minutes.
        cluster.scontrol("update", f"JobId={job}", "StartTime=now")
        daemon.until(lambda: cluster.state(job) == "RUNNING", what="the job that was given back starts")
        assert len([start for _, start in daemon.starts() if start.job_id == job]) == 2
        assert daemon.stop() == 0
    finally:
        daemon.clean_up()
    assert not daemon.said("a job started that headway did not start")
