"""Slurm's own maintenance reservation (docs/tasks/maintenance.md): headway keeps it, and jobs run on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_daemon import Daemon, Diary

pytestmark = pytest.mark.slurm


@pytest.fixture
def site(slurm_factory: Callable[..., Any], tmp_path: Path) -> Iterator[Daemon]:
    """2 nodes of 4 CPUs."""
    daemon = Daemon(slurm_factory(nodes=2, cpus=4), tmp_path, plugins=["easy", "first-fit"])
    yield daemon
    daemon.clean_up()


def test_no_job_runs_into_slurms_maintenance_and_waiting_jobs_are_told_why(site: Daemon) -> None:
    diary = Diary(site.cluster)
    submit = site.cluster.submit
    site.start()
    # A job runs on the first node when the maintenance is announced.
    first = submit(seconds=600, processors=4, job_name="first", minutes=60)
    site.until(lambda: site.cluster.state(first) == "RUNNING", what="it runs")
    site.cluster.scontrol(
        "create", "reservation", "ReservationName=patch", "StartTime=now+1200", "Duration=60",
        "Flags=MAINT,IGNORE_JOBS", "Users=root", "Nodes=ALL",
    )  # fmt: skip
    long = submit(script=diary.script(0.1), processors=4, job_name="long", minutes=30)
    short = submit(script=diary.script(0.1), processors=4, job_name="short", minutes=5)
    # The job that ends before it is started, past the job that would not.
    site.until(lambda: diary.begun()[short] == 1, what="the short job runs")
    site.until(lambda: diary.ended()[short] == 1, what="it ends")

    def said() -> str:
        return str(site.command("explain", long).stdout)

    site.until(lambda: "4 of 8 processors are free" in said(), what="node2 is free")
    assert "nodes are reserved (MAINT" in said()
    assert "it would fit now with a limit of at most" in said()
    assert diary.begun()[long] == 0
    assert site.cluster.state(first) == "RUNNING"
    site.cluster.scontrol("delete", "ReservationName=patch")
    site.until(lambda: diary.begun()[long] == 1, what="the long job runs")
