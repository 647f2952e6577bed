"""The share that is kept for short jobs, where pools share nodes."""

from __future__ import annotations

import pytest
from building import emulate, node_cluster, traced

from headway.model import NodeDescription
from headway_plugins.grid.reserve_short import ReserveShort, ReserveShortOptions
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.easy import Easy


def starts(nodes: list[tuple[str, ...]], *pools: str) -> dict[str, float | None]:
    """Long jobs of one processor each, of these pools, on nodes of one processor, half of each pool kept."""
    cluster = node_cluster(
        *(NodeDescription(f"n{at}", 1, pools=names) for at, names in enumerate(nodes)), pools=("a", "b")
    )
    jobs = [traced(str(at), 1, 100, at, pool=pool) for at, pool in enumerate(pools)]
    plugin = ReserveShort(ReserveShortOptions(share=0.5, seconds=50))
    run = emulate(cluster, jobs, plugin, Easy(), FirstFit())
    assert run.problems == []
    return run.starts


@pytest.mark.parametrize("pools", ["aaa", "aba", "abb"])
def test_a_long_job_counts_whichever_of_the_pools_it_is_of(pools):
    """Of four processors that both pools have two are kept."""
    assert starts([("a", "b")] * 4, *pools) == {"0": 0, "1": 1, "2": 100}


def test_and_only_with_what_the_pool_has_of_it():
    # Each may have one. Job 1 of pool b has the node that pool a has, too.
    nodes = [("a",), ("a",), ("a", "b"), ("b",)]
    assert starts(nodes, "a", "b", "a", "b") == {"0": 0, "1": 1, "2": 101, "3": 101}
