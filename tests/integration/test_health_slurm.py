"""What health, metrics, log and watchdog say of a real Slurm: well, without slurmctld, and of a daemon that
was stopped. Also: a job is followed from its submission to the command that started it."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_daemon import Daemon
from notified import Manager
from prometheus_client.parser import text_string_to_metric_families as read_text

pytestmark = [pytest.mark.slurm, pytest.mark.long]


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> Iterator[Manager]:
    with Manager() as listening:
        monkeypatch.setenv("NOTIFY_SOCKET", listening.address)
        monkeypatch.setenv("WATCHDOG_USEC", "3000000")
        yield listening


@pytest.fixture
def daemon(slurm_factory: Callable[..., Any], tmp_path: Path, manager: Manager) -> Iterator[Daemon]:
    cluster = slurm_factory(nodes=2, cpus=2)
    options = {"heartbeat": str(tmp_path / "heartbeat"), "patience": 60}
    made = Daemon(cluster, tmp_path, options=options, log={"format": "json", "level": "debug"})
    yield made
    made.clean_up()


def health(daemon: Daemon) -> tuple[int, str]:
    """Its exit code, and all that it says."""
    done = daemon.command("health")
    return done.returncode, done.stdout + done.stderr


def metrics(daemon: Daemon) -> str:
    done = daemon.command("metrics")
    assert done.returncode == 0, done.stderr
    return done.stdout


def values(text: str) -> dict[str, float]:
    """Metrics without labels, and those with labels added up."""
    found: dict[str, float] = {}
    for family in read_text(text):
        for sample in family.samples:
            found[sample.name] = found.get(sample.name, 0.0) + sample.value
    return found


def test_a_night(daemon: Daemon, manager: Manager) -> None:
    cluster = daemon.cluster
    daemon.start()
    assert manager.message()["READY"] == "1"
    job = cluster.submit(1, minutes=5, script="sleep 300")
    daemon.until(lambda: cluster.state(job) == "RUNNING", what="the job runs")
    daemon.until(lambda: values(metrics(daemon)).get("headway_wait_seconds_count") == 1, what="it is counted")
    daemon.until(lambda: health(daemon)[0] == 0, what="all is well")
    code, said = health(daemon)
    assert (code, said.splitlines()[0]) == (0, "WELL: 8 checks"), said
    text = metrics(daemon)
    if shutil.which("promtool") is not None:
        ran = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True)
        assert (ran.returncode, ran.stdout + ran.stderr) == (0, "")
    assert 'headway_commands_total{cluster="slurm",command="scontrol",outcome="done"}' in text
    followed(daemon, job)

    # slurmctld goes.
    cluster.kill("slurmctld")
    daemon.until(lambda: health(daemon)[0] == 1, what="it is seen")
    code, said = health(daemon)
    assert "ILL clusters answer" in said
    assert "slurm has not since" in said
    assert "headway_outage_since_timestamp_seconds" in values(metrics(daemon))
    while "slurm has not answered since" not in manager.until("WATCHDOG")[-1]["STATUS"]:
        pass
    cluster.up("slurmctld")
    daemon.until(lambda: health(daemon)[0] == 0, what="all is well again")
    assert values(metrics(daemon))["headway_outages_total"] == 1

    # The process is stopped.
    daemon.send(signal.SIGSTOP)
    code, said = health(daemon)
    assert code == 2
    assert said.startswith("UNKNOWN: the daemon at")
    assert "is its process stopped" in said
    assert daemon.command("metrics").returncode == 1
    while not manager.is_silent():
        pass
    daemon.send(signal.SIGCONT)
    manager.until("WATCHDOG")
    daemon.until(lambda: health(daemon)[0] == 0, what="it goes on")
    assert daemon.stop() == 0
    manager.until("STOPPING")


def followed(daemon: Daemon, job: str) -> None:
    """From the event to the command, by the ids of the log."""
    (decided,) = [line for line in daemon.said("decided") if line["job"] == job]
    run, cycle, place = decided["id"].split("-")
    (happened,) = [
        line for line in daemon.said("happened") if line["job"] == job and line["kind"] == "JobSubmitted"
    ]
    assert happened["cycle"].startswith(f"{run}-")
    commands = [line for line in daemon.said("command") if decided["id"] in (line["id"] or [])]
    assert [line["command"].split()[:2] for line in commands] == [
        ["scontrol", "update"], ["scontrol", "release"],
    ]  # fmt: skip
    assert {(tuple(line["job"]), line["cycle"]) for line in commands} == {((job,), f"{run}-{cycle}")}
    (recorded,) = [one for one in daemon.cycles() if str(one.seq) == cycle]
    assert json.dumps(recorded.decisions[int(place)].job_id) == json.dumps(job)
