"""``KEY=VALUE`` settings on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway.errors import UserError


def parsed_settings(settings: Sequence[str], option: str = "--set") -> dict[str, Any]:
    """``KEY=VALUE`` settings, their values read as YAML; :class:`UserError` for what is none."""
    from headway.strict_yaml import parse_yaml

    found: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise UserError(f"{option}: expected KEY=VALUE, found {setting!r}")
        if key in found:
            raise UserError(f"{option}: {key} is given twice")
        try:
            found[key] = parse_yaml(value, option)
        except UserError as error:
            raise UserError(f"{option}: {key}: expected a value in YAML, found {value!r}") from error
    return found
