"""A job that waits at two real Slurms: one copy runs, whenever headway or a site is killed."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from live_daemon import Diary
from metajob_pair import Pair, slurm

from headway import events as ev

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

HERE = Path(__file__).parent
SITES = ("east", "west")
#: Each step of a race, and when the daemon is killed there.
STEPS = (
    "Start before", "Start after", "JobStarted seen", "Cancel before", "Cancel after", "JobEnded seen",
)  # fmt: skip
OVER = ("", "COMPLETED", "COMPLETING", "CANCELLED")


class Race(Pair):
    """A daemon for two clusters, and copies of a job that wait behind a job that fills each cluster."""

    def __init__(self, clusters: dict[str, Any], directory: Path) -> None:
        super().__init__(*(slurm(clusters[name]) for name in SITES), directory)
        self.clusters = clusters
        self.diaries = {name: Diary(cluster) for name, cluster in clusters.items()}
        self.program = [sys.executable, str(HERE / "killed_at_a_job.py")]
        self.kill_file = directory / "kill"
        self.blockers: dict[str, str] = {}

    def line_up(self, seconds: float = 2) -> tuple[str, dict[str, str]]:
        """A metajob whose copies wait; its id, and the copies by site."""
        self.blockers = {name: one.submit(4, 600, nodes=2) for name, one in self.clusters.items()}
        self.until(
            lambda: all(one.state(self.blockers[name]) == "RUNNING" for name, one in self.clusters.items()),
            what="the clusters are full",
        )
        copies = {
            name: one.submit(2, nodes=1, minutes=2, script=self.diaries[name].script(seconds))
            for name, one in self.clusters.items()
        }
        self.until(
            lambda: (
                {f"{name}:{job}" for name, job in copies.items()}
                <= {event.job.id for event in self.events(ev.JobSubmitted)}
            ),
            what="the copies are seen",
        )
        return self.everywhere(copies), copies

    def everywhere(self, copies: dict[str, str]) -> str:
        path = self.directory / "any.yaml"
        path.write_text(
            yaml.safe_dump({
                "usage": "single", "earliest": time.time(), "latest": time.time() + 7200, "total": 1,
                "duration": "2m", "machines": {name: {"min": 1, "max": 2} for name in copies},
            })
        )  # fmt: skip
        jobs = [word for name, job in copies.items() for word in ("--job", f"{name}={job}")]
        said = self.ask("submit", str(path), "--everywhere", *jobs)
        assert said.startswith("accepted: metajob m"), said
        return said.split()[2].rstrip(":")

    def free(self, *names: str) -> None:
        """Let a copy start at these sites."""
        for name in names:
            self.clusters[name].run("scancel", self.blockers[name])

    def phase(self, metajob: str, *phases: str) -> None:
        self.until(lambda: self.status(metajob)["phase"] in phases, 200, f"{metajob} is {phases}")

    def gone(self, copies: dict[str, str]) -> bool:
        return all(self.clusters[name].state(job) in OVER for name, job in copies.items())

    def ran(self, copies: dict[str, str], what: str) -> list[str]:
        """The sites at which a copy began, or ended, as the copies wrote down; each as often as it did."""
        counts = {
            name: Counter(job for kind, job, _ in self.diaries[name].lines() if kind == what)
            for name in copies
        }
        return [name for name, job in copies.items() for _ in range(counts[name][job])]


@pytest.fixture
def clusters(slurm_factory: Callable[..., Any]) -> dict[str, Any]:
    return {name: slurm_factory(nodes=2, cpus=2) for name in SITES}


@pytest.fixture
def daemon(clusters: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Race]:
    one = Race(clusters, tmp_path)
    monkeypatch.setenv("KILL_FILE", str(one.kill_file))
    one.aside = lambda: "\n".join(cluster.run("squeue", "-a", "-t", "all") for cluster in clusters.values())
    yield one
    one.clean_up()


def test_one_copy_runs_once_whenever_headway_is_killed(daemon: Race) -> None:
    daemon.start()
    for step in STEPS:
        metajob, copies = daemon.line_up()
        daemon.kill_file.write_text(f"{step}\n{' '.join(f'{name}:{job}' for name, job in copies.items())}\n")
        assert daemon.process is not None
        process = daemon.process
        daemon.free(*copies)
        assert process.wait(200) == -9, step
        daemon.process = None
        daemon.start()
        daemon.phase(metajob, "over")
        assert daemon.ran(copies, "end") == daemon.ran(copies, "begin"), step
        assert len(daemon.ran(copies, "end")) == 1, (step, daemon.status(metajob))
        daemon.until(lambda copies=copies: daemon.gone(copies), 60, f"no copy is left after {step}")
        assert len(daemon.status(metajob)["copies"]) == 2
    assert daemon.stop() == 0


def test_a_copy_at_a_site_that_is_down_is_removed_when_the_site_is_back(
    clusters: dict[str, Any], daemon: Race
) -> None:
    daemon.start()
    metajob, copies = daemon.line_up()
    west = clusters["west"]
    west.saved()
    west.kill("slurmctld")
    daemon.free("east")
    daemon.until(lambda: daemon.ran(copies, "end") == ["east"], 120, "the copy of east has run")
    daemon.phase(metajob, "started")
    # What is to go is known after a kill, too.
    daemon.kill()
    daemon.start()
    (there,) = [one for one in daemon.status(metajob)["copies"] if one["machine"] == "west"]
    assert there["state"] in ("away", "going") and daemon.status(metajob)["phase"] == "started"
    west.up("slurmctld")
    daemon.phase(metajob, "over")
    west.until(lambda: west.state(copies["west"]) == "CANCELLED", 60, "the copy of west is gone")
    daemon.free("west")
    assert daemon.ran(copies, "begin") == ["east"]
    assert daemon.stop() == 0


def test_of_two_copies_that_were_started_by_hand_the_lower_start_is_kept(
    clusters: dict[str, Any], daemon: Race
) -> None:
    daemon.start()
    metajob, copies = daemon.line_up(30)
    daemon.kill()
    daemon.free(*copies)
    for name in ("west", "east"):
        cluster = clusters[name]
        cluster.until(
            lambda cluster=cluster, name=name: cluster.state(daemon.blockers[name]) in OVER,
            60,
            "the cluster is free",
        )
        cluster.scontrol("release", copies[name])
        cluster.until(lambda name=name: name in daemon.ran(copies, "begin"), 60, f"{name} runs")
        # Slurm writes start times in whole seconds.
        time.sleep(1.5)
    daemon.start()
    daemon.phase(metajob, "over")
    assert daemon.ran(copies, "end") == ["west"]
    assert clusters["east"].state(copies["east"]) == "CANCELLED"
    assert daemon.stop() == 0


def test_a_cancelled_metajob_leaves_no_copy(clusters: dict[str, Any], daemon: Race) -> None:
    daemon.start()
    metajob, copies = daemon.line_up()
    said = daemon.ask("status", metajob)
    assert "east: copy east:" in said and "west: copy west:" in said and said.count(", waits") == 2
    daemon.ask("cancel", metajob)
    daemon.phase(metajob, "cancelled")
    assert all(cluster.state(copies[name]) == "CANCELLED" for name, cluster in clusters.items())
    assert daemon.ran(copies, "begin") == []
    daemon.free(*copies)
    # A copy that its user cancels leaves the job to the others.
    metajob, copies = daemon.line_up()
    clusters["east"].run("scancel", copies["east"])
    daemon.free("east", "west")
    daemon.phase(metajob, "over")
    assert daemon.ran(copies, "end") == ["west"]
    assert daemon.stop() == 0
    daemon.assert_replays()
