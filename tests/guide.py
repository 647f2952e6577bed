"""The operators' guide: its pages, and all of them as one text."""

from __future__ import annotations

from pathlib import Path

DIRECTORY = Path(__file__).parents[1] / "docs" / "operators"
#: Page name -> its text; the first page first.
PAGES = {
    page.name: page.read_text(encoding="utf-8")
    for page in sorted(DIRECTORY.glob("*.md"), key=lambda page: (page.name != "README.md", page.name))
}
GUIDE = "\n".join(PAGES.values())
