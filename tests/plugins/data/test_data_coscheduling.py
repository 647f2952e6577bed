"""Sites, order and copies of movable jobs planned together, in emulated federations."""

from __future__ import annotations

import numpy as np
import pytest
from building import emulate
from sites_of import DataAreThere, decided, federated, job, told

from headway import decisions as d
from headway import events as ev
from headway.model import Dataset, Link, Site, Store
from headway_plugins.data.coscheduling import DataGa, DataGreedy
from headway_plugins.data.staging import Staging
from headway_plugins.data.staging_options import GeneticOptions, GreedyOptions
from headway_plugins.policies.easy import Easy
from headway_plugins.policies.fcfs import Fcfs

OPEN = Store(most_copies=0)
A, B, C = (Site(name, store=OPEN) for name in "abc")
LINKS = [Link(x, y, 10.0, 1.0) for x in "abc" for y in "abc" if x != y]


def ga(**more):
    return DataGa(GeneticOptions(**{"evaluations": 400, "children": 20, "parents": 5, "parallel": 100, **more}))


def greedy(**more):
    return DataGreedy(GreedyOptions(**{"parallel": 100, **more}))


def run(cluster, jobs, plugin, *more, policy=None, **kinds):
    return emulate(cluster, jobs, policy or Fcfs(), plugin, *more, DataAreThere(), **kinds)


def test_a_movable_job_goes_where_its_data_are():
    datasets = [Dataset("d", 10_000, ("a",))]
    cluster = federated(A, B, links=LINKS, datasets=datasets)
    found = run(cluster, [job("b:1", "d", movable=True), job("b:2", "d", 5)], greedy())
    assert found.results["b:1"].pool == "a:q" and found.starts["b:1"] == 1.0
    # The second one must stay.
    assert found.results["b:2"].pool == "b:q" and found.starts["b:2"] == 1001.0
    assert found.problems == []


def test_data_go_where_there_is_room_for_jobs():
    datasets = [Dataset("d", 100, ("a",))]
    cluster = federated(A, B, links=LINKS, datasets=datasets, size=1)
    jobs = [job("a:0", seconds=1000), *(job(f"a:{at}", "d", 100, movable=True) for at in range(1, 4))]
    found = run(cluster, jobs, greedy())
    assert {found.results[name].pool for name in ("a:1", "a:2", "a:3")} == {"b:q"}
    assert [copy for _, copy in decided(found, d.Copy)] == [d.Copy("d", "b", "a", "job a:1 waits for it")]
    assert sorted(found.starts[name] for name in ("a:1", "a:2", "a:3")) == [11.0, 111.0, 211.0]


def test_jobs_stay_where_nothing_is_gained():
    datasets = [Dataset("d", 100, ("a", "b"))]
    cluster = federated(A, B, links=LINKS, datasets=datasets)
    jobs = [job(f"{'ab'[at % 2]}:{at}", "d", 100, movable=True) for at in range(6)]
    for plugin in (greedy(), ga()):
        assert decided(run(cluster, jobs, plugin), d.Route) == []


def batch(seed, *, sites="abc", jobs=24, sizes=(100, 3000), spread=0):
    """Jobs of one processor that all may move, and read 0 to 3 of eight datasets."""
    rng = np.random.default_rng(seed)
    datasets = [
        Dataset(f"d{at}", int(rng.integers(*sizes)), (sites[int(rng.integers(len(sites)))],)) for at in range(8)
    ]
    found = []
    for at in range(jobs):
        names = rng.permutation(8)[: int(rng.integers(0, 4))]
        found.append(
            job(
                f"{sites[int(rng.integers(len(sites)))]}:{at}", ",".join(f"d{name}" for name in names),
                float(rng.integers(10, 300)), float(rng.integers(0, spread + 1)), movable=True,
            )
        )  # fmt: skip
    return datasets, sorted(found, key=lambda one: one.job.submit_time)


def makespan(found):
    return max(one.end_time for one in found.results.values())


@pytest.mark.parametrize("make", [greedy, ga])
@pytest.mark.parametrize("seed", range(6))
def test_a_batch_ends_when_its_first_plan_says(make, seed):
    """Full links, no failures, one plan: what differs are the seconds that jobs need on their way."""
    datasets, jobs = batch(seed)
    plugin = make(interval=1e6)
    found = run(federated(A, B, C, links=LINKS, datasets=datasets, size=2), jobs, plugin)
    assert found.problems == [] and set(found.states.values()) == {"completed"}
    planned = plugin.planned.first_end
    assert planned <= makespan(found) + 1e-6
    assert makespan(found) == pytest.approx(planned, abs=2.0)
    assert all(one.starts == 1 for one in found.results.values())
