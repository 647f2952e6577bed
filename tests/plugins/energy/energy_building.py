"""What the tests of energy-aware plugins share."""

from __future__ import annotations

from headway.energy.profiles import load_profile, with_energy
from headway.model import ClusterDescription, NodeDescription
from headway.results import RunResult

PAPER = load_profile("chandio2014")
PRESENT = load_profile("present-day")


def three_classes(first: int, second: int, third: int) -> ClusterDescription:
    """Single-processor nodes of the paper's classes."""
    nodes = [
        NodeDescription(f"{kind}{at}", 1, pools=("pool",), node_class=kind)
        for kind, count in (("I", first), ("II", second), ("III", third))
        for at in range(count)
    ]
    from headway.model import PoolDescription

    return with_energy(ClusterDescription("cluster", (PoolDescription("pool"),), tuple(nodes)), PAPER)


def run_result(run, cluster: ClusterDescription) -> RunResult:
    """The result of a test's run, for metrics."""
    adapter = run.adapter
    return RunResult(
        "test", cluster, adapter.results(), capacity=adapter.capacity, activities=adapter.activities,
        power=adapter.power,
    )  # fmt: skip
