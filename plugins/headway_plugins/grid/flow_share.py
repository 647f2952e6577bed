"""Processors as a flow that groups share: the group that demands most is cut first.

E. Medernach, "Workload Analysis of a Cluster in a Grid Environment", JSSPP 2005, discussion: fairness between
groups as a flow problem. The paper gives no algorithm; this is max-min fairness: each group that is not
satisfied gets as much as the other groups, and no more than it demands. Nothing is cut where all demands
together are no more than the capacity.
"""

from __future__ import annotations

from collections.abc import Mapping


def max_min(capacity: float, demands: Mapping[str, float]) -> dict[str, float]:
    """What each group gets of ``capacity``, in the unit of the demands (processors); none is negative."""
    shares = {}
    left, groups = capacity, len(demands)
    for name in sorted(demands, key=lambda name: demands[name]):
        shares[name] = min(demands[name], left / groups)
        left -= shares[name]
        groups -= 1
    return {name: shares[name] for name in demands}
