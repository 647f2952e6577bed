"""What the framework reads from a plugin by name, beside its hooks: all of it here.

``traits``
    its :class:`~headway.plugins.traits.Traits`.
``Options``
    a pydantic model of its options; the plugin is made as ``Plugin(options)``.
``name``
    what configurations call a plugin of a file; an installed plugin has its entry point's name.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pydantic

from headway.errors import UserError
from headway.plugins.old_names import old_traits
from headway.plugins.traits import TraitError, Traits

#: Names that are not read -> the name that is meant.
_MISSPELT = {"trait": "traits", "option": "Options", "options": "Options"}


def traits_of(plugin: Any) -> Traits:
    """The traits of a plugin or of its class; the defaults where it says none. Raises :class:`TraitError`
    where they are no record."""
    found: Any = getattr(plugin, "traits", None)
    if found is None:
        return old_traits(plugin)
    if not isinstance(found, Traits):
        kind = plugin if isinstance(plugin, type) else type(plugin)
        raise TraitError(
            f"plugin class {kind.__name__}: expected a headway.plugins.Traits as `traits`, such as "
            f"Traits(needs=(...)), found {found!r}"
        )
    return found


def options_model(cls: type) -> type[pydantic.BaseModel] | None:
    """The model of a class's options; None: it has none."""
    found: type[pydantic.BaseModel] | None = getattr(cls, "Options", None)
    return found


def name_of(cls: type, default: str) -> str:
    """What configurations call a class that a file has."""
    return str(getattr(cls, "name", default))


def check_attributes(cls: type, of: str) -> None:
    """Raise :class:`UserError` where a class has its traits or options under a name that is not read; ``of``
    leads the message."""
    for name, meant in _MISSPELT.items():
        if isinstance(getattr(cls, name, None), type | Traits | pydantic.BaseModel):
            raise UserError(f"{of}: its attribute `{name}` has no effect. Did you mean `{meant}`?")


def check_traits(plugin: Any, of: str, hooks: Collection[str]) -> None:
    """Raise :class:`UserError` where the traits of a plugin are none, or do not go with its ``hooks``; ``of``
    leads the message."""
    if traits_of(plugin).checkpoint == "promises" and "promised" not in hooks:
        raise UserError(
            f"{of}: its checkpoint holds promises: expected the hook `promised`, which counts how often they "
            "have changed, found none"
        )
