"""``scontrol -o show partition`` -> partitions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from headway.errors import Failure
from headway.model import PoolBounds, PoolDescription
from headway_adapters.slurm import values
from headway_adapters.slurm.reader.documents import MIB, node_names, records

#: What bounds which jobs may be in a partition, and how each bound says that it does not.
_BOUNDS = {
    "AllowGroups": "ALL", "AllowAccounts": "ALL", "DenyAccounts": "", "AllowQos": "ALL", "DenyQos": "",
    "AllocNodes": "ALL", "RootOnly": "NO", "ReqResv": "NO",
}  # fmt: skip

#: What bounds a job's size there.
_MOST = ("MaxNodes", "MaxCPUsPerNode", "MaxMemPerNode", "MaxMemPerCPU")


@dataclass(frozen=True)
class Partition:
    """A partition, as far as we need it. Times are seconds; ``math.inf``: no limit."""

    name: str
    nodes: tuple[str, ...] = ()
    max_walltime: float = math.inf
    default_walltime: float | None = None
    open: bool = True
    #: Its jobs get whole nodes.
    exclusive: bool = False
    #: How many jobs Slurm puts on each processor whether they wish it or not (``OverSubscribe=FORCE:2``).
    forced: int = 1
    #: The jobs that may be in it, if not all: ``{"AllowGroups": "physics"}``.
    bounds: Mapping[str, str] = field(default_factory=dict)
    #: How large a job there may be at most, where that is bounded: ``{"MaxNodes": 4}``; memory in MB.
    most: Mapping[str, int] = field(default_factory=dict)
    #: On how many nodes a job there is at least.
    least_nodes: int = 0
    #: The QoS whose limits hold for all jobs there; "": none.
    qos: str = ""
    #: Slurm serves partitions of a higher one first.
    tier: int = 1

    def pool(self, lifted: tuple[tuple[str, str], ...] = ()) -> PoolDescription:
        """Its pool; ``lifted``: of QOS (:func:`headway_adapters.slurm.reader.bounded.read_lifted`)."""
        limit = 0.0 if math.isinf(self.max_walltime) else self.max_walltime
        bounds: PoolBounds | None = PoolBounds(
            max_walltime=limit,
            min_nodes=self.least_nodes if self.least_nodes > 1 else 0,
            max_nodes=self.most.get("MaxNodes", 0),
            max_processors_per_node=self.most.get("MaxCPUsPerNode", 0),
            max_memory_per_node=self.most.get("MaxMemPerNode", 0) * MIB,
            max_memory_per_processor=self.most.get("MaxMemPerCPU", 0) * MIB,
        )
        if bounds == PoolBounds():
            bounds = None
        elif bounds is not None and lifted:
            bounds = replace(bounds, lifted=lifted)
        return PoolDescription(
            name=self.name, max_walltime=limit, open=self.open, bounds=bounds, priority_tier=self.tier
        )


def read_partitions(text: str) -> dict[str, Partition]:
    """``scontrol -o show partition``."""
    found: dict[str, Partition] = {}
    for record in records(text, "PartitionName"):
        name = record["PartitionName"]
        try:
            listed = node_names(record.get("Nodes", ""))
        except Failure:
            # Each node names its partitions itself.
            listed = ()
        limit = values.minutes_text(record.get("MaxTime", ""))
        default = values.minutes_text(record.get("DefaultTime", ""))
        found[name] = Partition(
            name=name,
            nodes=listed,
            max_walltime=math.inf if limit is None else limit,
            default_walltime=default,
            open=record.get("State", "UP").upper() == "UP",
            exclusive=record.get("OverSubscribe", "").upper() == "EXCLUSIVE",
            forced=_forced(record.get("OverSubscribe", "")),
            bounds={key: record[key] for key, none in _BOUNDS.items() if record.get(key, none) != none},
            most={key: int(record[key]) for key in _MOST if record.get(key, "").isdecimal()},
            least_nodes=int(least) if (least := record.get("MinNodes", "")).isdecimal() else 0,
            qos="" if (qos := record.get("QoS", "")) == "N/A" else qos,
            tier=int(tier) if (tier := record.get("PriorityTier", "")).isdecimal() else 1,
        )
    return found


def _forced(text: str) -> int:
    """``FORCE:2`` -> 2; ``FORCE`` is 4 by slurm.conf's manual; 1 for everything else."""
    word, _, count = text.upper().partition(":")
    if word != "FORCE":
        return 1
    return int(count) if count.isdecimal() else 4


def told(partitions: Mapping[str, Partition], managed: Iterable[str]) -> frozenset[str]:
    """Of which partitions headway tells the scheduler: the managed partitions that are there, and the
    partitions that share nodes with them."""
    there = set(managed) & partitions.keys()
    nodes = {node for name in there for node in partitions[name].nodes}
    shared = {name for name, partition in partitions.items() if nodes.intersection(partition.nodes)}
    return frozenset(there | shared)
