"""What users, plugins, batch systems and damaged files wrote, made safe to print."""

from __future__ import annotations

import unicodedata

#: Unicode's category of blanks, such as the thin ones between thousands: they command nothing.
_BLANK = "Zs"


def printable(text: str) -> str:
    """A text in which nothing can command a terminal; line breaks, tabs and blanks of any width stay."""
    if text.isprintable():
        return text
    return "".join(c if _harmless(c) else "\N{REPLACEMENT CHARACTER}" for c in text)


def _harmless(character: str) -> bool:
    return character.isprintable() or character in "\n\t" or unicodedata.category(character) == _BLANK
