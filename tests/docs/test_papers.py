"""Tables of claims in the papers' pages are those of their results, or the page says that they are older."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.experiment.stale import State, check_page

PAPERS = Path(__file__).parents[2] / "docs" / "papers"


@pytest.mark.parametrize("page", sorted(PAPERS.glob("*.md")), ids=lambda page: page.stem)
def test_a_table_in_a_page_is_that_of_its_results_or_said_to_be_older(page: Path) -> None:
    stale = [found for found in check_page(page) if found.state is not State.FRESH]
    assert not [found for found in stale if found.today != page.read_text() and found.today is not None]
    assert not stale or "`make claims` names" in page.read_text()
