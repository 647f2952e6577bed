"""``KEY=VALUE`` settings: how commands are given the options of a model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from headway.errors import UserError


def parsed_settings(settings: Sequence[str], option: str = "--set") -> dict[str, Any]:
    """``KEY=VALUE`` settings, their values read as YAML; :class:`UserError` for what is none."""
    from headway.inputs.strict_yaml import parse_yaml

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


def setting_texts(options: Mapping[str, Any]) -> list[str]:
    """Options as ``KEY=VALUE`` settings, of which :func:`parsed_settings` makes the same options again."""
    return [f"{key}={_value_text(value)}" for key, value in options.items()]


def _value_text(value: Any) -> str:
    if isinstance(value, str) and _is_plain(value):
        return value
    # JSON is YAML, on one line.
    return json.dumps(value, ensure_ascii=False)


def _is_plain(text: str) -> bool:
    """Whether YAML reads the text as itself."""
    from headway.inputs.strict_yaml import parse_yaml

    try:
        return bool(parse_yaml(text, "--set") == text)
    except UserError:
        return False
