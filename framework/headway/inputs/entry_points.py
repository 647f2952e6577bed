"""What installed packages bring, by entry point."""

from __future__ import annotations

import importlib.metadata
import sys
from functools import cache
from typing import Any


def entry_points(group: str) -> importlib.metadata.EntryPoints:
    """The entry points of a group.

    Every package's metadata is read once in a process, since a command asks for several groups.
    """
    found: importlib.metadata.EntryPoints = _all(tuple(sys.path)).select(group=group)
    return found


@cache
def _all(path: tuple[str, ...]) -> Any:
    """Those of the packages on this path of modules, in what this version of Python holds them."""
    return importlib.metadata.entry_points()
