"""Which plugins are enabled, and with which options: as a configuration says it, and under one name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class PluginConfig:
    """One enabled plugin: its name, its options, and where that was written."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    #: Such as ``site.yaml: plugins[2]``; leads error messages.
    where: str = "plugins"
    #: The folder of the file where that was written. Options find it as ``beside`` in pydantic's
    #: validation context, so that files that they name can be relative to it.
    beside: Path | None = None


@dataclass(frozen=True)
class Preset:
    """Several plugins under one name (entry point group ``headway.presets``).

    It is enabled like a plugin; options that are given with it go to its first plugin.
    """

    summary: str
    #: Names and options, in order.
    plugins: tuple[tuple[str, Mapping[str, Any]], ...]
    paper: str = ""
