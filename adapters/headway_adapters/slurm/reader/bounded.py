"""On how many nodes a job must lie for its partitions' sake, where its user left that open."""

from __future__ import annotations

from collections.abc import Sequence

from headway_adapters.slurm.reader.partitions import Partition


def fewest_nodes(partitions: Sequence[Partition], processors: int, least: int, most: int) -> int:
    """The number of nodes of a job for which its user asked for ``least`` to ``most`` (0: not stated).

    ``MinNodes`` and ``MaxCPUsPerNode`` ask for more. Of several partitions the one that asks for least
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
