"""The product gives what the vectors of GUR expect."""

from __future__ import annotations

import pytest
from vectors.compare import Case, alike, cases_of

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
