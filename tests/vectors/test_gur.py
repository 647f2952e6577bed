"""The product gives what the vectors of GUR expect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gur
import pytest

CASES = [
    pytest.param(case["case"], case["expected"], id=f"{path.stem}-{case['name']}")
    for path in sorted(Path(__file__).parent.glob("gur_*.json"))
    for case in json.loads(path.read_text())["cases"]
]


def alike(found: Any, expected: Any) -> bool:
    """Equal, numbers within 1e-5."""
    if isinstance(expected, dict):
        return (
            isinstance(found, dict)
            and found.keys() == expected.keys()
            and all(alike(found[key], expected[key]) for key in expected)
        )
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(alike, found, expected))
    if isinstance(expected, int | float) and not isinstance(expected, bool):
        return isinstance(found, int | float) and abs(found - expected) <= 1e-5
    return bool(found == expected)


@pytest.mark.parametrize(("case", "expected"), CASES)
def test_case(case: dict[str, Any], expected: Any) -> None:
    found = gur.answer(case)
    assert alike(found, expected), found


def test_a_difference_is_seen() -> None:
    case, expected = CASES[0].values
    assert not alike({**gur.answer(case), "rounds": 3}, expected)
    assert not alike([1.0001], [1]) and alike([1.000001], [1])
