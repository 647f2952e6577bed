"""``etc/slurm/task_prolog.sh``: what a moldable job's script is told of its tasks."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

PROLOG = Path(__file__).parents[2] / "etc" / "slurm" / "task_prolog.sh"


@pytest.mark.parametrize(
    ("environment", "tasks"),
    [
        ({"SLURM_NTASKS": "16", "SLURM_TASKS_PER_NODE": "2"}, 2),
        ({"SLURM_NTASKS": "16", "SLURM_TASKS_PER_NODE": "4(x2),1"}, 9),
        ({"SLURM_NTASKS": "16", "SLURM_TASKS_PER_NODE": "3,4(x3)"}, 15),
        # What it has is what it asked for, or more.
        ({"SLURM_NTASKS": "16", "SLURM_TASKS_PER_NODE": "4(x4)"}, 0),
        ({"SLURM_NTASKS": "4", "SLURM_TASKS_PER_NODE": "4(x2)"}, 0),
        # A step has its own numbers; a job may state none.
        ({"SLURM_NTASKS": "16", "SLURM_TASKS_PER_NODE": "2", "SLURM_STEP_ID": "0"}, 0),
        ({"SLURM_TASKS_PER_NODE": "2"}, 0),
    ],
)
def test_it_says_what_the_job_has(environment: dict[str, str], tasks: int) -> None:
    told = [f"export SLURM_NTASKS={tasks}", f"export SLURM_NPROCS={tasks}"] if tasks else []
    path = {"PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [str(PROLOG)], env={**path, **environment}, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == told
