"""What ``headway check`` says of pools: which share nodes, and what the configuration says of some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headway.adapter import Check
from headway.errors import nearest
from headway.model import ClusterDescription
from headway.model.nodes import sharing_nodes


def check_pools(cluster: ClusterDescription, tiers: Mapping[str, int]) -> Iterator[Check]:
    """``tiers``: the tiers in the configuration, by pool."""
    pools = {pool.name: pool for pool in cluster.pools}
    for name in tiers:
        if name not in pools:
            hint = nearest(name, pools)
            yield Check(
                f"pool {name}", False, f"the cluster has no such pool, which the configuration names.{hint}",
                "correct the key `pools`",
            )  # fmt: skip
    for names in sharing_nodes(pools, (node.pools for node in cluster.nodes)):
        if len(names) == 1:
            continue
        served = [name for name in names if pools[name].open]
        if len(served) > 1:
            said = {name: tiers.get(name, pools[name].priority_tier) for name in served}
            ranked = sorted(served, key=lambda name: -said[name])
            order = ", ".join(f"{name} (tier {said[name]})" for name in ranked)
            if len(set(said.values())) == 1:
                order = f"{', '.join(served)}; all have the same tier"
            yield Check("pools that share nodes", True, f"one queue for {order}")
        for name in names:
            if served and not pools[name].open:
                yield Check(
                    f"pool {name}", True,
                    f"shares nodes with {', '.join(served)} and is closed or not managed by headway: its "
                    "running jobs are counted, its waiting jobs are not planned",
                    "if headway manages the pool, open it; else let headway manage it, or give it nodes of "
                    "its own",
                    known=False,
                )  # fmt: skip
