"""What partitions ask of jobs: the number of nodes of jobs that left it open, and which QOS are free."""

from __future__ import annotations

from collections.abc import Sequence

from headway_adapters.slurm.reader.partitions import Partition

#: What lists the flags of each QOS, for :func:`read_lifted`.
LIFTED = ("sacctmgr", "-n", "-P", "show", "qos", "format=Name,Flags")
#: A QOS's flag -> the bound of partitions that does not hold for its jobs.
_LIFTS = {
    "partitiontimelimit": "max_walltime", "partitionmaxnodes": "max_nodes", "partitionminnodes": "min_nodes",
}  # fmt: skip


def read_lifted(text: str) -> tuple[tuple[str, str], ...]:
    """:data:`LIFTED` -> ``(bound, QOS)`` (:class:`headway.model.PoolBounds`)."""
    found = []
    for line in text.splitlines():
        name, bar, flags = line.partition("|")
        if bar:
            lifted = (_LIFTS.get(flag.strip().lower()) for flag in flags.strip("|").split(","))
            found += [(bound, name) for bound in lifted if bound is not None]
    return tuple(found)


def fewest_nodes(partitions: Sequence[Partition], processors: int, least: int, most: int) -> int:
    """The number of nodes of a job for which its user asked for ``least`` to ``most`` (0: not stated).

    ``MinNodes`` and ``MaxCPUsPerNode`` ask for more. Of several partitions the partition that asks for least
    counts: what the others ask for beyond that keeps the job out of them.
    """
    spread = min((_spread(each, processors) for each in partitions), default=0)
    # Slurm takes no job with more on its nodes than MaxCPUsPerNode, so a lower number is Slurm's own
    # estimate, which 24.11 shows like one that was asked for.
    found = max(least, spread) if spread > 1 else least
    needed = min((max(each.least_nodes, _spread(each, processors)) for each in partitions), default=0)
    if needed > max(found, 1) and (not least or most > least):
        found = min(needed, most) if most else needed
    return found


def _spread(partition: Partition, processors: int) -> int:
    a_node = partition.most.get("MaxCPUsPerNode", 0)
    return -(-processors // a_node) if a_node else 0
