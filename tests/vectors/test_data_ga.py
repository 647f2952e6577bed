"""Data co-scheduling: cases whose results come from a program that shares nothing with this one."""

import json
from pathlib import Path

import pytest
from data_ga import answer

FILES = sorted(Path(__file__).parent.glob("data_ga_*.json"))
CASES = [(file.stem, case) for file in FILES for case in json.loads(file.read_text())["cases"]]


def same(found, expected):
    """Numbers within 1e-5, all else exactly."""
    if isinstance(expected, dict):
        return set(found) == set(expected) and all(same(found[name], expected[name]) for name in expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, int | float) and not isinstance(expected, bool):
        return isinstance(found, int | float) and abs(found - expected) <= 1e-5
    return found == expected


@pytest.mark.parametrize(("file", "case"), CASES, ids=[f"{file} {case['name']}" for file, case in CASES])
def test_case(file, case):
    found = json.loads(json.dumps(answer(case["case"])))
    assert same(found, case["expected"]), found


def test_there_are_cases_of_every_kind():
    kinds = {case["case"]["kind"] for _, case in CASES}
    assert kinds == {"evaluate", "greedy", "operators", "exhaust", "ga", "generate", "bound"}
