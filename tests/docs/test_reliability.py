"""docs/reliability.md: a page, with commands that are there, and results of each system."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reliability.md").read_text()


def test_it_is_one_page() -> None:
    assert len(PAGE.split()) <= 2500


@pytest.mark.parametrize("command", re.findall(r"^make torture .*$", PAGE, re.MULTILINE))
def test_its_commands_are_there(command: str) -> None:
    done = subprocess.run([*command.split(), "-n"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    system, kills, seed = re.findall(r"=(\w+)", command)
    assert f"-m torture {system} --kills {kills}" in done.stdout and f"--seed {seed}" in done.stdout


@pytest.mark.parametrize("system", ["Slurm", "PBS", "LSF"])
def test_each_system_has_its_result(system: str) -> None:
    results = PAGE.partition("## Results")[2]
    assert re.search(rf"^\| {system} \| \d+ \|", results, re.MULTILINE)
