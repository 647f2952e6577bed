"""Whether a partition takes all the jobs of another one, as far as ``scontrol show partition`` tells. Pure.

What Slurm 22.05 does with a job that an administrator moves where it may not be, as seen: it refuses the
move (AllowGroups, AllocNodes, RootOnly, ReqResv, MaxCPUsPerNode, MaxMemPerNode), or moves the job and lets it
wait for ever (MaxNodes, MinNodes, MaxTime: *PartitionNodeLimit*, *PartitionTimeLimit*).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from headway_adapters.slurm import hostlist
from headway_adapters.slurm.reader.partitions import Partition

#: Lists of names that are admitted, and the list, if there is one, of names that are not.
_ALLOWED = {"AllowGroups": "", "AllowAccounts": "DenyAccounts", "AllowQos": "DenyQos", "AllocNodes": ""}


def narrower(other: Partition, own: Partition) -> str:
    """What keeps jobs of the partition ``own`` out of ``other``; "" if nothing does."""
    return ", ".join([*_people(other, own), *_flags(other, own), *_sizes(other, own)])


def _people(other: Partition, own: Partition) -> Iterator[str]:
    for allow, deny in _ALLOWED.items():
        taken, mine = _names(other, allow), _names(own, allow)
        if taken and not (mine and mine <= taken):
            yield f"{allow}={other.bounds[allow]}"
        out = _names(other, deny)
        # A name that is not admitted here either need not be admitted there.
        if out and not (out <= _names(own, deny) or (mine and mine.isdisjoint(out))):
            yield f"{deny}={other.bounds[deny]}"


def _names(partition: Partition, key: str) -> frozenset[str]:
    text = partition.bounds.get(key, "")
    try:
        return frozenset(hostlist.expand(text)) if key == "AllocNodes" and text else _words(text)
    except ValueError:
        return _words(text)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split(",")) if text else frozenset()


def _flags(other: Partition, own: Partition) -> Iterator[str]:
    for key in ("RootOnly", "ReqResv"):
        if key in other.bounds and key not in own.bounds:
            yield f"{key}={other.bounds[key]}"


def _sizes(other: Partition, own: Partition) -> Iterator[str]:
    if other.max_walltime < own.max_walltime:
        yield f"MaxTime of {other.max_walltime / 60:.0f} minutes"
    for key, most in other.most.items():
        mine = own.most.get(key, math.inf)
        if key == "MaxNodes" and own.nodes:
            mine = min(mine, len(own.nodes))
        if most < mine:
            yield f"{key}={most}"
    if other.least_nodes > max(own.least_nodes, 1):
        yield f"MinNodes={other.least_nodes}"
