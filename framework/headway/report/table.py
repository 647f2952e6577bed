"""A table of a command: of texts, for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A table of texts, as a terminal and a page show it."""

    title: str
    heads: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    #: How many columns, from the left, are words; the others are figures.
    words: int
    note: str = ""
