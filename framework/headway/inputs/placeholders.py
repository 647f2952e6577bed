"""The site's own commands, as configurations name them: lists of words with placeholders such as ``{user}``.

No shell sees a command, and a value takes the place of its placeholder once: what a value holds is never
read again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


def check_command(name: str, words: Sequence[str], must: Sequence[str], may: Sequence[str] = ()) -> None:
    """Raise ValueError for a command with other placeholders, or without a program. No words: no command."""
    if not words:
        return
    found = {key for word in words for key in _PLACEHOLDER.findall(word)}
    known = ", ".join(f"{{{key}}}" for key in (*must, *may))
    if unknown := sorted(found.difference(must, may)):
        raise ValueError(f"{name}: expected the placeholders {known}, found {{{unknown[0]}}}")
    if missing := [key for key in must if key not in found]:
        raise ValueError(f"{name}: expected {{{missing[0]}}} in the command, found none")
    if not words[0] or _PLACEHOLDER.search(words[0]):
        raise ValueError(f"{name}: expected a program as the first word, found {words[0]!r}")
    if any("\0" in word for word in words):
        raise ValueError(f"{name}: words cannot hold a null character")


def filled(words: Sequence[str], **values: str) -> list[str]:
    """A command with its placeholders replaced, whole words or parts of a word."""
    return [_PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), word) for word in words]
