"""YAML as people write it by hand: a key that is there twice is refused, and errors say where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from headway.errors import UserError


class _Loader(yaml.SafeLoader):
    """Refuses a key that is there twice, of which YAML would silently keep the last, and says where a value
    stands that looks like a date or a number and is none."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, KeyError, AttributeError) as error:
            if not isinstance(node, yaml.ScalarNode):
                raise
            kind = node.tag.rpartition(":")[2]
            problem = f"{node.value!r:.60} is no {kind}: {error}"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from error

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: dict[str, int] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                line = key.start_mark.line + 1
                if key.value in seen:
                    problem = f"the key {key.value!r} is there already, in line {seen[key.value]}"
                    raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
                seen[key.value] = line
        return super().construct_mapping(node, deep)


def parse_yaml(text: str, source: str) -> Any:
    """What the text says; :class:`UserError`, led by ``source``, with line and column if it is no YAML."""
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{source}, line {mark.line + 1}, column {mark.column + 1}" if mark else source
        raise UserError(f"{place}: not valid YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise UserError(f"{source}: not valid YAML: {error}") from error
    except RecursionError as error:
        raise UserError(f"{source}: not valid YAML: it is nested too deeply") from error


def read_mapping(path: Path, what: str, keys: str) -> dict[Any, Any]:
    """What a file of YAML says; ``what`` it is and the ``keys`` that it should have, for messages.

    Raises :class:`UserError` for a file that cannot be read, or says something else.
    """
    try:
        data = parse_yaml(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise UserError(f"{path}: {what} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not valid YAML: {error}") from error
    if not isinstance(data, dict):
        raise UserError(f"{path}: expected keys {keys}; found {type(data).__name__}")
    return data
