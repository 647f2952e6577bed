"""The program that ``headway init`` writes into the unit."""

from __future__ import annotations

import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.cli import init


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A system whose interpreter is in bin and puts programs of its own into local/bin, as Debian's does;
    others can read it, and a service sees it."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    for name in ("bin", "local/bin"):
        (folder / name).mkdir(parents=True)
    monkeypatch.setattr(init, "_NOT_OF_A_SERVICE", ("/home",))
    monkeypatch.setattr(sys, "executable", str(folder / "bin" / "python3"))
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(folder / "local" / "bin"))
    for name in ("prefix", "base_prefix"):
        monkeypatch.setattr(sys, name, str(folder))
    yield folder
    shutil.rmtree(folder)


def test_it_is_the_one_beside_the_interpreter_as_of_a_package(system: Path) -> None:
    program = system / "bin" / "headway"
    program.touch()
    assert init._program() == (str(program), True)


def test_one_that_was_installed_by_hand_comes_first(system: Path) -> None:
    for name in ("bin", "local/bin"):
        (system / name / "headway").touch()
    assert init._program() == (str(system / "local" / "bin" / "headway"), True)


def test_without_one_it_has_to_be_installed(system: Path) -> None:
    assert init._program() == ("/opt/headway/bin/headway", False)


def test_one_that_the_service_does_not_see_has_to_be_installed(
    system: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (system / "bin" / "headway").touch()
    monkeypatch.setattr(init, "_NOT_OF_A_SERVICE", (str(system),))
    assert init._program() == ("/opt/headway/bin/headway", False)


def test_one_that_others_cannot_reach_has_to_be_installed(system: Path) -> None:
    (system / "bin" / "headway").touch()
    system.chmod(0o700)
    assert init._program() == ("/opt/headway/bin/headway", False)
