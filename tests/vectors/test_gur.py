"""The product gives what the vectors of GUR expect."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from vectors.compare import Case, alike, cases_of, main
from vectors.gur import answer

CASES = cases_of("gur")


def test_all_files_are_there() -> None:
    assert len({case.name.split(":")[0] for case in CASES}) == 5


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    assert alike(found := case.found(), case.expected), found


def test_a_difference_is_seen() -> None:
    found = CASES[0].found()
    assert not alike({**found, "rounds": 3}, CASES[0].expected)
    assert not alike([1.0001], [1]) and alike([1.000001], [1]) and not alike(True, 1)


METAJOB = {
    "id": "m", "total": 5, "duration": 10, "earliest": 0, "latest": 100, "preference": ["A"],
    "machines": {"A": {"min": 1, "max": 4}},
}  # fmt: skip


def test_a_metajob_that_cannot_be_met_makes_no_call_in_a_race_or_before_a_crash() -> None:
    sites, good = {"A": {"nodes": 4}}, {**METAJOB, "id": "n", "total": 4}
    race = answer({"kind": "race", "sites": sites, "metajobs": [METAJOB, good], "turns": [0, 0, 1]})
    assert [one["outcome"] for one in race["results"]] == ["REFUSED", "SUCCESS"]
    assert race["results"][0]["log"] == [] and "total" in race["results"][0]["why"]
    crash = answer({"kind": "crash", "sites": sites, "metajob": METAJOB, "after": 3})
    assert crash["journal"] == [] and crash["finished"] and crash["left"] == {}


def test_a_null_is_a_field_that_is_not_given() -> None:
    bare = {"sites": {"A": {"nodes": 4}}, "metajob": {**METAJOB, "total": 4}}
    site = {"nodes": 4, "queue": None, "grain": None, "min_duration": None, "policy": {"xf_weight": None}}
    full = {"sites": {"A": site}, "metajob": {**bare["metajob"], "usage": None}, "options": None}
    assert answer(full) == answer(bare) and answer(bare)["outcome"] == "SUCCESS"


def test_only_so_many_vectors_are_made_as_are_asked_for() -> None:
    """All of them would take hours."""
    case = {"kind": "vectors", "machines": [[0, 100]] * 8, "total": 400, "limit": 2}
    assert answer(case) == [[100, 100, 100, 100, 0, 0, 0, 0], [100, 100, 100, 99, 1, 0, 0, 0]]


def test_a_case_that_fails_stops_no_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = [{"name": name, "case": {"kind": name}, "expected": []} for name in ("first", "second")]
    (file := tmp_path / "gur_x.json").write_text(json.dumps({"system": "gur", "cases": said}))
    monkeypatch.setattr(sys, "argv", ["compare.py", str(file)])
    monkeypatch.setattr(sys, "path", sys.path)
    assert main() == 1
    assert [line for line in capsys.readouterr().out.splitlines() if "found" in line] == [
        "  found    KeyError: 'first'", "  found    KeyError: 'second'",
    ]  # fmt: skip
