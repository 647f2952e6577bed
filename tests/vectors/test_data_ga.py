"""Data co-scheduling gives the results of an independent program, case by case."""

from __future__ import annotations

import pytest
from vectors.compare import Case, alike, cases_of

CASES = cases_of("data_ga")


def test_all_files_are_there() -> None:
    assert len({case.name.split(":")[0] for case in CASES}) == 5
    kinds = {"evaluate", "greedy", "operators", "exhaust", "ga", "generate", "bound"}
    assert {case.case["kind"] for case in CASES} == kinds


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    assert alike(found := case.found(), case.expected), found
