"""What a plugin refuses of the options that were read for it is left out, and no more than that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pydantic

from headway.errors import HeadwayError
from headway.plugins import Catalogue, PluginConfig, Plugins

#: So often something is left out of one plugin's options before the plugin is.
_MOST = 1000


def accepted(
    name: str, options: Mapping[str, Any], catalogue: Catalogue
) -> tuple[dict[str, Any] | None, list[str]]:
    """The options without the values that are refused, and what is said of each of these.

    None: the plugin cannot be made with what is left, so it is to be left out.
    """
    kept, said = _copied(options), []
    for _ in range(_MOST):
        try:
            Plugins.load([PluginConfig(name, kept, name)], catalogue, None)
        except HeadwayError as error:
            place = _refused(catalogue.get(name), kept)
            if place is None or not _leave_out(kept, place):
                said.append(
                    f"the plugin {name} refuses the settings that were read, so they are left out: {error}"
                )
                return None, said
            said.append(f"{'.'.join(map(str, place))} is refused by the plugin {name} and left out: {error}")
        else:
            return kept, said
    said.append(f"more than {_MOST} values for the plugin {name} are refused, so the plugin is left out")
    return None, said


def _copied(value: Any) -> Any:
    """Tables anew, so that what is left out of these is there elsewhere."""
    return {key: _copied(inner) for key, inner in value.items()} if isinstance(value, Mapping) else value


def _refused(plugin: type, options: Mapping[str, Any]) -> tuple[str | int, ...] | None:
    """Where the first value is that is refused by itself; None if it is all of them together."""
    model = getattr(plugin, "Options", None)
    if model is None:
        return None
    try:
        model.model_validate(dict(options), context={"beside": None, "files": None})
    except pydantic.ValidationError as error:
        return next((item["loc"] for item in error.errors() if item["loc"]), None)
    return None


def _leave_out(options: dict[str, Any], place: tuple[str | int, ...]) -> bool:
    """Remove what is there, as deep as there are tables; False if nothing is."""
    table: Any = options
    for at, key in enumerate(place):
        inner = table.get(key) if isinstance(table, dict) else None
        last = at == len(place) - 1 or not isinstance(inner, dict)
        if isinstance(table, dict) and key in table and last:
            del table[key]
            return True
        table = inner
    return False
