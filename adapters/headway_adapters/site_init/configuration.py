"""A configuration file with a comment beside each key."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import yaml

from headway.adapter.survey import SCHEMA, Place, Seen
from headway.cli.printable import printable

#: Where comments begin.
_COLUMN = 40


class Key(NamedTuple):
    """An option of the adapter, and what it means."""

    name: str
    value: Any
    comment: str


class _Pace(Protocol):
    """Options of an adapter that polls."""

    poll_interval: float
    command_timeout: float
    start_timeout: float


def pace(defaults: _Pace, start: str) -> list[Key]:
    """The keys that all polling adapters have. ``start``: what ``start_timeout`` waits for."""
    return [
        Key("poll_interval", defaults.poll_interval, "seconds between two looks"),
        Key("command_timeout", defaults.command_timeout, "seconds until a command counts as unanswered"),
        Key("start_timeout", defaults.start_timeout, f"seconds for {start}"),
    ]


def inline(value: Any) -> str:
    """A value in YAML, on one line."""
    dumped: str = yaml.safe_dump(
        value, default_flow_style=True, allow_unicode=True, width=10**9, sort_keys=False
    )
    text = dumped.removesuffix("...\n").strip()
    # Of texts, JSON's alone have no line breaks.
    return text if "\n" not in text else json.dumps(value)


def configuration(
    seen: Seen, adapter: str, keys: Sequence[Key], plugins: Sequence[tuple[Any, str]], place: Place
) -> str:
    """The file's text. ``keys``: the adapter's options beside the options that reach it, which replace them;
    ``plugins``: each with its comment."""
    reach = dict(seen.options)
    keys = [key if key.name not in reach else Key(key.name, reach.pop(key.name), key.comment) for key in keys]
    keys += [Key(name, value, "how it is reached") for name, value in reach.items()]
    lines = [
        f"# yaml-language-server: $schema={SCHEMA}",
        f"# headway beside {_said(seen.title)}, by `headway init`. README.md beside this file tells what "
        "to do next.",
        *_line("", "mode", "monitor", "monitor changes nothing; drive starts jobs"),
        "cluster:",
        f"  adapter: {adapter}",
        "  options:",
    ]
    for key in keys:
        lines += _line("    ", key.name, key.value, key.comment)
    lines.append("plugins:")
    for plugin, comment in plugins:
        lines += _padded("  ", f"- {_entry(plugin)}", comment)
    lines += _line("", "journal", place.journal, "every event and decision")
    lines += [
        "service:",
        *_line("  ", "socket", place.socket, "where users ask the daemon"),
        *_line("  ", "operators", [], "users that may command all jobs, besides root"),
    ]
    return "\n".join(lines) + "\n"


def _entry(plugin: Any) -> str:
    """A plugin's name, or its name and options without the outer braces."""
    if isinstance(plugin, str):
        return inline(plugin)
    ((name, options),) = plugin.items()
    return f"{inline(name)}: {inline(options)}"


def _line(indent: str, name: str, value: Any, comment: str) -> list[str]:
    return _padded(indent, f"{name}: {inline(value)}", comment)


def _padded(indent: str, text: str, comment: str) -> list[str]:
    """With the comment beside it, or above it if it is long."""
    line = f"{indent}{text}"
    if len(line) > _COLUMN:
        return [f"{indent}# {_said(comment)}", line]
    return [f"{line:<{_COLUMN}} # {_said(comment)}"]


def _said(text: str) -> str:
    return " ".join(printable(text).split())
