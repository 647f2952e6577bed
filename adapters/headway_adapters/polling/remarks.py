"""What users write about their jobs where the batch system has no word for it."""

from __future__ import annotations

import re

#: What begins with it is meant for headway: ``headway:dedicated,malleable``.
MARK = "headway:"
#: Characters of the rest that are handed on, as a job's attribute ``comment``, for plugins.
LONGEST = 1000
#: Where something else begins behind our words: a word with a colon.
_NEXT = re.compile(r"\s+(?=[A-Za-z][\w.-]*:)")


def remarks(text: str) -> tuple[list[str], str]:
    """Of what a user wrote the words that are meant for headway, and the rest."""
    if not text.startswith(MARK):
        return [], text.strip()[:LONGEST]
    ours, *rest = _NEXT.split(text[len(MARK) :], maxsplit=1)
    return ours.split(","), "".join(rest).strip()[:LONGEST]
