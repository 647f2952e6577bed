"""A metajob on two real Slurms: its jobs start at one moment, and a cancelled one leaves no reservation."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from live_daemon import HEADWAY, Daemon, Diary
from waiting import HANG

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

MACHINES = {
    "east": {"pool": "east:batch"},
    "west": {"pool": "west:batch"},
}


class Pair(Daemon):
    """A daemon for two clusters, with metajobs."""

    def __init__(self, clusters: dict[str, Any], directory: Path) -> None:
        first = next(iter(clusters.values()))
        metajobs = {"machines": MACHINES, "lead": 20.0, "answer_timeout": 20.0, "limits": {"max_nodes": 2}}
        super().__init__(first, directory, plugins=[{"metajobs": metajobs}, "easy", "first-fit"])
        del self.config["cluster"]
        self.directory = directory
        options = {"partitions": ["batch"], "poll_interval": 0.4}
        self.configure(
            clusters={
                name: {"adapter": "slurm", "options": {**options, **cluster.options}}
                for name, cluster in clusters.items()
            }
        )

    def ask(self, *words: str) -> str:
        """A metajob's command; what it printed."""
        done = subprocess.run(
            [str(HEADWAY), "metajob", *words, "-c", str(self.config_path)],
            capture_output=True, text=True, timeout=HANG,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    def submit(self, earliest: float, jobs: dict[str, str]) -> str:
        """A metajob of a node here and two nodes there, for three minutes; its id."""
        path = self.directory / "pair.yaml"
        machines = {"east": {"min": 1, "max": 1}, "west": {"min": 2, "max": 2}}
        path.write_text(
            yaml.safe_dump({
                "usage": "multiple", "earliest": earliest, "latest": earliest + 3600, "total": 3,
                "duration": "3m", "machines": machines,
            })
        )  # fmt: skip
        bound = [word for machine, job in jobs.items() for word in ("--job", f"{machine}={job}")]
        said = self.ask("submit", str(path), *bound)
        assert said.startswith("accepted: metajob m"), said
        return said.split()[2].rstrip(":")

    def status(self, metajob: str) -> dict[str, Any]:
        return json.loads(self.ask("status", metajob, "--json"))

    def reserved(self, metajob: str) -> None:
        """Wait until all of it is reserved and bound."""

        def done() -> bool:
            told = self.status(metajob)
            return told["phase"] == "reserved" and all(
                one["bound"] or not one["job"] for one in told["parts"]
            )

        self.until(done, 60, f"{metajob} is reserved")


@pytest.fixture
def clusters(slurm_factory: Callable[..., Any]) -> dict[str, Any]:
    return {name: slurm_factory(nodes=2, cpus=2) for name in MACHINES}


@pytest.fixture
def daemon(clusters: dict[str, Any], tmp_path: Path) -> Iterator[Pair]:
    one = Pair(clusters, tmp_path)
    yield one
    one.clean_up()


def reservations(clusters: dict[str, Any]) -> list[str]:
    said = [cluster.scontrol("-o", "show", "reservation") for cluster in clusters.values()]
    return [line for text in said for line in text.splitlines() if line.startswith("ReservationName=")]


def test_a_pair_starts_at_one_moment_and_a_cancelled_pair_leaves_nothing(
    clusters: dict[str, Any], daemon: Pair
) -> None:
    diaries = {name: Diary(cluster) for name, cluster in clusters.items()}
    daemon.aside = lambda: "\n".join(
        cluster.scontrol("show", "reservation") + cluster.scontrol("show", "job")
        for cluster in clusters.values()
    )
    daemon.start()
    jobs = {
        name: cluster.submit(
            2, nodes=1, minutes=2, script=diaries[name].script(5), hold=False, begin="now+15"
        )
        for name, cluster in clusters.items()
    }
    metajob = daemon.submit(time.time(), jobs)
    daemon.reserved(metajob)
    assert len(reservations(clusters)) == 2
    assert "is bound" in daemon.ask("status", metajob)

    daemon.until(lambda: all(diary.ended() for diary in diaries.values()), 150, "both have run")
    begun = {name: diaries[name].executions()[jobs[name]].begin for name in clusters}
    start = min(part["start"] for part in daemon.status(metajob)["parts"] or [{"start": 0}])
    assert abs(begun["east"] - begun["west"]) < 2.0, (begun, start)
    # What the jobs do not need any more is given back.
    daemon.until(lambda: not reservations(clusters), 60, "the reservations are given back")
    daemon.until(lambda: daemon.status(metajob)["phase"] == "over", 60, "it is over")

    later = {
        name: cluster.submit(
            2, nodes=1, minutes=2, script=diaries[name].script(1), hold=False, begin="now+30"
        )
        for name, cluster in clusters.items()
    }
    second = daemon.submit(time.time() + 7200, later)
    daemon.reserved(second)
    assert len(reservations(clusters)) == 2
    daemon.ask("cancel", second)
    daemon.until(lambda: not reservations(clusters), 60, "all is given back")
    daemon.until(lambda: all(len(diary.ended()) == 2 for diary in diaries.values()), 90, "the jobs run alone")
    assert daemon.stop() == 0
    daemon.assert_replays()
