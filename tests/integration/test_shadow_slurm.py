"""The shadow report of a watched Slurm, and whether driving then measures what it foretold."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import forked
import numpy as np
import pytest
from live_daemon import Daemon, Diary

from headway.events import JobEnded, JobStarted, JobSubmitted
from headway.experiment.steady import LEAST_WARM_UP

pytestmark = pytest.mark.slurm

CPUS = 4
#: For real hangs only.
PATIENCE = 2400.0


@pytest.fixture
def daemon(slurm_cluster: Any, tmp_path: Path) -> Iterator[Daemon]:
    made = Daemon(slurm_cluster, tmp_path, mode="monitor")
    yield made
    made.clean_up()


@dataclass(frozen=True)
class Asked:
    """A job of a stream: how many seconds after the stream's beginning it is submitted, and what it wants."""

    after: float
    processors: int
    seconds: float


def stream(count: int, gap: float, seconds: tuple[float, float], seed: int) -> list[Asked]:
    """Jobs of one to eight processors, ``gap`` seconds apart on average."""
    draw, at, found = random.Random(seed), 0.0, []
    for _ in range(count):
        found.append(Asked(at, draw.choice([1, 2, 4, 4, 8]), draw.uniform(*seconds)))
        at += draw.expovariate(1 / gap)
    return found


def live(daemon: Daemon, diary: Diary, jobs: list[Asked], *, hold: bool) -> list[str]:
    """Submit them at their times and wait until all are over and told of; their ids."""
    began, ids = time.monotonic(), []
    for job in jobs:
        time.sleep(max(0.0, began + job.after - time.monotonic()))
        nodes = max(1, job.processors // CPUS)
        more = {"nodes": nodes, "ntasks_per_node": job.processors // nodes}
        script = diary.script(job.seconds)
        ids.append(daemon.cluster.submit(job.processors, minutes=1, hold=hold, script=script, **more))
    there = set(ids)
    daemon.until(lambda: there <= diary.executions().keys(), PATIENCE, "the jobs are done")
    daemon.until(
        lambda: there <= {e.job_id for e in daemon.events(JobEnded)}, PATIENCE, "their ends are told"
    )
    return ids


def report(daemon: Daemon, *words: str) -> dict[str, Any]:
    line = ["shadow", "report", "-c", str(daemon.config_path), "--json", *words]
    done = forked.headway(line, environment=dict(os.environ))
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def figures(daemon: Daemon, ids: list[str]) -> tuple[float, float]:
    """Mean wait and mean bounded slowdown of the jobs behind the warm-up, as the batch system states them."""
    submit = {e.job.id: e.job.submit_time for e in daemon.events(JobSubmitted)}
    start = {e.job_id: e.time for e in daemon.events(JobStarted)}
    end = {e.job_id: e.time for e in daemon.events(JobEnded)}
    kept = sorted(ids, key=lambda job: (submit[job], int(job)))[int(np.ceil(LEAST_WARM_UP * len(ids))) :]
    wait = np.array([start[job] - submit[job] for job in kept])
    runtime = np.array([end[job] - start[job] for job in kept])
    return float(wait.mean()), float(np.maximum(1, (wait + runtime) / np.maximum(runtime, 10)).mean())


def test_a_watched_stream_is_reported_while_the_daemon_watches(daemon: Daemon, tmp_path: Path) -> None:
    diary = Diary(daemon.cluster)
    daemon.start()
    ids = live(daemon, diary, stream(24, 0.3, (1, 3), seed=4), hold=False)
    page = tmp_path / "shadow.html"
    found = report(daemon, "--draws", "2", "--out", str(page))
    assert daemon.stop() == 0
    # Those that came first are warm-up; a job may have come while the daemon was starting.
    assert found["jobs"] + sum(one["jobs"] for one in found["left_out"]) == 24
    assert found["jobs"] >= 20 and found["delay"]["starts"] == 0 and found["gaps"] == []
    assert found["wait"]["system"]["low"] is None
    text = page.read_text()
    assert "too few jobs for intervals" in text and ids[0] not in found["remarks"]
    wait, _ = figures(daemon, ids)
    assert found["wait"]["system"]["mean"] == pytest.approx(wait, abs=0.5)


@pytest.mark.campaign
@pytest.mark.installed_slurm
@pytest.mark.parametrize("seed", [11, 12])
def test_driving_measures_what_the_report_foretold(daemon: Daemon, tmp_path: Path, seed: int) -> None:
    """The same stream under Slurm's own scheduler, watched, and then driven."""
    diary = Diary(daemon.cluster)
    daemon.configure(mode="drive")
    daemon.start()
    live(daemon, diary, stream(40, 2.0, (4, 20), seed=seed + 100), hold=True)
    assert daemon.stop(seconds=PATIENCE) == 0
    jobs = stream(150, 3.2, (4, 20), seed)
    daemon.configure(mode="monitor")
    daemon.start()
    watched = live(daemon, diary, jobs, hold=False)
    assert daemon.stop(seconds=PATIENCE) == 0
    found = report(daemon, "--draws", "10", "--out", str(tmp_path / "shadow.html"))
    daemon.configure(mode="drive", journal=str(tmp_path / "driven.sqlite"))
    daemon.start()
    driven = live(daemon, diary, jobs, hold=True)
    wait, slowdown = figures(daemon, driven)
    assert daemon.stop(seconds=PATIENCE) == 0
    print(json.dumps({"seed": seed, "jobs": found["jobs"], "delay": found["delay"],
                      "wait": found["wait"], "slowdown": found["slowdown"],
                      "driven": {"wait": wait, "slowdown": slowdown}}))  # fmt: skip
    assert len(watched) == len(driven) and found["jobs"] == 142
    for name, measured in (("wait", wait), ("slowdown", slowdown)):
        foretold, change = found[name]["headway"], found[name]["difference"]
        assert foretold["low"] <= measured <= foretold["high"], name
        # Of the very same jobs, so this says more.
        assert change["low"] <= measured - found[name]["system"]["mean"] <= change["high"], name
