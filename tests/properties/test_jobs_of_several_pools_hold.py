"""Jobs that were sent to several pools, in random workloads: run once, nowhere twice, never later for it."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from building import Run, emulate, traced
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.model import ClusterDescription, NodeDescription, PoolBounds, PoolDescription
from headway_adapters.emulated import Faults
from headway_plugins.limits.plugin import Limits, LimitsOptions
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.conservative import Conservative
from headway_plugins.policies.easy import Easy
from headway_plugins.policies.fcfs import Fcfs

SIZES = {"a": 4, "b": 6, "c": 8}
LONGEST = 150.0
#: c gives no job more than :data:`LONGEST`.
FLAT = ClusterDescription(
    "flat",
    tuple(
        PoolDescription(name, size, bounds=PoolBounds(max_walltime=LONGEST) if name == "c" else None)
        for name, size in SIZES.items()
    ),
)
#: The last node of each pool is the first of the next.
NODES = ClusterDescription(
    "nodes",
    tuple(PoolDescription(name) for name in SIZES),
    tuple(
        NodeDescription(f"n{at}", 2, pools=pools)
        for at, pools in enumerate([("a",), ("a", "b"), ("b",), ("b", "c"), ("c",), ("c",)])
    ),
)
LISTS = st.permutations(sorted(SIZES)).flatmap(
    lambda names: st.integers(1, 3).map(lambda count: tuple(names[:count]))
)
JOBS = st.lists(
    st.tuples(st.integers(1, 8), st.integers(1, 20), st.integers(0, 30), LISTS, st.sampled_from("uvw")),
    min_size=1, max_size=25,
)  # fmt: skip
POLICIES = [Fcfs, Easy, Conservative]


def workload(jobs: list[tuple[int, int, int, tuple[str, ...], str]]) -> list[Any]:
    submitted = sorted(jobs, key=lambda job: job[2])
    return [
        traced(
            str(at), size, 10.0 * length, 10.0 * when, pool=pools[0], further_pools=pools[1:], user=user,
            runtime=10.0 * length - 3,
        )
        for at, (size, length, when, pools, user) in enumerate(submitted)
    ]  # fmt: skip


def room_in(cluster: ClusterDescription, pool: str) -> int:
    flat = next(each.processors for each in cluster.pools if each.name == pool)
    return flat or sum(node.processors for node in cluster.nodes if pool in node.pools)


def check(run: Run, cluster: ClusterDescription) -> None:
    assert run.problems == []
    bounds = {pool.name: pool.bounds for pool in cluster.pools}
    takes: list[tuple[float, str, int]] = []
    for result in run.results.values():
        job = result.job
        possible = [
            pool for pool in job.pools
            if job.request.processors <= room_in(cluster, pool)
            and (bounds[pool] is None or job.request.walltime <= bounds[pool].max_walltime)
        ]  # fmt: skip
        assert (result.state == "completed") == bool(possible), (job, result)
        if result.state != "completed":
            continue
        assert result.pool in possible and result.starts == 1
        where = [(name, count) for name, count in result.placement] or [(result.pool, job.request.processors)]
        for name, count in where:
            takes += [(result.start_time or 0.0, name, count), (result.end_time or 0.0, name, -count)]
    most = {node.name: node.processors for node in cluster.nodes} or SIZES
    used = dict.fromkeys(most, 0)
    for _, name, count in sorted(takes, key=lambda take: (take[0], take[2])):
        used[name] += count
        assert 0 <= used[name] <= most[name]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("cluster", [FLAT, NODES], ids=["flat", "nodes"])
@given(jobs=JOBS)
@settings(max_examples=40, deadline=None)
def test_each_runs_once_in_a_pool_that_may_run_it_and_no_processor_twice(cluster, policy, jobs):
    check(emulate(cluster, workload(jobs), policy(), FirstFit()), cluster)


@pytest.mark.parametrize("policy", POLICIES)
@given(jobs=JOBS)
@settings(max_examples=40, deadline=None)
def test_limits_of_users_and_of_one_pool_hold_beside_it(policy, jobs):
    limits = Limits(LimitsOptions(of={"user": {"*": {"jobs": 1}}, "pool": {"a": {"jobs": 1}}}))
    run = emulate(FLAT, workload(jobs), policy(), limits)
    check(run, FLAT)
    ran = [result for result in run.results.values() if result.state == "completed"]
    for one, other in combinations(ran, 2):
        together = one.start_time < other.end_time and other.start_time < one.end_time
        assert not (together and (one.job.user == other.job.user or one.pool == other.pool == "a"))


@given(jobs=JOBS, seed=st.integers(0, 5))
@settings(max_examples=40, deadline=None)
def test_starts_that_fail_bring_it_back_into_all_of_its_pools(jobs, seed):
    faults = Faults(failure_rate=0.3)
    run = emulate(FLAT, workload(jobs), Easy(), faults=faults, seed=seed)
    check(run, FLAT)


@given(jobs=JOBS, size=st.integers(1, 8), length=st.integers(1, 20), pools=LISTS)
@settings(max_examples=60, deadline=None)
def test_the_last_of_a_first_come_first_served_queue_starts_as_early_as_in_its_best_pool(
    jobs, size, length, pools
):
    """Nobody stands behind the job, so what it does changes nothing for the others."""
    others = workload(jobs)

    def start(*its: str) -> float:
        job = traced("last", size, 10.0 * length, 300.0, pool=its[0], further_pools=its[1:])
        run = emulate(FLAT, [*others, job], Fcfs())
        found = run.results["last"].start_time
        return float("inf") if found is None else found

    assert start(*pools) == min(start(pool) for pool in pools)
