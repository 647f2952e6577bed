"""What ``headway init --json`` prints."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from headway.adapter import Check


class PoolFound(msgspec.Struct, frozen=True):
    """A partition or queue."""

    name: str
    nodes: int
    #: Nodes that take jobs now.
    usable: int
    processors: int
    #: Generic resources of its nodes, such as GPUs.
    resources: Mapping[str, int]
    #: The longest limit of a job, seconds; null: none.
    max_walltime: float | None
    #: The batch system starts its jobs.
    open: bool
    #: headway takes it.
    managed: bool
    #: Pools that share nodes with it.
    shares_nodes_with: tuple[str, ...]


class Surveyed(msgspec.Struct, frozen=True):
    """A batch system, and the files that were written for it."""

    #: Name of the adapter.
    system: str
    title: str
    cluster: str
    #: The user whose commands asked.
    asked_as: str
    #: In the batch system's order, the default first.
    pools: tuple[PoolFound, ...]
    #: In the batch system's words.
    settings: Mapping[str, str]
    remarks: tuple[str, ...]
    #: What ``headway check`` says of the configuration.
    checks: tuple[Check, ...]
    folder: str
    files: tuple[str, ...]
