"""Every page is short enough to be read at once, and every link in it leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
#: Pages that people write; ``headway reproduce`` writes a paper's claims.
WRITTEN = [page for page in PAGES if page.name != "claims.md"]
#: Words of a page, where it is not 2,500.
MOST = {"README.md": 700, "docs/performance.md": 1_500}


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def anchors(page: Path) -> set[str]:
    """The names of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", WRITTEN, ids=name)
def test_a_page_has_at_most_2500_words(page: Path) -> None:
    words = len(page.read_text(encoding="utf-8").split())
    assert words <= MOST.get(name(page), 2_500)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_link_of_a_page_leads_to_a_page_and_a_heading(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s:]*))?\)", page.read_text(encoding="utf-8"))
    dead = []
    for path, heading in links:
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (heading and heading not in anchors(target)):
            dead.append(f"{path}#{heading}")
    assert dead == []


def test_a_page_under_docs_is_linked_to_from_another_page() -> None:
    linked = {
        (page.parent / path).resolve()
        for page in PAGES
        for path in re.findall(r"\]\(([^)#:\s]+)", page.read_text(encoding="utf-8"))
    }
    assert [name(page) for page in WRITTEN[1:] if page not in linked] == []


def test_a_version_of_the_changelog_has_at_most_60_lines_and_an_entry_is_one_line() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for version in text.split("\n## ")[1:]:
        lines = version.splitlines()
        assert len(lines) <= 60
        assert {line for line in lines if line.startswith("#")} <= {"### Added", "### Changed", "### Fixed"}
        assert [line for line in lines if line.startswith(" ")] == []
