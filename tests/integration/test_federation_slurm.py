"""One daemon for two real Slurms: each goes on when the other is gone, and comes back by itself."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_daemon import Daemon, Diary

from headway import events as ev

pytestmark = pytest.mark.slurm


class Federated(Daemon):
    """A daemon for several clusters."""

    def __init__(self, clusters: dict[str, Any], directory: Path, **config: Any) -> None:
        first = next(iter(clusters.values()))
        super().__init__(first, directory, **config)
        del self.config["cluster"]
        options = {"partitions": ["batch"], "poll_interval": 0.4, "command_timeout": 5.0}
        self.configure(
            clusters={
                name: {"adapter": "slurm", "options": {**options, **cluster.options}}
                for name, cluster in clusters.items()
            }
        )

    def status(self) -> dict[str, Any]:
        done = self.command("status", "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def outages(self) -> list[str]:
        return [outage["cluster"] for outage in self.status()["outages"]]


@pytest.fixture
def clusters(slurm_factory: Callable[..., Any]) -> dict[str, Any]:
    return {"siteA": slurm_factory(nodes=2, cpus=2), "siteB": slurm_factory(nodes=1, cpus=4)}


@pytest.fixture
def daemon(clusters: dict[str, Any], tmp_path: Path) -> Iterator[Federated]:
    one = Federated(clusters, tmp_path)
    yield one
    one.clean_up()


def submit(cluster: Any, diary: Diary, count: int, seconds: float = 1, processors: int = 1) -> list[str]:
    script = diary.script(seconds)
    # A node may tell a minute late what ended while slurmctld was away.
    return [cluster.submit(processors, nodes=1, script=script, minutes=10) for _ in range(count)]


def test_both_are_driven_watched_and_copied(clusters: dict[str, Any], daemon: Federated) -> None:
    diaries = {name: Diary(cluster) for name, cluster in clusters.items()}
    jobs = {name: submit(cluster, diaries[name], 5, 2, 2) for name, cluster in clusters.items()}

    checked = daemon.command("check")
    assert re.search(r"ok\s+siteA: slurmctld", checked.stdout), checked.stdout + checked.stderr
    assert re.search(r"ok\s+siteB: partition batch", checked.stdout)
    copied = daemon.command("dry-run", "--from-cluster")
    assert copied.returncode == 0, copied.stderr
    assert "siteA:" + jobs["siteA"][0] in copied.stdout and "siteB:" + jobs["siteB"][0] in copied.stdout
    explained = daemon.command("explain", f"siteA:{jobs['siteA'][4]}")
    assert explained.returncode == 0, explained.stderr

    daemon.start("--monitor")
    daemon.until(lambda: len(daemon.said("would do")) >= 4, what="starts of both are wished for")
    assert {entry["job"].split(":")[0] for entry in daemon.said("would do")} == {"siteA", "siteB"}
    assert daemon.stop() == 0
    assert not any(diary.begun() for diary in diaries.values())

    daemon.start()
    for name in clusters:
        daemon.until(lambda name=name: sum(diaries[name].ended().values()) == 5, 60, f"jobs of {name} end")
        assert set(diaries[name].begun()) == set(jobs[name]) and set(diaries[name].begun().values()) == {1}
    report = daemon.status()
    assert report["cluster"] == "siteA+siteB" and not report["outages"]
    assert {pool["name"] for pool in report["pools"]} == {"siteA:batch", "siteB:batch"}
    shown = daemon.command("status").stdout
    assert "siteA:batch" in shown and "siteB:batch" in shown
    assert daemon.stop() == 0
    starts = {start.job_id: start.placement for _, start in daemon.starts()}
    assert {job for job in starts if job.startswith("siteA:")} >= {f"siteA:{job}" for job in jobs["siteA"]}
    for job, placement in starts.items():
        assert {node.split(":")[0] for node, _ in placement} == {job.split(":")[0]}
    daemon.assert_replays()


def test_when_one_is_gone_the_other_goes_on_and_it_comes_back(
    clusters: dict[str, Any], daemon: Federated
) -> None:
    a, b = clusters.values()
    diary_a, diary_b = Diary(a), Diary(b)
    waiting = submit(b, diary_b, 2)
    b.saved()
    b.kill("slurmctld")

    # Gone at the start: it joins when it answers.
    first = submit(a, diary_a, 3)
    daemon.start()
    assert [
        pool["cluster"]
        for pool in daemon.said("a cluster does not answer; the other clusters go on without it")
    ] == ["siteB"]
    daemon.until(lambda: set(diary_a.ended()) == set(first), 40, "siteA's jobs run")
    assert daemon.outages() == ["siteB"]
    assert "siteB has not answered since" in daemon.command("status").stdout
    b.up("slurmctld")
    daemon.until(lambda: daemon.said("a cluster joins"), 60, "siteB joins")
    daemon.until(lambda: set(diary_b.ended()) == set(waiting), 40, "siteB's jobs run")
    assert daemon.outages() == []

    # Gone later: nothing of it is news, and nothing of the other waits for it.
    long = submit(a, diary_a, 1, 8)
    daemon.until(lambda: long[0] in diary_a.begun(), 20, "a long job runs on siteA")
    a.saved()
    a.kill("slurmctld")
    daemon.until(lambda: daemon.outages() == ["siteA"], 30, "the outage is seen")
    more = submit(b, diary_b, 4)
    daemon.until(lambda: set(diary_b.ended()) == {*waiting, *more}, 40, "siteB's jobs run on")
    (down,) = daemon.said("slurm does not answer; waiting for it")
    assert down["cluster"] == "siteA"
    assert daemon.outages() == ["siteA"]
    a.up("slurmctld")
    last = submit(a, diary_a, 2)
    daemon.until(lambda: set(diary_a.ended()) == {*first, *long, *last}, 60, "siteA's jobs run again")
    assert daemon.outages() == []
    everything = {f"siteA:{job}" for job in (*first, *long, *last)}
    everything |= {f"siteB:{job}" for job in (*waiting, *more)}
    # A node tells slurmctld some time later what ended while it was away, if need be when it is asked
    # whether it is there (every third of SlurmdTimeout).
    a.until(lambda: not a.run("squeue", "-h"), 600, "slurmctld knows of siteA's ends")
    daemon.aside = lambda: f"{daemon.events(ev.JobEnded)}\n{a.run('squeue')}\n{b.run('squeue')}"
    daemon.until(
        lambda: {e.job_id for e in daemon.events(ev.JobEnded)} == everything, 60, "all ends are told"
    )
    assert {event.outcome for event in daemon.events(ev.JobEnded)} == {"completed"}
    assert daemon.stop() == 0
    for diary in (diary_a, diary_b):
        assert set(diary.begun().values()) == {1}
    assert [event.pool.name for event in daemon.events(ev.PoolChanged)] == ["siteB:batch"]
    daemon.assert_replays()
