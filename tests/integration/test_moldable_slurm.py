"""A batch of moldable jobs on a real Slurm, planned and run by A1: sizes and limits are changed while the
jobs wait, and each runs once, on as many processors as planned."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from live_daemon import Daemon, Diary

from headway import events as ev

pytestmark = pytest.mark.slurm

#: Processes and minutes.
BATCH = ((4, 3), (2, 5), (3, 2), (1, 4))


def test_a_batch_is_planned_and_run_by_a1(slurm_factory: Callable[..., Any], tmp_path: Path) -> None:
    cluster = slurm_factory(nodes=1, cpus=4)
    diary = Diary(cluster)
    jobs = [
        cluster.submit(size, minutes=minutes, script=diary.script(1), comment="headway:moldable")
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
        limits = [
            event.job.request.walltime for event in daemon.events(ev.JobChanged) if event.job.id == jobs[0]
        ]
        assert 360 in limits
        daemon.assert_replays()
    finally:
        daemon.clean_up()
