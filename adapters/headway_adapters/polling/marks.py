"""What a user's comment says of a job that the batch system has no word for, beyond single words.

``headway:`` is followed by words with commas between. Here: ``job=NAME,stage=2`` with ``reward=10``,
``priority=120`` and ``length=300`` (seconds that it is expected to take) if wanted: a task of a job of stages
(attribute ``window``); ``moldable`` or ``moldable=2``: the job may be started on fewer processors, at least
so many (attribute ``moldable``); ``deadline=2026-11-24T06:00`` (UTC) or absolute seconds (attribute
``deadline``); ``bytes=5e9`` to protect, and ranges of security levels, such as ``encryption=0.7-1.0``
(attribute ``security``); ``switches=2`` or ``switches=2@10m``: its nodes are to lie on at most so many
switches, for which it waits so long (attribute ``switches``, as written). What is damaged is kept as it is
written, so that a plugin that reads the attribute can say what is wrong; so are ``nan`` and ``inf``, which
are no numbers of anything here. A word that the configuration names as an attribute of jobs, such as
``saves-itself``, is that attribute: true, or what stands behind its ``=``. Behind ``data=era5,grid7`` all
words that are nothing else are names of datasets. ``routed=north:17/3f9a`` is headway's own: it stands at a
copy of a job that came from another cluster. Words that nothing here reads are the attribute ``unread``: a
user may have meant one of ours.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from typing import Any

from headway.model.sites import DATA

_SERVICES = ("encryption", "integrity", "authentication")
#: Words of a task, and what they hold.
_TASK = {"job": str, "stage": int, "reward": float, "priority": float, "length": float}


#: What may be written.
WORDS = ("dedicated", "malleable", "moldable", "switches", "deadline", "bytes", "routed", *_SERVICES, *_TASK)
#: A job's attribute: words that nothing here reads.
UNREAD = "unread"


def is_mark(word: str, named: Collection[str] = ()) -> bool:
    """Whether a comment that begins with this word speaks of a job in our words, or in ``named`` ones."""
    return _name(word) in WORDS or _name(word) in named


def asks_for_protection(words: Iterable[str]) -> bool:
    """Whether a word of a deadline or of security levels is among them: then the others are meant for us too,
    and one that is misspelt must not go unnoticed."""
    return any("=" in word and _name(word) in ("deadline", "bytes", *_SERVICES) for word in words)


def _name(word: str) -> str:
    return word.strip().partition("=")[0]


def marks(words: Iterable[str], named: Collection[str] = ()) -> dict[str, Any]:
    """The attributes that the words of a comment stand for; ``named`` are the attributes that the
    configuration names besides."""
    found: dict[str, Any] = {}
    task: dict[str, Any] = {}
    security: dict[str, Any] = {}
    words = _with_datasets(words, named) if DATA in named else list(words)
    unread = [word.strip() for word in words if word.strip() and not is_mark(word, named)]
    for word in words:
        name, equals, text = word.strip().partition("=")
        if name == "moldable":
            found["moldable"] = _read(int, text) if equals else True
        elif equals and name == "deadline":
            found["deadline"] = _moment(text)
        elif equals and name == "bytes":
            security["bytes"] = _read(float, text)
        elif equals and name in _SERVICES:
            security[name] = _range(text)
        elif name == "switches" and equals:
            found["switches"] = text
        elif equals and name in _TASK:
            task[name] = _read(_TASK[name], text)
        elif name in named and name not in WORDS:
            found[name] = text if equals else True
    if "job" in task or "stage" in task:
        found["window"] = task
    if security:
        found["security"] = security
    if unread:
        found[UNREAD] = unread
    return found


def _with_datasets(words: Iterable[str], named: Collection[str]) -> list[str]:
    """The words, in which the names of datasets that stand behind ``data=`` are a single word."""
    found: list[str] = []
    for word in words:
        if (
            found
            and _name(found[-1]) == DATA
            and word.strip()
            and "=" not in word
            and not is_mark(word, named)
        ):
            found[-1] += f",{word.strip()}"
        else:
            found.append(word)
    return found


def _moment(text: str) -> Any:
    """Absolute seconds; as it is written where it is no moment."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return _read(float, text)
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


def _range(text: str) -> Any:
    """Two levels, or one that is both; as it is written where it is neither."""
    low, _, high = text.partition("-")
    levels = [_read(float, low), _read(float, high or low)]
    return text if any(isinstance(level, str) for level in levels) else levels


def _read(kind: type, text: str) -> Any:
    try:
        value = kind(text)
        return value if isinstance(value, str) or math.isfinite(value) else text
    except (ValueError, OverflowError):
        return text
