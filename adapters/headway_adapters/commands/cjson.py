"""JSON as the C library of PBS and of LSF prints it: tabs, one member a line, arrays on one line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def as_json(value: Any, depth: int = 0) -> str:
    """A value of maps, lists, texts and numbers."""
    if isinstance(value, Mapping):
        inner = "\t" * (depth + 1)
        rows = [f"{inner}{_text(key)}:\t{as_json(v, depth + 1)}" for key, v in value.items()]
        return "{\n" + ",\n".join(rows) + ("\n" if rows else "") + "\t" * depth + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(as_json(entry, depth + 1) for entry in value) + "]"
    return _text(value) if isinstance(value, str) else json.dumps(value)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
