"""What users, plugins, batch systems and damaged files wrote, made safe to print."""

from __future__ import annotations


def printable(text: str) -> str:
    """A text in which nothing can command a terminal; line breaks and tabs stay."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
