"""`headway run` under a service manager: ready, reloading, alive, stopping; and the unit that says so."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from notified import Manager
from waiting import HANG

from headway.journal import Journal

ROOT = Path(__file__).parents[3]


@contextmanager
def daemon(config: Path, manager: Manager | None, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = {**os.environ, **more}
    if manager is not None:
        environment["NOTIFY_SOCKET"] = manager.address
    words = [sys.executable, "-c", "from headway.cli import main; main()", "run", "-c", str(config)]
    with subprocess.Popen(words, env=environment, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()


def status(manager: Manager, words: str) -> str:
    """The first sign of life whose status has these words."""
    while words not in (found := manager.until("WATCHDOG")[-1]["STATUS"]):
        pass
    return found


@pytest.mark.waits
def test_systemd_is_told_how_a_daemon_goes(pretended_slurm: Callable[..., Path], tmp_path: Path) -> None:
    config = pretended_slurm()
    with Manager() as manager, daemon(config, manager, WATCHDOG_USEC="900000") as process:
        assert manager.message()["READY"] == "1"
        told = status(manager, "last cycle 20")
        assert re.match(r"monitor: \d+ jobs, last cycle 20", told)
        cycles = journal_cycles(tmp_path)
        for _ in range(3):
            manager.until("WATCHDOG")
        # That the loop goes on is no reason for a cycle.
        assert journal_cycles(tmp_path) == cycles
        process.send_signal(signal.SIGHUP)
        assert "MONOTONIC_USEC" in manager.until("RELOADING")[-1]
        assert manager.until("READY")[-1]["STATUS"].startswith("monitor: ")
        good = config.read_text()
        config.write_text("mode: nonsense\n")
        process.send_signal(signal.SIGHUP)
        manager.until("RELOADING")
        # The old configuration stays in force.
        assert manager.until("READY")[-1] == {"READY": "1"}
        config.write_text(good)
        process.terminate()
        manager.until("STOPPING")
        assert process.wait(HANG) == 0


@pytest.mark.waits
def test_systemd_is_told_that_a_stand_by_is_ready_and_alive(
    pretended_slurm: Callable[..., Path], tmp_path: Path
) -> None:
    """It would be ended after TimeoutStartSec, and again each time that it was started."""
    config = pretended_slurm()
    config.write_text(f"{config.read_text()}\nstandby: {{alone: 600, follow: [sleep, '600']}}\n")
    with Manager() as manager, daemon(config, manager, WATCHDOG_USEC="900000") as process:
        assert manager.message() == {"READY": "1", "STATUS": "stand-by; no leader is known"}
        for _ in range(3):
            manager.until("WATCHDOG")
        process.send_signal(signal.SIGTERM)
        assert manager.until("STOPPING")
        assert process.wait(HANG) == 0


def journal_cycles(place: Path) -> int:
    with Journal.open(str(place / "journal.db"), read_only=True) as journal:
        return sum(1 for run in journal.runs() for _ in journal.cycles(run.id))


@pytest.mark.waits
def test_a_process_that_is_stopped_gives_no_sign_and_one_that_goes_on_does(
    pretended_slurm: Callable[..., Path],
) -> None:
    with Manager() as manager, daemon(pretended_slurm(), manager, WATCHDOG_USEC="900000") as process:
        manager.until("WATCHDOG")
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        while not manager.is_silent():
            pass
        assert manager.is_silent()
        process.send_signal(signal.SIGCONT)
        manager.until("WATCHDOG")
        # A watchdog ends it so: the log says where it was.
        process.send_signal(signal.SIGABRT)
        _, said = process.communicate(timeout=HANG)
    assert process.returncode == -signal.SIGABRT
    assert b"Fatal Python error: Aborted" in said
    assert b"in wait" in said


@pytest.mark.waits
def test_a_silent_cluster_is_no_hang(pretended_slurm: Callable[..., Path], tmp_path: Path) -> None:
    config = pretended_slurm()
    with Manager() as manager, daemon(config, manager, WATCHDOG_USEC="900000"):
        manager.until("WATCHDOG")
        for name in ("squeue", "sinfo", "scontrol"):
            (tmp_path / "bin" / name).write_text("#!/bin/sh\necho no slurmctld >&2\nexit 1\n")
        status(manager, "slurm has not answered since")
        for _ in range(3):
            manager.until("WATCHDOG")


def test_the_unit_has_a_watchdog_that_no_pulse_misses() -> None:
    unit = (ROOT / "etc" / "slurm" / "headway.service").read_text(encoding="utf-8")
    lines = dict(line.split("=", 1) for line in unit.splitlines() if re.match(r"\w+=", line))
    assert lines["Type"] == "notify"
    assert lines["WatchdogSec"] == "5min"
    page = (ROOT / "docs" / "operators" / "health.md").read_text(encoding="utf-8")
    assert "`WatchdogSec=5min` in the unit" in page
