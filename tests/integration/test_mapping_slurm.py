"""Min-Min and Sufferage drive a real Slurm: jobs wait for the fast node where they end earlier there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from live_daemon import Daemon, Diary
from slurm_cluster import SlurmCluster

pytestmark = pytest.mark.slurm


@pytest.mark.parametrize(("rule", "first"), [
    ("minmin", "short"), pytest.param("sufferage", "long", marks=pytest.mark.slow),
])  # fmt: skip
def test_jobs_go_where_they_end_first(
    slurm_factory: Callable[..., SlurmCluster], tmp_path: Path, rule: str, first: str
) -> None:
    cluster: Any = slurm_factory(nodes=2, cpus=2)
    slow, fast = sorted(cluster.run("sinfo", "-h", "-N", "-o", "%N").split())
    daemon = Daemon(cluster, tmp_path, plugins=[{rule: {"speeds": {fast: 4.0}}}, "first-fit"])
    diary = Diary(cluster)
    jobs = {
        name: cluster.submit(2, script=diary.script(0.5), minutes=minutes)
        for name, minutes in (("long", 12), ("short", 10))
    }
    try:
        daemon.start()
        daemon.until(lambda: len(diary.ended()) == 2, what="both ran")
        starts = {start.job_id: start.placement[0][0] for _, start in daemon.starts()}
        # Ten minutes there are two and a half here, and five and a half after the other.
        assert starts == dict.fromkeys(jobs.values(), fast), slow
        order = [start.job_id for _, start in daemon.starts()]
        assert order[0] == jobs[first]
        assert daemon.stop() == 0
        daemon.assert_replays()
    finally:
        daemon.clean_up()
