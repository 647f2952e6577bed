"""The hooks that a class implements, and what is wrong with a hook that it means to implement."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Collection, Iterable
from typing import Any

from headway.errors import UserError, nearest
from headway.hookspecs import PROJECT, HookSpecs

#: Questions of the hook ``explain``, and the methods of 0.1 that answered them.
EXPLAINED = {
    "placement": "why_not_placed",
    "prediction": "why_predicted",
    "no prediction": "why_not_predicted",
    "waiting": "why_waiting",
    "suspension": "why_suspended",
}


def hook_names() -> Iterable[str]:
    """Every hook that there is, in the order of :mod:`headway.hookspecs`."""
    return (name for name in vars(HookSpecs) if not name.startswith("_"))


def hooks_of(cls: type) -> Iterable[str]:
    """Names of the hooks that a plugin class implements."""
    return (name for name in hook_names() if is_marked(cls, name))


def marked(cls: type) -> list[str]:
    """Names of the methods of a class that are marked with ``@hookimpl``, be there such hooks or not."""
    return [name for name in dir(cls) if is_marked(cls, name)]


def unmarked(cls: type) -> list[str]:
    """The class's own methods that have the name of a hook and are not marked with ``@hookimpl``."""
    own = vars(cls)
    return [name for name in hook_names() if inspect.isfunction(own.get(name)) and not is_marked(cls, name)]


def check_hooks(cls: type, of: str) -> None:
    """Raise :class:`UserError` if a method is marked that is no hook, or a hook has no such argument.

    ``of`` leads the message: place and plugin."""
    known = list(hook_names())
    for name in marked(cls):
        if question := next((asked for asked, old in EXPLAINED.items() if old == name), None):
            raise UserError(
                f"{of} implements {name!r}, which is the hook 'explain' now, asked the question {question!r}"
            )
        if name not in known:
            raise UserError(f"{of} implements {name!r}, which is no hook.{nearest(name, known)}")
        _check_arguments(cls, name, of)


def warn_of_unmarked(cls: type, of: str, served: Collection[str]) -> None:
    """Warn the author of a class with hooks of its methods that are called like a hook and are not marked,
    except ``served``; ``of`` leads the message.

    It is no error: a migration handler has a method ``prepare`` that is no hook."""
    for name in unmarked(cls):
        if name not in served:
            text = f"{of}: its method {name!r} has the name of a hook and is not called: @hookimpl is missing"
            warn_author(cls, text, UserWarning)


def warn_author(cls: type, text: str, category: type[Warning]) -> None:
    """Warn the author of a plugin class; the warning shows the place of the class."""
    module = sys.modules.get(cls.__module__)
    try:
        file, line = inspect.getsourcefile(cls) or cls.__module__, inspect.getsourcelines(cls)[1]
    except (OSError, TypeError):  # Its source is not there.
        file, line = cls.__module__, 1
    told = vars(module).setdefault("__warningregistry__", {}) if module else None
    warnings.warn_explicit(text, category, file, line, cls.__module__, told)


def _check_arguments(cls: type, hook: str, of: str) -> None:
    function = getattr(cls, hook)
    if not inspect.isfunction(function):
        return
    _, *has = inspect.signature(getattr(HookSpecs, hook)).parameters
    _, *taken = inspect.signature(function).parameters or ("self",)
    for argument in taken:
        if argument not in has:
            raise UserError(f"{of}: its hook {hook!r} has no argument {argument!r}.{nearest(argument, has)}")


def is_marked(cls: Any, name: str) -> bool:
    """Whether a class, or a plugin, has a method of that name with ``@hookimpl``."""
    return hasattr(getattr(cls, name, None), f"{PROJECT}_impl")
