"""The short path of docs/operators on a real Slurm: check, monitor, drive, give back."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_daemon import HEADWAY, Daemon

pytestmark = pytest.mark.slurm

ETC = Path(__file__).parents[2] / "etc" / "slurm"
#: The lines of slurm.conf.headway that are not comments.
LINES = [line for line in (ETC / "slurm.conf.headway").read_text().splitlines() if line and line[0] != "#"]


@pytest.fixture
def daemon(slurm_factory: Callable[..., Any], tmp_path: Path) -> Iterator[Daemon]:
    """A Slurm with its own scheduler and no filter, and a configuration that begins with monitor."""
    cluster = slurm_factory("--set", "SchedulerParameters=")
    made = Daemon(cluster, tmp_path, mode="monitor", options={"heartbeat": heartbeat(cluster)})
    yield made
    made.clean_up()


def later(daemon: Daemon) -> list[str]:
    """The lines of `headway check` that only driving needs."""
    return [line for line in daemon.command("check").stdout.splitlines() if line.startswith("later")]


def failed(daemon: Daemon) -> list[str]:
    """The lines of `headway check` that are not in order."""
    done = daemon.command("check")
    wrong = [line for line in done.stdout.splitlines() if line.startswith("FAIL")]
    assert done.returncode == (1 if wrong else 0), done.stdout + done.stderr
    return wrong


def heartbeat(cluster: Any) -> str:
    return str(cluster.root / "heartbeat")


def install_filter(cluster: Any) -> Path:
    """Step 1 and 2 of driving: slurm.conf, the filter, a restart of slurmctld."""
    conf = Path(cluster.conf)
    place = conf.with_name("job_submit.lua")
    shipped = (ETC / "job_submit.lua").read_text()
    shipped = shipped.replace('"/run/headway/heartbeat"', f'"{heartbeat(cluster)}"')
    kept = cluster.root / "state" / "headway.epoch"
    place.write_text(shipped.replace('"/var/lib/slurm/slurmctld/headway.epoch"', f'"{kept}"'))
    place.chmod(0o644)
    conf.write_text(conf.read_text() + "\n".join(LINES) + "\n")
    cluster.saved()
    cluster.kill("slurmctld", "TERM")
    cluster.up("slurmctld")
    cluster.until(lambda: "JobSubmitPlugins        = lua" in cluster.scontrol("show", "config"))
    return place


def reason(cluster: Any, job: str) -> str:
    return str(cluster.jobs()[job]["state_reason"])


@pytest.mark.long
def test_check_monitor_drive_give_back(daemon: Daemon) -> None:
    cluster = daemon.cluster

    # Before: what the guide says may fail, and nothing else (the tests are Slurm's administrator).
    assert failed(daemon) == []
    wrong = later(daemon)
    assert len(wrong) == 2
    assert any("batch_sched_delay" in line for line in wrong)
    assert any("jobs enter held" in line for line in wrong)

    # Monitor: Slurm goes on by itself.
    daemon.start()
    own = cluster.submit(4, 1, hold=False)
    cluster.until(lambda: cluster.state(own) == "COMPLETED")
    waiting = cluster.submit(1, 60)
    daemon.until(
        lambda: waiting in [entry["job"] for entry in daemon.said("would do")],
        what="it says what it would do",
    )
    assert cluster.state(waiting) == "PENDING"
    assert cluster.jobs()[waiting]["admin_comment"] == ""
    assert f"Job {waiting} " in daemon.command("explain", waiting).stdout
    assert not [entry for entry in daemon.log() if entry["level"] in ("warning", "error")]
    assert daemon.stop() == 0
    replay = [str(HEADWAY), "replay", daemon.config["journal"]]
    repeated = subprocess.run(replay, capture_output=True, text=True, env={**os.environ, "COLUMNS": "200"})
    assert "all decisions are the same" in repeated.stdout, repeated.stderr
    cluster.run("scancel", waiting)

    # Drive.
    script = install_filter(cluster)
    daemon.configure(mode="drive")
    assert failed(daemon) == []
    new = cluster.submit(4, 300, hold=False)
    assert reason(cluster, new) == "JobHeldUser"
    daemon.start()
    cluster.until(lambda: cluster.state(new) == "RUNNING")
    assert [job["job"] for job in daemon.said("decided")] == [new]
    blockers = [cluster.submit(4, 300, hold=False) for _ in range(3)]
    cluster.until(lambda: all(cluster.state(job) == "RUNNING" for job in blockers))
    behind = cluster.submit(4, 60, hold=False)
    mine = cluster.submit(1, 60, administrator=False)
    cluster.until(lambda: reason(cluster, behind) == "JobHeldAdmin")
    told = daemon.command("explain", behind, "--fresh").stdout
    assert "waits for" in told and "expected to start" in told

    # A mistake in the file costs nothing.
    options = {**daemon.config["cluster"]["options"], "partitions": ["bacth"]}
    daemon.configure(cluster={"adapter": "slurm", "options": options})
    daemon.send(signal.SIGHUP)
    said = "the new configuration is wrong; the old configuration stays in force"
    daemon.until(lambda: daemon.said(said), what="it is refused")
    (refused,) = daemon.said(said)
    assert "bacth" in refused["error"]
    daemon.configure(cluster={"adapter": "slurm", "options": {**options, "partitions": ["batch"]}})

    # Give back. While it drives that is refused. Those that run are held for the case of a requeue.
    running = [new, *blockers]
    daemon.until(lambda: all(reason(cluster, job) == "JobHeldAdmin" for job in running), what="they are held")
    early = daemon.command("give-back", "--all")
    assert early.returncode == 1 and "a daemon drives with this configuration" in early.stderr
    assert daemon.stop() == 0
    script.write_text(script.read_text().replace("local MANAGED = { batch = true }", "local MANAGED = {}"))
    loose = cluster.submit(1, 60, hold=False)
    assert not reason(cluster, loose).startswith("JobHeld")
    done = daemon.command("give-back", "--all")
    given = "".join(f"job {job}: released\n" for job in [*sorted(running), behind])
    assert (done.returncode, done.stdout) == (0, f"{given}5 given back\n"), done.stderr
    assert reason(cluster, mine) == "JobHeldUser"
    assert cluster.state(new) == "RUNNING"
    cluster.run("scancel", loose, blockers[0])
    cluster.until(lambda: cluster.state(behind) == "RUNNING", 40)
