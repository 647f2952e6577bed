"""Import paths of 0.1 that plugins may have: they work for one more version, with a warning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

#: The path of 0.1 -> where it is now.
MOVED = {
    "headway.bundles": "headway.model.bundles",
    "headway.durations": "headway.inputs.durations",
    "headway.estimates": "headway.experiment.estimates",
    "headway.migration": "headway.adapter.migration",
    "headway.nodes": "headway.resources",
    "headway.parts": "headway.model.parts",
    "headway.profile": "headway.resources.profile",
    "headway.replay": "headway.daemon.replay",
    "headway.requests": "headway.decisions",
    "headway.sharing": "headway.workload.sharing",
    "headway.strict_yaml": "headway.inputs.strict_yaml",
    "headway.user_side": "headway.adapter.user_side",
}


class _OldPaths:
    """Finds a module of :data:`MOVED` under its new name.

    It is a finder and a loader by its methods alone, since :mod:`importlib.abc` takes longer to load than the
    rest of this package."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        loader: Any = self
        return ModuleSpec(fullname, loader) if fullname in MOVED else None

    def create_module(self, spec: ModuleSpec) -> None:
        """An ordinary module."""

    def exec_module(self, module: ModuleType) -> None:
        """Give it the names of the module that it stands for."""
        now = MOVED[module.__name__]
        text = f"{module.__name__} is {now} now; the old path ends with 0.3"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        names = vars(import_module(now)).items()
        vars(module).update((name, value) for name, value in names if not name.startswith("__"))


def serve_old_paths() -> None:
    """From now on the old paths can be imported."""
    if not any(isinstance(finder, _OldPaths) for finder in sys.meta_path):
        sys.meta_path.append(_OldPaths())
