"""How `make test` hands its tests to the workers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from distribution import Group, in_turn
from waiting import HANG

TESTS = Path(__file__).parent


def test_every_group_has_one_turn() -> None:
    groups = [Group(f"g{n}", 1 + n % 5, long=n % 7 == 0) for n in range(50)]
    assert sorted(in_turn(groups)) == sorted(group.name for group in groups)


def test_what_takes_longest_begins_first() -> None:
    groups = [
        Group("small", 2), Group("torture", 1, long=True), Group("large", 50), Group("slow", 3, long=True),
    ]  # fmt: skip
    assert in_turn(groups) == ["slow", "torture", "large", "small"]


def test_the_order_does_not_hang_on_chance() -> None:
    groups = [Group(f"g{n}", 1) for n in range(40)]
    assert in_turn(groups) == [group.name for group in groups]


def test_no_two_files_of_tests_have_one_name() -> None:
    """A worker that has loaded one of them does not load the other."""
    names = [path.name for path in TESTS.rglob("test_*.py") if not (path.parent / "__init__.py").exists()]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("others", [0, 3])
def test_a_worker_that_crashes_is_named_and_the_run_ends(tmp_path: Path, others: int) -> None:
    (tmp_path / "test_it.py").write_text(
        "import os, pathlib, pytest\n"
        "def test_crash():\n"
        "    place = pathlib.Path('crashed')\n"
        "    if not place.exists():\n"
        "        place.touch()\n"
        "        os._exit(1)\n"
        f"@pytest.mark.parametrize('n', range({others}))\n"
        "def test_other(n): pass\n"
    )
    (tmp_path / "conftest.py").write_text(
        "from distribution import Turns\n"
        "def pytest_xdist_make_scheduler(config, log): return Turns(config, log)\n"
    )
    pytest_run = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider"]
    ran = subprocess.run(
        [*pytest_run, tmp_path], capture_output=True, text=True, timeout=HANG, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
    )  # fmt: skip
    assert ran.returncode == 1
    assert "crashed while running 'test_it.py::test_crash'" in ran.stdout
    assert f"1 failed, {1 + others} passed" in ran.stdout
