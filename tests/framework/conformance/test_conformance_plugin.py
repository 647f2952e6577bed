"""The pytest plugin of the conformance suite: what it adds to a run of others' tests, and what it refuses."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import headway.conformance
from headway.conformance import CAN, Site, suite
from headway.conformance.site import Wanted

SUITE = "\n".join(path.read_text(encoding="utf-8") for path in Path(suite.__path__[0]).glob("*.py"))
#: A site that can what no site can.
ODD = """
import pytest
from headway.conformance import Site
from headway.conformance.suite import *

class Odd(Site):
    name = "odd"
    can = frozenset({"holds", "hoolds"})
    def adapter(self, **options): raise NotImplementedError
    bring = cancel = runs = waits = adapter

@pytest.fixture
def site():
    return Odd()
"""


def test_it_has_one_fixture_and_no_hook_and_no_run_loads_it_by_itself() -> None:
    assert [name for name in vars(headway.conformance) if name.startswith("pytest_")] == []
    named = vars(headway.conformance).items()
    assert [name for name, one in named if "fixture" in type(one).__name__.lower()] == ["drive"]
    assert [one for one in entry_points(group="pytest11") if one.value.startswith("headway")] == []


def test_each_word_of_what_a_site_can_is_asked_for_and_no_other() -> None:
    needed = [word for words in re.findall(r"need\(site, ([^)]*)\)", SUITE) for word in words.split(", ")]
    asked = {word.strip('"') for word in needed if word.startswith('"')}
    asked |= set(re.findall(r'"([\w-]+)" (?:not )?in site\.can', SUITE))
    asked |= set(re.findall(r'"(truncate|garbage)"', SUITE))
    assert asked == set(CAN)


def test_every_test_of_the_suite_is_among_those_that_an_author_imports() -> None:
    assert set(re.findall(r"^class (Test\w+)", SUITE, re.MULTILINE)) == set(suite.__all__)


def test_a_test_submits_what_the_site_is_asked_to_bring() -> None:
    class Noting(Site):
        name = "noting"
        brought: list[Wanted] = []

        def adapter(self, **options: object) -> object:  # type: ignore[override]
            raise NotImplementedError

        def bring(self, job: Wanted) -> str:
            self.brought.append(job)
            return str(len(self.brought))

        def cancel(self, job_id: str) -> None:
            raise NotImplementedError

        def runs(self) -> dict[str, tuple[tuple[str, int], ...]]:
            return {"1": (("n1", 2),), "of another": (("n1", 2),)}

        def waits(self) -> set[str]:
            return {"2", "of another too"}

    site = Noting()
    site.clean()
    assert site.submit(2) == "1"
    assert site.submit(1, 5, nodes=1, held=True, name="x", minutes=3, after="1") == "2"
    assert site.brought == [Wanted(2), Wanted(1, 5, 1, True, "x", 3, "1")]
    assert (set(site.running()), site.waiting()) == ({"1"}, {"2"})


def test_a_word_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    (tmp_path / "test_odd.py").write_text(ODD, encoding="utf-8")
    words = ["-p", "headway.conformance", "-p", "no:cacheprovider", "-x", "-q", "test_odd.py"]
    said = subprocess.run(
        [sys.executable, "-m", "pytest", *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert said.returncode == 1
    assert re.search(r"site odd: can: expected words of again, after, .*; found hoolds", said.stdout)
