"""Classes from a Python file that a command names: ``--plugin FILE.py``, ``--adapter FILE.py``."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from pathlib import Path
from types import ModuleType

from headway.errors import UserError


def load_file(path: Path, option: str) -> ModuleType:
    """Run a Python file as a module of its own; ``option`` names it, such as ``--plugin``.

    Raises :class:`UserError`, led by ``option`` and file, if there is no such file or it does not load.
    """
    if not path.is_file():
        raise UserError(f"{option} {path}: expected a Python file, found no such file")
    name = f"headway_{option.lstrip('-')}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UserError(f"{option} {path}: expected a Python file with the ending .py")
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        # A daemon goes on with what it has.
        if before is not None:
            sys.modules[name] = before
        # What the file built was refused, with a sentence for a person; or Python's own error.
        why = error if isinstance(error, UserError) else f"does not load: {type(error).__name__}: {error}"
        raise UserError(f"{option} {path}{_line_in(error, path)}: {why}") from error
    return module


def own_classes(module: ModuleType) -> list[type]:
    """The classes that a module defines itself, by name."""
    members = inspect.getmembers(module, inspect.isclass)
    return [cls for _, cls in members if cls.__module__ == module.__name__]


def _line_in(error: BaseException, path: Path) -> str:
    if isinstance(error, SyntaxError) and error.lineno:
        return f", line {error.lineno}"
    here = path.resolve()
    frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).resolve() == here]
    return f", line {frames[-1].lineno}" if frames else ""
