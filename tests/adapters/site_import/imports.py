"""What the tests of `headway import` have in common."""

from __future__ import annotations

from pathlib import Path

from headway.plugins import Catalogue
from headway_adapters.site_import.command import imported
from headway_adapters.site_import.found import Imported, Line

FILES = Path(__file__).parent / "files"


def made(system: str, **texts: str) -> Imported:
    """What is made of files with these texts."""
    files = [
        [Line(name, at, line) for at, line in enumerate(text.split("\n"), 1)] for name, text in texts.items()
    ]
    return imported(system, files, Catalogue())


def said(found: Imported) -> list[str]:
    """The remarks, with the files' names alone."""
    return [str(remark).removeprefix(f"{FILES}/") for remark in found.ordered()]


def broken(found: Imported) -> list[str]:
    """Those of lines that could not be read."""
    return [str(remark) for remark in found.ordered() if remark.broken]
