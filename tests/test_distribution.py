"""How `make test` hands its tests to the workers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from distribution import Group, Turns, in_turn
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


class Worker:
    """What a scheduler of pytest-xdist asks of a worker."""

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.shutting_down = False
        #: The tests that it was told to run, by their places in its collection.
        self.told: list[int] = []

    def send_runtest_some(self, places: Sequence[int]) -> None:
        self.told += places

    def shutdown(self) -> None:
        self.shutting_down = True


def turns(tests: Sequence[str], *workers: Worker) -> Turns:
    """A run of these tests that has begun on these workers."""
    options = {"tx": [f"{len(workers)}*popen"], "loadscopereorder": False}
    config = SimpleNamespace(getvalue=options.__getitem__, option=SimpleNamespace(**options))
    run = Turns(config, None)
    for worker in workers:
        run.add_node(worker)
        run.add_node_collection(worker, tests)
    run.schedule()
    return run


def test_a_new_worker_that_still_collects_gets_nothing_when_another_worker_is_ready() -> None:
    tests = [f"test_{n}.py::test_it@{n}" for n in range(8)]
    first, second, third, fourth = (Worker(name) for name in ("gw0", "gw1", "gw2", "gw3"))
    run = turns(tests, first, second)
    assert not set(first.told) & set(second.told)
    for crashed in (first, second):
        assert run.remove_node(crashed) == tests[crashed.told[0]]
    run.add_node(third)
    run.add_node(fourth)
    run.add_node_collection(third, tests)
    run.schedule()
    assert third.told and not fourth.told
    run.add_node_collection(fourth, tests)
    run.schedule()
    assert fourth.told and not set(third.told) & set(fourth.told)


def test_after_a_crash_no_group_that_is_done_has_another_turn() -> None:
    tests = [f"test_{n}.py::test_it@{n}" for n in range(40)]
    first, second, third = (Worker(name) for name in ("gw0", "gw1", "gw2"))
    run = turns(tests, first, second)
    for place in range(20):
        run.mark_test_complete(first, first.told[place])
    done, running = set(first.told[:20]), first.told[20]
    assert run.remove_node(first) == tests[running]
    run.add_node(third)
    run.add_node_collection(third, tests)
    run.schedule()
    for worker in (second, third):
        for place in worker.told:
            run.mark_test_complete(worker, place)
    assert run.tests_finished
    assert sorted(done | set(second.told) | set(third.told)) == list(range(40))
    assert not done & set(third.told)
