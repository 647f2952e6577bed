"""Traces of our own that come with headway, so that a command can be tried as it stands.

``sample:NAME`` stands for one wherever a trace is read. Each was drawn by ``headway generate``, as its header
says, and a test draws it again.
"""

from __future__ import annotations

import os
from pathlib import Path

from headway.errors import UserError, nearest

PREFIX = "sample:"
_ENDING = ".swf.gz"


def names() -> list[str]:
    """What stands for a sample: ``sample:fortnight``, ..."""
    files = Path(__file__).parent.glob(f"*{_ENDING}")
    return sorted(PREFIX + file.name.removesuffix(_ENDING) for file in files)


def located(path: str | os.PathLike[str]) -> Path:
    """The file of a path whose last part is ``sample:NAME``; any other path, and one of a file that is there,
    as it is. Raises :class:`UserError` for a sample that does not exist."""
    found = Path(path)
    if not found.name.startswith(PREFIX) or found.exists():
        return found
    if found.name not in names():
        raise UserError(f"{found.name}: no such sample comes with headway.{nearest(found.name, names())}")
    return Path(__file__).with_name(found.name.removeprefix(PREFIX) + _ENDING)
