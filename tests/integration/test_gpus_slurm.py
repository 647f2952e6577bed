"""GPUs that a job asks for in all, or for each task, on a real Slurm that does not account for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from live_daemon import Daemon, Diary
from real_systems.slurm import FILTER
from slurm_cluster import SlurmCluster

from headway import events as ev

pytestmark = [pytest.mark.slurm, pytest.mark.both_slurms]


def test_gpus_of_jobs_and_tasks_are_planned_and_given(
    slurm_factory: Callable[..., SlurmCluster], tmp_path: Path
) -> None:
    """Three nodes of four CPUs with two GPUs each: four GPUs lie on two nodes, and nobody gets one twice."""
    cluster: Any = slurm_factory("--gpus", "2", *FILTER, nodes=3, cpus=4)
    daemon, diary = Daemon(cluster, tmp_path), Diary(cluster)
    submit = partial(cluster.submit, hold=False, user="nobody")
    try:
        many = submit(4, script=diary.script(2), gpus="4")
        words = ("sbatch", "--parsable", "-o", "/dev/null", "-D", "/", "-t5")
        asked = {"--gpus=3": 2, "--gpus=4": 2, "--gpus=6": 3, "--gpus=3 --nodes=1-2": 2}
        lonely = {
            cluster.run(*words, *ask.split(), "--wrap", diary.script(1), user="nobody"): on
            for ask, on in asked.items()
        }
        tasks = [submit(2, script=diary.script(2), gpus_per_task="1") for _ in range(3)]
        singles = [submit(1, script=diary.script(0.5), gpus="1") for _ in range(4)]
        never = submit(1, script=diary.script(0), gpus="7")
        daemon.start()
        wanted = {many, *lonely, *tasks, *singles}
        daemon.until(lambda: wanted <= set(diary.ended()), what="all have run but who asks for too many")
        placed = {start.job_id: dict(start.placement) for _, start in daemon.starts()}
        assert sorted(placed[many].values()) == [2, 2]
        for job, on in lonely.items():
            assert list(placed[job].values()) == [1] * on, "a processor a node"
        assert all(len(placed[job]) == 1 for job in tasks)
        assert diary.begun()[never] == 0
        assert "gpu" in daemon.command("explain", never).stdout
        assert daemon.events(ev.DecisionFailed) == []
        assert daemon.stop() == 0
        daemon.assert_replays()
    finally:
        daemon.clean_up()
