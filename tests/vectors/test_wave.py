"""The Wave Scheduler gives the results of an independent program, case by case."""

from __future__ import annotations

from typing import Any

import pytest
from vectors.compare import Case, alike, cases_of
from vectors.wave import answer

CASES = cases_of("wave")


def test_all_files_are_there() -> None:
    assert len({case.name.split(":")[0] for case in CASES}) == 5 and len(CASES) == 45


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    assert alike(found := case.found(), case.expected), found


@pytest.mark.parametrize(
    "options",
    [
        {}, {"target": "random-night"}, {"target": "most-night", "discovery": "random"}, {"strict": False},
        {"wavezones": 4, "hops": 1}, {"linger": 1.5, "order": "number"}, {"start": "own"},
        {"tries": 2, "discovery": "random"}, {"discovery": "lowest"}, {"until": 30},
    ],
)  # fmt: skip
def test_exact_runs_are_those_in_floating_point(options: dict[str, Any]) -> None:
    """Fractions and doubles give the same run of a population, under every option."""
    case = {"kind": "population", "n": 40, "f": 0.3, "c": 0.6, "seed": 7, "policy": "wave-adaptive"}
    exact, rounded = (answer({**case, "options": options, "exact": value}) for value in (True, False))
    assert alike(rounded, exact)
    assert exact["drawn"] > 0 or options.get("discovery") == "lowest"
