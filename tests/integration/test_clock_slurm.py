"""The daemon on a real Slurm while its machine's clock is set back and forth."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live_daemon import Daemon, Diary

pytestmark = pytest.mark.slurm

#: The command with a wall clock that is wrong by as many seconds as a file says.
PROGRAM = """
import sys, time
right, path = time.time, sys.argv.pop(1)
def wrong():
    with open(path) as file:
        return right() + float(file.read())
time.time = wrong
from headway.cli import main
main()
"""
#: For real hangs only.
PATIENCE = 120.0


@pytest.fixture
def daemon(slurm_cluster: Any, tmp_path: Path) -> Iterator[Daemon]:
    made = Daemon(slurm_cluster, tmp_path)
    offset = tmp_path / "offset"
    offset.write_text("0")
    made.program = [sys.executable, "-c", PROGRAM, str(offset)]
    yield made
    made.clean_up()


def test_jobs_start_whichever_way_the_clock_is_set(daemon: Daemon, tmp_path: Path) -> None:
    cluster, diary = daemon.cluster, Diary(daemon.cluster)
    daemon.start()
    jobs: list[str] = []

    def run(seconds: float) -> None:
        jobs.append(cluster.submit(4, minutes=5, script=diary.script(seconds)))
        daemon.until(lambda: diary.begun()[jobs[-1]], PATIENCE, f"job {jobs[-1]} starts")

    def noticed(step: float) -> bool:
        said = daemon.said("the system's clock was set " + ("forward" if step > 0 else "back"))
        return any(abs(entry["seconds"] - abs(step)) < 1 for entry in said)

    offset = 0.0
    run(1)
    # Forward, back a little, back far beyond what a run can follow, and forward to the true time.
    for step in (1000.0, -45.0, -4000.0, 3045.0):
        offset += step
        # Written beside it and renamed: a reader finds the old or the new one.
        (tmp_path / "next").write_text(str(offset))
        (tmp_path / "next").rename(tmp_path / "offset")
        daemon.until(lambda step=step: noticed(step), PATIENCE, "the step is noticed")
        run(1)
    daemon.until(lambda: sum(diary.ended().values()) == len(jobs), PATIENCE, "the jobs end")
    daemon.until(lambda: len(daemon.said("started")) == 2, PATIENCE, "the far step began a new run")
    assert daemon.stop(seconds=PATIENCE) == 0
    assert [run.end_reason for run in daemon.runs()] == ["clock set back", "stopped"]
    assert diary.begun() == dict.fromkeys(jobs, 1)
    for run_ in daemon.runs():
        with daemon.journal() as journal:
            times = [cycle.now for cycle in journal.cycles(run_.id)]
        assert times == sorted(times)
    daemon.assert_replays()
