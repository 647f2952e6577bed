"""`headway drive --for` on a real Slurm: whatever ends it, everything is as it was before."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from failing_open import filter_with
from live_daemon import HEADWAY, Daemon
from waiting import HANG

pytestmark = pytest.mark.slurm


class Try:
    """The command, and what it says."""

    def __init__(self, daemon: Daemon, duration: str) -> None:
        self.process = subprocess.Popen(
            [str(HEADWAY), "drive", "--for", duration, "-c", str(daemon.config_path)],
            stdout=subprocess.PIPE, stderr=daemon.log_path.open("ab"), text=True,
        )  # fmt: skip

    def ends(self, number: signal.Signals | None = None) -> str:
        if number is not None:
            self.process.send_signal(number)
        said, _ = self.process.communicate(timeout=HANG)
        assert self.process.returncode == 0, said
        return said


@pytest.fixture
def daemon(slurm_factory: Callable[..., Any], tmp_path: Path) -> Iterator[Daemon]:
    """A configuration that only watches, and a Slurm that has the submit filter."""
    cluster = slurm_factory()
    heartbeat = cluster.root / "heartbeat"
    script = Path(cluster.conf).with_name("job_submit.lua")
    script.write_text(filter_with(heartbeat, patience=300))
    script.chmod(0o644)
    conf = Path(cluster.conf)
    conf.write_text(conf.read_text() + "JobSubmitPlugins=lua\n")
    cluster.kill("slurmctld", "TERM")
    cluster.up("slurmctld")
    made = Daemon(cluster, tmp_path, mode="monitor", options={"heartbeat": str(heartbeat)})
    yield made
    made.clean_up()


@pytest.mark.long
@pytest.mark.parametrize("number", [None, signal.SIGINT], ids=["its time is over", "ctrl-c"])
def test_it_drives_for_its_time_and_gives_everything_back(
    daemon: Daemon, number: signal.Signals | None
) -> None:
    cluster = daemon.cluster
    one = Try(daemon, "8s" if number is None else "1h")
    cluster.until(lambda: daemon.said("started"), what="it drives")
    running = [cluster.submit(4, 600, hold=False) for _ in range(4)]
    cluster.until(lambda: all(cluster.state(job) == "RUNNING" for job in running), what="headway starts them")
    waiting = cluster.submit(4, 600, hold=False)
    cluster.until(lambda: cluster.jobs()[waiting]["priority"] == 0, what="it is held")
    said = one.ends(number)
    assert "driving batch until 20" in said and f"job {waiting}: released" in said
    record = cluster.jobs()[waiting]
    assert record["priority"] > 0 and record["admin_comment"] == ""
    assert [cluster.state(job) for job in running] == ["RUNNING"] * 4
    # Slurm has what comes from now on, at once.
    new = cluster.submit(1, 600, hold=False)
    assert cluster.jobs()[new]["priority"] > 0 and cluster.jobs()[new]["admin_comment"] == ""


def test_it_says_what_would_come_of_a_partition_that_is_not_there(daemon: Daemon) -> None:
    options = {**daemon.config["cluster"]["options"], "partitions": ["bacth"]}
    daemon.configure(cluster={"adapter": "slurm", "options": options})
    done = daemon.command("drive", "--for", "1h")
    assert done.returncode == 1 and "partition bacth: does not exist" in done.stderr
    assert "headway check -c" in done.stderr and "driving" not in done.stdout
