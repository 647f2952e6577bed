"""The tutorials, command by command; what they say that is printed is printed. The tutorial with a Slurm:
``tests/integration/test_tutorial_slurm.py``."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tutorials import FIRST_SLURM, OWN_POLICY, ROOT, bash, blocks, plain, steps

from headway_adapters.lab.slurm import PACKAGES, PLUGINS


def test_a_policy_in_thirty_lines_is_compared_on_a_trace(tmp_path: Path) -> None:
    written = [(kind, text) for kind, text in blocks(OWN_POLICY) if kind in ("python", "yaml")]
    for _, text in written:
        name = re.match(r"# (\S+)\n", text)
        assert name is not None
        (tmp_path / name[1]).write_text(text, encoding="utf-8")
    (policy,) = (text for kind, text in written if kind == "python")
    code = [line for line in policy.split("class ShortestBehind")[1].splitlines() if line.strip()]
    assert len(code) <= 30
    install, *others = steps(OWN_POLICY)
    assert "python3 -m venv" in install[0]
    for commands, printed in others:
        # Runs that differ are no error here.
        said = plain(
            bash(re.sub(r"^headway diff .*", r"\g<0> || test $? = 1", commands, flags=re.M), tmp_path)
        )
        assert [line for line in printed if plain(line) not in said] == [], said
    assert {path.name for path in tmp_path.iterdir()} >= {"easy", "mine", "patient", "campaign"}


@pytest.mark.slow
def test_it_is_installed_as_the_tutorial_says(tmp_path: Path) -> None:
    """In a copy of the checkout; loads the libraries that pip needs."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    said = bash(steps(OWN_POLICY)[0][0] + "headway --version\n", tmp_path, PATH=os.environ["PATH"])
    assert "headway, version" in said


def test_the_packages_are_those_that_the_lab_asks_for() -> None:
    words = steps(FIRST_SLURM)[0][0].split()
    assert {word for word in words if not word.startswith("-")} - {"apt-get", "install"} == {
        *PACKAGES.values(),
        PLUGINS,
    }
