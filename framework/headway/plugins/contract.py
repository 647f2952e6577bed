"""What the framework reads from a plugin by name, beside its hooks: all of it here.

``traits``
    its :class:`~headway.plugins.traits.Traits`.
``Options``
    a pydantic model of its options; the plugin is made as ``Plugin(options)``.
``name``
    what configurations call a plugin of a file; an installed one has its entry point's name.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, get_args

import pydantic

from headway.decisions import Decision
from headway.errors import UserError
from headway.events import Event
from headway.plugins.old_names import old_traits
from headway.plugins.traits import Required, Traits


def traits_of(plugin: Any) -> Traits:
    """The traits of a plugin or of its class; the defaults where it says none."""
    found: Traits | None = getattr(plugin, "traits", None)
    return old_traits(plugin) if found is None else found


def options_model(cls: type) -> type[pydantic.BaseModel] | None:
    """The model of a class's options; None: it has none."""
    found: type[pydantic.BaseModel] | None = getattr(cls, "Options", None)
    return found


def name_of(cls: type, default: str) -> str:
    """What configurations call a class that a file has."""
    return str(getattr(cls, "name", default))


def check_traits(plugin: Any, of: str, hooks: Collection[str]) -> None:
    """Raise :class:`UserError` where the traits of a plugin are none, or do not go with its ``hooks``; ``of``
    leads the message."""
    traits = traits_of(plugin)
    if not isinstance(traits, Traits):
        raise UserError(f"{of}: expected a headway.plugins.Traits as `traits`, found {traits!r}")
    for name, kind in (("needs", Decision), ("uses", Decision), ("gives", Decision), ("observes", Event)):
        found = getattr(traits, name)
        if found is not None and not _types(found, kind):
            raise UserError(
                f"{of}: expected a tuple of {kind.__name__} types as trait `{name}`, found {found!r}"
            )
    known = get_args(Required)
    if unknown := sorted(set(traits.requires) - set(known)):
        raise UserError(
            f"{of}: expected of {', '.join(known)} as trait `requires`, found {', '.join(unknown)}"
        )
    if traits.checkpoint == "promises" and "promised" not in hooks:
        raise UserError(
            f"{of}: its checkpoint holds promises: expected the hook `promised`, which counts how often they "
            "have changed, found none"
        )


def _types(found: Any, kind: Any) -> bool:
    return isinstance(found, tuple) and all(isinstance(one, type) and issubclass(one, kind) for one in found)
