"""Partitions that share nodes, and nodes of no partition: what a dry run, with all nodes in one pool, has
otherwise.
"""

from __future__ import annotations

from headway_adapters.site_import.found import Imported
from headway_adapters.site_import.slurm_files import Record, SlurmFiles
from headway_adapters.slurm import hostlist


def tell_of_overlaps(read: SlurmFiles, default: Record | None, found: Imported) -> None:
    """Remark the partitions that share nodes with earlier ones, and nodes that are in none."""
    if default is None or not read.nodes:
        return
    everywhere = frozenset().union(*(_expanded(record["nodename"]) for record, _ in read.nodes))
    pool = default[0]["partitionname"]
    earlier: dict[str, frozenset[str]] = {}
    for record, line in read.partitions:
        listed = record.get("nodes", "")
        nodes = everywhere if listed.upper() == "ALL" else _expanded(listed)
        shared = [name for name, others in earlier.items() if nodes & others]
        if shared:
            count = len(nodes & frozenset().union(*(earlier[name] for name in shared)))
            found.leave(
                line,
                f"partition {record['partitionname']} overlaps with {', '.join(shared)} ({count} nodes in "
                f"common): a dry run has each node once, all in the pool {pool}",
            )
        earlier[record["partitionname"]] = nodes
    named = frozenset().union(*earlier.values())
    if named and named <= everywhere:
        for record, line in read.nodes:
            outside = _expanded(record["nodename"]) - named
            if outside:
                found.leave(
                    line, f"{len(outside)} of these nodes are in no partition: a dry run has them in {pool}"
                )


def _expanded(listed: str) -> frozenset[str]:
    """The names of a host list; none where it cannot be read, which is remarked elsewhere."""
    try:
        return frozenset(hostlist.expand(listed)) if listed else frozenset()
    except (ValueError, OverflowError):
        return frozenset()
