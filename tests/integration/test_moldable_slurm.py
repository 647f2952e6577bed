"""A batch of moldable jobs on a real Slurm, planned and run by A1: sizes and limits are changed while the
jobs wait, and each runs once, on as many processors as planned."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_daemon import Daemon, Diary
from real_systems.slurm import FILTER

from headway import events as ev

pytestmark = pytest.mark.slurm

PROLOG = Path(__file__).parents[2] / "etc" / "slurm" / "task_prolog.sh"

#: Processes and minutes.
BATCH = ((4, 3), (2, 5), (3, 2), (1, 4))


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that every user may read."""
    with tempfile.TemporaryDirectory(prefix="hw-", dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_a_batch_is_planned_and_run_by_a1(
    slurm_factory: Callable[..., Any], tmp_path: Path, open_directory: Path
) -> None:
    prolog = Path(shutil.copy(PROLOG, open_directory))
    cluster = slurm_factory("--set", f"TaskProlog={prolog}", *FILTER, nodes=1, cpus=4)
    diary, tasks = Diary(cluster), cluster.root / "tasks"
    tasks.mkdir()
    tasks.chmod(0o777)
    srun = f"srun -o {tasks}/$SLURM_JOB_ID sh -c 'echo $SLURM_PROCID'; "
    wanted = {"comment": "headway:moldable", "hold": False, "user": "nobody"}
    jobs = [
        cluster.submit(size, minutes=minutes, script=srun + diary.script(1), **wanted)
        for size, minutes in BATCH
    ]
    daemon = Daemon(cluster, tmp_path, plugins=[{"moldable": {"algorithm": "A1"}}, "first-fit"])
    try:
        daemon.start()
        daemon.until(lambda: set(jobs) <= set(diary.ended()), what="all jobs end")
        assert daemon.stop() == 0
        assert set(diary.begun().values()) == {1}
        assert not daemon.said("plugin failed") and not daemon.events(ev.DecisionFailed)
        sizes = {
            event.job_id: sum(count for _, count in event.placement)
            for event in daemon.events(ev.JobStarted)
        }  # fmt: skip
        # Of four processors nobody gets more than two; those behind start once these have ended.
        assert [sizes[job] for job in jobs[:2]] == [2, 2]
        assert sizes[jobs[3]] == 1
        ran = {job: len((tasks / job).read_text().split()) for job in jobs}
        assert ran == sizes, "a plain srun has as many tasks as the job has processors"
        limits = [
            event.job.request.walltime for event in daemon.events(ev.JobChanged) if event.job.id == jobs[0]
        ]
        assert 360 in limits
        daemon.assert_replays()
    finally:
        daemon.clean_up()
