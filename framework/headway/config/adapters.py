"""The installed adapters, and which of them a configuration names."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import pydantic

from headway.config.section import Section
from headway.errors import UserError, nearest

ADAPTERS = "headway.adapters"


class ClusterConfig(Section):
    """Which batch system, and how to reach it."""

    adapter: str = pydantic.Field(default="emulated", description="name of the adapter: slurm, emulated, ...")
    options: dict[str, Any] = pydantic.Field(default_factory=dict, description="the adapter's own options")


def adapter_names() -> list[str]:
    """The names of the installed adapters."""
    return sorted(_adapters())


@cache
def _adapters() -> dict[str, EntryPoint]:
    """The installed adapters by name: found once, since each emulation asks."""
    return {entry.name: entry for entry in entry_points(group=ADAPTERS)}


def adapter_class(name: str, where: str = "cluster.adapter") -> Any:
    """The adapter class of that name; :class:`UserError` with the nearest names if there is none."""
    found = _adapters()
    if name not in found:
        raise UserError(f"{where}: no adapter is called {name!r}.{nearest(name, found)}")
    return found[name].load()
