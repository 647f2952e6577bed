"""The tables of docs/papers that say which test shows what name tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMED = {
    page.name: set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page.read_text(encoding="utf-8")))
    for page in sorted((ROOT / "docs" / "papers").glob("*.md"))
}


@pytest.mark.parametrize("page", [page for page, named in NAMED.items() if named])
def test_named_tests_exist(page: str) -> None:
    missing = [
        f"{file}::{name}"
        for file, name in sorted(NAMED[page])
        if not (ROOT / file).exists() or f"def {name}(" not in (ROOT / file).read_text(encoding="utf-8")
    ]
    assert missing == []


def test_some_pages_have_such_a_table() -> None:
    assert {"unfairness_metrics.md", "sareg.md", "evaluation_pitfalls.md"} <= {
        p for p, n in NAMED.items() if n
    }
