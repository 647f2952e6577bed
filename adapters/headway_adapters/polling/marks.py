"""What a user's comment says of a job that the batch system has no word for, beyond single words.

``headway:`` is followed by words with commas between. Here: ``job=NAME,stage=2`` with ``reward=10``,
``priority=120`` and ``length=300`` (seconds that it is expected to take) if wanted: a task of a job of
stages (attribute ``window``); ``moldable`` or ``moldable=2``: the job may be started on fewer processors, at
least so many (attribute ``moldable``). What is damaged is kept as it is written, so that whoever reads the
attribute can say what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

#: Words of a task, and what they hold.
_TASK = {"job": str, "stage": int, "reward": float, "priority": float, "length": float}


def marks(words: Iterable[str]) -> dict[str, Any]:
    """The attributes that the words of a comment stand for."""
    found: dict[str, Any] = {}
    task: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.strip().partition("=")
        if name == "moldable":
            found["moldable"] = _read(int, text) if equals else True
        elif equals and name in _TASK:
            task[name] = _read(_TASK[name], text)
    if "job" in task or "stage" in task:
        found["window"] = task
    return found


def _read(kind: type, text: str) -> Any:
    try:
        return kind(text)
    except ValueError:
        return text
