"""What the reader must know about the cluster's configuration and ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Site:
    """What the reader must know about the cluster's configuration and ours."""

    managed: tuple[str, ...]
    hold_marker: str = "hold"
    array_limit: int = 1000
    unlimited_walltime: float = 365 * 86400.0
    #: Slurm gives memory out as it gives processors out.
    memory_managed: bool = True
    #: Every job gets whole nodes (select/linear).
    whole_nodes: bool = False
    #: Jobs get whole cores.
    whole_cores: bool = True
    #: headway rules sleep: a sleeping node is in order.
    power: bool = False
    #: Slurm's backfill scheduler, which alone starts heterogeneous jobs, looks around often enough for that.
    backfills: bool = True
    #: Slurm starts no job without a QOS.
    needs_qos: bool = False
    #: Partition of background jobs -> the partition that they belong to.
    behind: Mapping[str, str] = field(default_factory=dict)
    #: Attributes of jobs that the configuration names, and that users can say in a comment.
    words: frozenset[str] = frozenset()
