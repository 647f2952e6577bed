"""A campaign whose Dask workers are jobs of a real Slurm, one of them killed in the middle."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from slurm_cluster import SlurmCluster
from waiting import until

# The jobs are Dask's workers, and the system that 24.11 is in has no Python with its libraries.
pytestmark = [pytest.mark.slurm, pytest.mark.long, pytest.mark.campaign, pytest.mark.installed_slurm]

CAMPAIGN = """
processors: 64
policies: [fcfs, easy]
workloads: [{label: month, model: month, options: {days: 2}, loads: [0.8]}]
seeds: 12
"""
DASK = [sys.executable, "-m", "distributed.cli.dask_worker"]


def test_workers_that_are_jobs_of_slurm_one_of_them_killed(
    slurm_cluster: SlurmCluster, tmp_path: Path
) -> None:
    definition, told = tmp_path / "campaign.yaml", tmp_path / "scheduler.json"
    definition.write_text(CAMPAIGN)
    headway = [sys.executable, "-c", "from headway.cli import main; main()", "compare", str(definition)]
    with open(tmp_path / "scheduler.log", "w") as log:
        scheduler = subprocess.Popen(
            [
                sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0",
                "--no-dashboard", "--scheduler-file", str(told),
            ],
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        until(told.exists, "the scheduler says where it is", 120)
        address = json.loads(told.read_text())["address"]
        worker = [*DASK, address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        script = " ".join(worker)
        jobs = [
            slurm_cluster.submit(1, hold=False, script=script, minutes=30, exclusive=True) for _ in range(2)
        ]
        out = tmp_path / "out"
        with open(tmp_path / "compare.log", "w") as log:
            compare = subprocess.Popen(
                [*headway, "--out", str(out), "--scheduler", address, "--workers", "2"],
                stdout=log,
                stderr=log,
            )
        runs = out / "runs.jsonl"

        def kept() -> int:
            assert compare.poll() is None or compare.returncode == 0, (tmp_path / "compare.log").read_text()
            return len(runs.read_text().splitlines()) - 1 if runs.exists() else 0

        until(lambda: kept() > 0, "the first workload has run", 300)
        slurm_cluster.run("scancel", "--signal=KILL", "--full", jobs[0])
        until(lambda: slurm_cluster.state(jobs[0]) not in ("RUNNING", "COMPLETING"), "the job is gone", 120)
        assert compare.wait(timeout=300) == 0, (tmp_path / "compare.log").read_text()
        assert slurm_cluster.state(jobs[1]) == "RUNNING"
    finally:
        scheduler.kill()
        scheduler.wait()
    subprocess.run([*headway, "--out", str(tmp_path / "here"), "--workers", "1"], check=True, timeout=300)
    for name in ("rows.csv", "batches.csv", "workloads.json", "method.json", "runs.jsonl"):
        assert (out / name).read_bytes() == (tmp_path / "here" / name).read_bytes(), name
