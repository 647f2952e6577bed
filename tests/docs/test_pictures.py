"""Pictures are made by a command: of files, and of what a server shows."""

from __future__ import annotations

import re
import runpy
import socket
import struct
import sys
from pathlib import Path
from typing import Any

import pytest
from devtools import chromium
from page_pictures import PICTURES as OF_THE_PAGE

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def pictures() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "docs" / "pictures.py"))


def test_each_picture_of_a_page_is_made_by_it(pictures: dict[str, Any]) -> None:
    """But for the plots, which `headway reproduce` makes."""
    texts = [
        page.read_text(encoding="utf-8") for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
    ]
    shown = {name for text in texts for name in re.findall(r"images/([\w-]+)\.png\)", text)}
    assert shown == {*pictures["PICTURES"], *(f"page-{name}" for _, name, *_ in OF_THE_PAGE)}
    assert shown == {image.stem for image in (ROOT / "docs" / "images").glob("*.png")}


def test_an_unknown_picture_is_named(pictures: dict[str, Any]) -> None:
    with pytest.raises(SystemExit, match="found rapport"):
        pictures["main"](["rapport"])


@pytest.mark.browser
@pytest.mark.parametrize("how", ["file", "server"])
def test_a_picture_has_its_size_and_shows_the_page(
    how: str, pictures: dict[str, Any], tmp_path: Path
) -> None:
    chromium()
    write = "open('p.html', 'w').write('<body style=background:#0000ff>')"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    during = (sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1")
    page, during = ("p.html", ()) if how == "file" else (f"http://127.0.0.1:{port}/p.html", during)
    picture = pictures["Picture"](page, (600, 200), ((sys.executable, "-c", write),), during)
    image = tmp_path / "images" / "p.png"
    pictures["make"](picture, image, tmp_path / "work")
    data = image.read_bytes()
    assert struct.unpack(">II", data[16:24]) == (600, 200)
