"""What users write about their jobs where the batch system has no word for it."""

from __future__ import annotations

import re

from headway_adapters.polling.words import Unfit, matching

#: What begins with it is meant for headway: ``headway:dedicated,malleable``.
MARK = "headway:"
#: What is said to a job stands behind what its user wrote, as ``headway-KEY:VALUE``.
_NOTE = re.compile(r"(?:^|\s)headway-([a-z]+):(\S*)")
#: Characters of the rest that are handed on, as a job's attribute ``comment``, for plugins.
LONGEST = 1000
_KEY = re.compile(r"[a-z]{1,20}")
_VALUE = re.compile(r"[A-Za-z0-9=,._/:-]{1,500}")
#: Stands for bytes that are no UTF-8.
_UNREAD = "\N{REPLACEMENT CHARACTER}"
#: A job's attribute: why nothing can be noted at it.
CANNOT_BE_TOLD = "cannot_be_told"
#: Where something else begins behind our words: a word with a colon.
_NEXT = re.compile(r"\s+(?=[A-Za-z][\w.-]*:)")


def remarks(text: str) -> tuple[list[str], str]:
    """Of what a user wrote the words that are meant for headway, and the rest."""
    if not text.startswith(MARK):
        return [], text.strip()[:LONGEST]
    ours, *rest = _NEXT.split(text[len(MARK) :], maxsplit=1)
    return ours.split(","), "".join(rest).strip()[:LONGEST]


def noted(text: str) -> tuple[str, dict[str, str]]:
    """What a user wrote, and the notes behind it, of which the last of a key counts."""
    return _NOTE.sub("", text).strip(), dict(_NOTE.findall(text))


def unwritable(text: str, but: str = "") -> str:
    """Why what a user wrote could come out otherwise if it is written again; "" if it would not. ``but``:
    characters that do not come back either. Notes behind it do not count towards its length."""
    if len(text) > LONGEST and (theirs := len(noted(text)[0])) > LONGEST:
        return f"its comment has {theirs} characters, and headway can rewrite at most {LONGEST}"
    for character in text:
        if not character.isprintable() or character == _UNREAD or character in but:
            return f"its comment has {character!r} in it, with which it cannot be written again"
    return ""


def with_note(text: str, key: str, value: str) -> str:
    """The text with the note, in place of an earlier one of that key.

    Raises :class:`headway_adapters.polling.words.Unfit` for what cannot stand in a command.
    """
    matching(key, _KEY, "the key of a note")
    matching(value, _VALUE, "a note's value")
    if why := unwritable(text):
        raise Unfit(why)
    rest, notes = noted(text)
    return " ".join(
        [*([rest] if rest else []), *(f"headway-{k}:{v}" for k, v in {**notes, key: value}.items())]
    )
