"""The page's files: small, of this host alone, and without anything inline."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from headway.serve.app import PAGE

FILES = sorted(path for path in PAGE.rglob("*") if path.is_file())
OWN = [path for path in FILES if "vendor" not in path.parts]
#: Bytes of all files.
MOST = 250_000


def test_it_is_small() -> None:
    assert sum(path.stat().st_size for path in FILES) <= MOST


def test_a_library_brings_its_licence() -> None:
    assert "MIT License" in (PAGE / "vendor" / "uPlot.LICENSE.txt").read_text()


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_it_needs_no_other_host(path: Path) -> None:
    text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"""(?:https?:|wss?:|["'(])//""", text)
    assert not re.search(r"@import\b", text)


@pytest.mark.parametrize("path", [path for path in OWN if path.suffix == ".js"], ids=lambda path: path.name)
def test_text_never_becomes_markup_or_program(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function",
                "setTimeout(\"", "createContextualFragment", "DOMParser", "srcdoc"):  # fmt: skip
        assert way not in text, way


class Inline(HTMLParser):
    """What a policy without 'unsafe-inline' refuses."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = dict(attrs)
        self.found += [f"{tag} {name}" for name in names if name == "style" or name.startswith("on")]
        self.inside = tag if tag == "style" or (tag == "script" and "src" not in names) else ""

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside and data.strip():
            self.found.append(self.inside)


def test_nothing_is_inline() -> None:
    parser = Inline()
    parser.feed((PAGE / "index.html").read_text(encoding="utf-8"))
    assert parser.found == []
    parser.feed("<p style='color:red' onclick=x>1</p><script>alert(1)</script>")
    assert parser.found == ["p style", "p onclick", "script"]


def test_every_file_is_in_the_wheel() -> None:
    """Which names of files the package takes; `tests/test_wheel` shows that they are in it."""
    import tomllib

    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))
    taken = project["tool"]["setuptools"]["package-data"]["headway"]
    for path in FILES:
        assert any(path.match(pattern.removeprefix("**/")) for pattern in taken), path
