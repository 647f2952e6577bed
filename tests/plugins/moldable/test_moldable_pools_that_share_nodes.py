"""A batch of moldable jobs on pools that share nodes: no job gets more processors than its pool has."""

from __future__ import annotations

import pytest
from building import InItsPool, emulate, node_cluster, traced

from headway.decisions import Resize
from headway.model import NodeDescription
from headway_plugins.moldable.policy import Moldable, MoldableOptions
from headway_plugins.placement.first_fit import FirstFit

#: Pool small has the first node, pool large all four, of two processors each.
CLUSTER = node_cluster(
    *(NodeDescription(f"n{at}", 2, pools=("large", "small") if at == 0 else ("large",)) for at in range(4)),
    pools=("large", "small"),
)


@pytest.mark.parametrize(("pools", "size"), [(("small",), 2), (("large",), 8), (("small", "large"), 8)])
def test_a_job_that_is_larger_than_its_pool_gets_all_of_it(pools, size):
    job = traced("j", 8, 100, pool=pools[0], further_pools=pools[1:])
    run = emulate(CLUSTER, [job], Moldable(MoldableOptions(jobs="all")), FirstFit(), InItsPool())
    assert run.problems == []
    resized = [decision.processors for _, decision in run.decisions if isinstance(decision, Resize)]
    assert resized == ([] if size == 8 else [size])
    assert run.states == {"j": "completed"}
    assert sum(count for _, count in run.results["j"].placement) == size


def test_others_are_planned_beside_it():
    jobs = [traced("j", 8, 100, pool="small"), *(traced(f"k{at}", 3, 50, pool="large") for at in range(3))]
    run = emulate(CLUSTER, jobs, Moldable(MoldableOptions(jobs="all")), FirstFit(), InItsPool())
    assert run.problems == [] and set(run.states.values()) == {"completed"}
