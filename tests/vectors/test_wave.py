"""The Wave Scheduler gives the results of an independent program, case by case."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from vectors.wave import answer

FILES = sorted(Path(__file__).parent.glob("wave_*.json"))
CASES = [
    pytest.param(one["case"], one["expected"], id=f"{path.stem}-{one['name']}")
    for path in FILES
    for one in json.loads(path.read_text(encoding="utf-8"))["cases"]
]


def differences(found: Any, expected: Any, where: str = "") -> list[str]:
    """Where two answers differ: numbers by more than 1e-5, everything else at all."""
    if isinstance(expected, dict) and isinstance(found, dict):
        if found.keys() != expected.keys():
            return [f"{where}: keys {sorted(found)}, expected {sorted(expected)}"]
        return [line for key in expected for line in differences(found[key], expected[key], f"{where}.{key}")]
    if isinstance(expected, list) and isinstance(found, list):
        if len(found) != len(expected):
            return [f"{where}: {len(found)} entries, expected {len(expected)}"]
        pairs = enumerate(zip(found, expected, strict=True))
        return [line for at, (a, b) in pairs for line in differences(a, b, f"{where}[{at}]")]
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (found, expected))
    same = abs(found - expected) <= 1e-5 if numbers else found == expected
    return [] if same else [f"{where}: {found!r}, expected {expected!r}"]


def test_all_five_files_are_there() -> None:
    assert len(FILES) == 5 and len(CASES) == 45


@pytest.mark.parametrize(("case", "expected"), CASES)
def test_a_case(case: dict[str, Any], expected: Any) -> None:
    assert differences(answer(case), expected) == []
