"""Names of a package that are imported when they are first asked for.

A room tells its names in one place, its ``__init__``. Whoever wants one of them loads the module that has it,
and not all modules of the room: most commands need a few, and a process starts as fast as it imports.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def late(package: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of ``package`` (PEP 562).

    ``names``: the names of each module, with blanks between them. A module is relative to the package
    (``.calls``), or whole. Type checkers read the same imports under ``TYPE_CHECKING``.
    A name that is also one of the package's modules cannot be late: Python would give the module.
    """
    where = {name: module for module, told in names.items() for name in told.split()}

    def __getattr__(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(where[name], package), name)
        # Asked once: from now on it is an ordinary name of the package.
        setattr(sys.modules[package], name, found)
        return found

    return __getattr__
