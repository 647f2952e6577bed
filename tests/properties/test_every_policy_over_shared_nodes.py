"""Every policy where pools share nodes: no job leaves its pools or starves, and equal pools are one pool."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from building import InItsPool, Run, emulate, traced
from hypothesis import given, settings
from pools_reference import Case, cases, cluster_of

from headway.energy.profiles import load_profile, with_energy
from headway.plugins import Catalogue, PluginConfig, Plugins

#: All plugins that start jobs or bar them, as a site configures them.
SITES: dict[str, dict[str, dict[str, Any]]] = {
    "fcfs": {"fcfs": {}},
    "strict": {"strict": {}},
    "greedy": {"greedy": {}},
    "window": {"window": {"size": 3}},
    "easy": {"easy": {}},
    "conservative": {"conservative": {}},
    "k-reserved": {"k-reserved": {}},
    "los": {"los": {}},
    "delayed-los": {"delayed-los": {}},
    "hybrid-los": {"hybrid-los": {}},
    "select": {"select": {}},
    "minmin": {"minmin": {"speeds": {"n[01]": 2.0}}},
    "sufferage": {"sufferage": {"speeds": {"n[01]": 2.0}}},
    "moldable": {"moldable": {"jobs": "all"}},
    "pipelines": {"pipelines": {}},
    "two-phase": {"two-phase": {}},
    "easy-sjbf": {"easy-sjbf": {}},
    "easy-de": {"easy-de": {}},
    "ejb": {"ejb": {}},
    "tree": {"easy": {}, "tree": {}},
    "reserve-short": {"easy": {}, "reserve-short": {"seconds": 5, "share": 0.4}},
    "large-jobs": {"easy": {}, "large-jobs": {"windows": {"w": {"from": "00:00", "for": "30s"}}}},
    "power-down": {"easy": {}, "power-down": {"idle": 5}},
}
#: They take a job to a kind of nodes, each of which must be large enough for it.
BY_KIND = {"minmin", "sufferage"}


catalogue = cache(Catalogue)


def run(case: Case, site: dict[str, dict[str, Any]], processors: int, *more: object) -> Run:
    """Nodes of so many processors each, and jobs of so many each of the case's nodes; ``more`` plugins."""
    cluster = cluster_of(case, processors)
    if "power-down" in site:
        # Without a profile no node can sleep.
        cluster = with_energy(cluster, load_profile("present-day"))
    jobs = [
        traced(
            str(at), job.size * processors, job.limit, job.comes, runtime=job.runtime,
            pool=f"p{job.pools[0]}", further_pools=tuple(f"p{pool}" for pool in job.pools[1:]),
        )
        for at, job in enumerate(case.jobs)
    ]  # fmt: skip
    configured = [PluginConfig(name, options) for name, options in site.items()]
    if "tree" not in site:
        configured.append(PluginConfig("first-fit"))
    plugins = Plugins.load(catalogue().expanded(configured), catalogue(), None)
    found = emulate(cluster, jobs, *plugins.by_name.values(), InItsPool(), *more, max_rounds=20_000)
    assert found.problems == []
    return found


def within_reach(case: Case, site: str) -> Case:
    """The case with the jobs that a pool admits, each of a size that all of its pools can hold."""
    jobs = []
    for job in case.jobs:
        sizes = []
        for pool in job.pools:
            nodes = [at for at, pools in enumerate(case.nodes) if pool in pools]
            fast = sum(at < 2 for at in nodes)
            sizes.append(max(fast, len(nodes) - fast) if site in BY_KIND else len(nodes))
        job = job._replace(size=min(job.size, *sizes))
        if job.size and any(case.admits(pool, job) for pool in job.pools):
            jobs.append(job)
    return case._replace(jobs=tuple(jobs))


@pytest.mark.parametrize("site", SITES)
@given(case=cases())
@settings(max_examples=20, deadline=None)
def test_each_job_runs_in_a_pool_of_its_own(site, case):
    for processors in (1, 2):
        found = run(within_reach(case, site), SITES[site], processors)
        assert set(found.states.values()) <= {"completed"}


@pytest.mark.parametrize("site", SITES)
@given(case=cases())
@settings(max_examples=20, deadline=None)
def test_pools_of_the_same_nodes_are_one_pool(site, case):
    every = frozenset(range(len(case.tiers)))
    several = within_reach(case._replace(tiers=(0,) * len(every), nodes=(every,) * len(case.nodes)), site)
    one = several._replace(
        tiers=(0,), nodes=(frozenset({0}),) * len(case.nodes),
        jobs=tuple(job._replace(pools=(0,)) for job in several.jobs),
    )  # fmt: skip
    assert run(several, SITES[site], 2).starts == run(one, SITES[site], 2).starts


@pytest.mark.parametrize("site", SITES)
@given(case=cases())
@settings(max_examples=5, deadline=None)
def test_the_same_run_twice_gives_the_same_schedule(site, case):
    possible = within_reach(case, site)
    assert run(possible, SITES[site], 2).starts == run(possible, SITES[site], 2).starts
