"""The tutorial from a fresh Slurm to driving it, command by command."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm_releases import Release
from tutorials import BIN, FIRST_SLURM, bash, plain, steps
from waiting import HANG, until

pytestmark = [pytest.mark.slurm, pytest.mark.installed_slurm, pytest.mark.long]


@pytest.fixture
def laboratory(slurm: Release, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The first shell: the folder that its lab keeps."""
    folder = tmp_path_factory.mktemp("l")
    command = steps(FIRST_SLURM)[1][0].strip()
    assert command.startswith("headway lab slurm --fresh ")
    argv = [str(BIN / "headway"), *command.replace("/tmp/lab", str(folder / "lab")).split()[1:]]
    said = folder / "said"
    with said.open("wb") as out, subprocess.Popen(
        argv, stdout=out, stderr=out, stdin=subprocess.DEVNULL
    ) as process:  # fmt: skip
        try:

            def is_up() -> bool:
                assert process.poll() is None, said.read_text()
                return "Folder: " in said.read_text()

            until(is_up, "the lab is up", said=said.read_text)
            yield folder / "lab"
        finally:
            process.terminate()
            assert process.wait(HANG) == 0, said.read_text()


def test_a_fresh_slurm_is_watched_driven_and_given_back(laboratory: Path, tmp_path: Path) -> None:
    """The second shell is one, since a job of it is named in the end; the waits are shorter."""
    followed = steps(FIRST_SLURM)[2:]
    script = ""
    for number, (commands, _) in enumerate(followed):
        commands = commands.replace("/tmp/lab", str(laboratory)).replace(" 30 headway", " 8 headway")
        script += f"echo '== {number}'\n{commands.replace('--for 1m', '--for 8s')}"
    said = bash(script, tmp_path)
    parts = [plain(part) for part in re.split(r"^== \d+$", said, flags=re.MULTILINE)[1:]]
    for part, (_, printed) in zip(parts, followed, strict=True):
        assert [line for line in printed if plain(line) not in part] == [], said
    assert "released" in parts[-1], said
    waiting = [line for line in said.rpartition("JOBID")[2].splitlines() if " PD " in line]
    assert [line for line in waiting if "JobHeld" in line] == [], said
