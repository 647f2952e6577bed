"""`headway lab slurm`: a real Slurm, its jobs and the daemon by one command, and nothing of it afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from slurm_releases import Release
from waiting import HANG, until

pytestmark = [pytest.mark.slurm, pytest.mark.installed_slurm]

HEADWAY = Path(sys.executable).with_name("headway")


@pytest.fixture
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("l")


def test_squeue_shows_planned_starts_and_nothing_is_left(slurm: Release, short: Path) -> None:
    """Only on this machine's own packages: the lab runs no other Slurm."""
    said = short / "said"
    with said.open("wb") as out:
        process = subprocess.Popen(
            [HEADWAY, "lab", "slurm", "--for", "1h", "--nodes", "2", "--cpus", "16", "--every", "1s"],
            stdout=out, stderr=out, stdin=subprocess.DEVNULL, env={**os.environ, "TMPDIR": str(short)},
        )  # fmt: skip

    def shell(command: str) -> str:
        (folder,) = short.glob("headway-lab-*")
        line = f". {folder}/env; {command}"
        return subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, timeout=HANG).stdout

    def holds() -> bool:
        assert process.poll() is None, said.read_text()
        return "Folder: " in said.read_text()

    until(holds, "the lab is up", said=said.read_text)
    until(lambda: shell("squeue -h -t R -o %i").split(), "a job runs", said=said.read_text)
    # The wide jobs of the first twenty wait, and each has a place in the plan.
    until(lambda: [s for s in shell("squeue -h --start -o %S").split() if s != "N/A"], "a start is shown")
    process.send_signal(signal.SIGINT)
    assert process.wait(HANG) == 0, said.read_text()
    assert "all processes are gone" in said.read_text()
    lines = [" ".join(one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"])]
    assert [line for line in lines if str(short) in line] == []
    assert list(short.glob("headway-lab-*")) == []
