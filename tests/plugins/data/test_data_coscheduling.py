"""Sites, order and copies of movable jobs planned together, in emulated federations."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import pytest
from building import emulate, federated, told
from hypothesis import given, settings
from hypothesis import strategies as st
from sites_of import DataAreThere, decided, job, why

from headway import decisions as d
from headway import events as ev
from headway.hookspecs import hookimpl
from headway.model import Dataset, Dependency, Link, Site, Store
from headway_adapters.emulated import Faults
from headway_plugins.data.coscheduling import DataGa, DataGreedy
from headway_plugins.data.staging import Staging
from headway_plugins.data.supply_options import GeneticOptions, GreedyOptions, SupplyOptions
from headway_plugins.policies.easy import Easy
from headway_plugins.policies.fcfs import Fcfs

OPEN = Store(most_copies=0)
A, B, C = (Site(name, store=OPEN) for name in "abc")
LINKS = [Link(x, y, 10.0, 1.0) for x in "abc" for y in "abc" if x != y]


def ga(**more):
    return DataGa(
        GeneticOptions(**{"evaluations": 400, "children": 20, "parents": 5, "parallel": 100, **more})
    )


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
        Dataset(f"d{at}", int(rng.integers(*sizes)), (sites[int(rng.integers(len(sites)))],))
        for at in range(8)
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
    """Full links, no failures, no limit of copies, one plan: to the microsecond."""
    datasets, jobs = batch(seed)
    plugin = make(interval=1e6)
    found = run(federated(A, B, C, links=LINKS, datasets=datasets, size=2), jobs, plugin)
    assert found.problems == [] and set(found.states.values()) == {"completed"}
    assert makespan(found) == pytest.approx(plugin.planned.first_end, abs=1e-6)
    assert all(one.starts == 1 for one in found.results.values())


def test_a_plan_ends_no_later_than_jobs_that_stay_and_the_genetic_algorithm_finds_better_ones():
    ends = {"stay": 0.0, "greedy": 0.0, "ga": 0.0}
    for seed in range(6):
        datasets, jobs = batch(seed)
        cluster = federated(A, B, C, links=LINKS, datasets=datasets, size=2)
        staging = Staging(SupplyOptions(parallel=100))
        found = [
            makespan(run(cluster, jobs, one)) for one in (staging, greedy(interval=1e6), ga(interval=1e6))
        ]
        assert found[2] <= found[1] + 1e-6 <= found[0] + 2e-6
        ends = {name: ends[name] + one for name, one in zip(ends, found, strict=True)}
    assert ends["ga"] < 0.97 * ends["greedy"] < 0.9 * ends["stay"]


def test_a_run_is_repeated_by_its_seed():
    datasets, jobs = batch(3, spread=2000)
    cluster = federated(A, B, C, links=LINKS, datasets=datasets, size=2)
    one, two = (run(cluster, jobs, ga(), seed=5) for _ in range(2))
    assert one.decisions == two.decisions and one.adapter.rounds == two.adapter.rounds


def test_a_job_that_comes_later_is_planned_at_once_and_all_jobs_after_the_interval():
    datasets = [Dataset("d", 1000, ("a",))]
    cluster = federated(A, B, links=LINKS, datasets=datasets, size=1)
    jobs = [
        job("a:1", seconds=1000), job("b:1", seconds=2000), job("a:2", "d", 50, movable=True),
        job("a:3", "d", 50, movable=True), job("b:2", "d", 50, submit=100, movable=True),
        job("a:4", seconds=10, submit=400),
    ]  # fmt: skip
    plugin = greedy(interval=300)
    found = run(cluster, jobs, plugin)
    assert decided(found, d.Route) == [
        (100.0, d.Route("b:2", "a:q", "planned at a: nothing is to be copied"))
    ]
    # At 0, at 400 as something has come since, and as jobs start half of the window is empty.
    assert plugin.planned.snapshots >= 2 and set(found.states.values()) == {"completed"}


def test_only_planned_jobs_change_places():
    datasets, jobs = batch(1, sites="a", jobs=10)
    fixed = [job(f"a:fixed{at}", seconds=50) for at in range(5)]
    mixed = [one for pair in zip(jobs, fixed, strict=False) for one in pair] + jobs[5:]
    seen = []

    class Looks:
        @hookimpl
        def decided(self, state):
            if not seen:
                queue = [named.id for named in state.domains["a:q"].queue]
                order = plugin.order_queue(state.domains["a:q"].queue)
                seen.append((queue, [named.id for named in order or ()]))

    plugin = ga(interval=1e6)
    run(federated(A, B, links=LINKS, datasets=datasets, size=1), mixed, plugin, Looks())
    before, after = seen[0]
    assert sorted(before) == sorted(after) and before != after
    assert [before.index(name) for name in before if "fixed" in name] == [
        after.index(name) for name in before if "fixed" in name
    ]


def test_jobs_of_several_processors_go_as_the_policy_says():
    datasets = [Dataset("d", 100, ("b",))]
    cluster = federated(A, B, links=LINKS, datasets=datasets)
    jobs = [job("a:1", "d", 100, processors=2, movable=True), job("a:2", "d", 100, movable=True)]
    found = run(cluster, jobs, greedy(), policy=Easy())
    assert {name: one.pool for name, one in found.results.items()} == {"a:1": "a:q", "a:2": "b:q"}
    assert found.starts == {"a:1": 11.0, "a:2": 1.0}


def test_a_movable_job_is_refused_only_where_no_site_can_have_its_data():
    small = Site("b", store=Store(capacity=100))
    datasets = [Dataset("d", 600, ("a",)), Dataset("n", 600, ("c",))]
    cluster = federated(A, small, Site("c"), links=[Link("a", "b", 10.0, 1.0)], datasets=datasets)
    jobs = [job("b:1", "d", movable=True), job("b:2", "d"), job("b:3", "x", movable=True)]
    found = run(cluster, jobs, greedy())
    assert found.results["b:1"].pool == "a:q" and found.states["b:1"] == "completed"
    assert "refused: its datasets" in why(found, "b:2")
    assert "no other site can have its data" in why(found, "b:3")


def test_a_job_that_its_cluster_will_not_send_on_stays_and_gets_its_data():
    datasets = [Dataset("d", 600, ("a",))]
    cluster = federated(A, B, links=LINKS, datasets=datasets)
    # A dependent job of it keeps it where it is.
    jobs = [job("b:1", "d", movable=True), job("b:2", dependencies=(Dependency("ended", "b:1"),))]
    found = run(cluster, jobs, greedy())
    assert len(told(found, ev.DecisionFailed)) == 3
    assert found.results["b:1"].pool == "b:q" and found.starts["b:1"] == 61.0
    assert set(found.states.values()) == {"completed"}


def test_copies_that_take_longer_than_expected_end_the_belief_in_plans():
    notices = []

    class Notes:
        @hookimpl
        def control(self, state):
            notices.extend(state.notices)

    datasets = [Dataset(f"d{at}", 1000, ("a",)) for at in range(8)]
    # Eight copies share a link.
    jobs = [job(f"b:{at}", f"d{at}", 10) for at in range(8)]
    jobs += [job(f"b:m{at}", "d0", 50, 1000 + 100 * at, movable=True) for at in range(4)]
    plugin = ga(interval=100, learning=False)
    cluster = federated(A, B, links=LINKS, datasets=datasets, size=2)
    run(cluster, jobs, plugin, Notes(), fair_links=True)
    assert plugin.planned.fallbacks > 0
    assert any("5 copies in a row took more than twice" in said for said in notices)


def test_an_old_job_is_overtaken_so_often_and_no_more():
    datasets = [Dataset("d", 10, ("a",))]
    cluster = federated(A, links=LINKS, datasets=datasets, size=1)
    jobs = [job("a:long", seconds=500, movable=True)]
    jobs += [job(f"a:{at}", "d", 10 + at, movable=True) for at in range(8)]
    free = run(cluster, jobs, ga(interval=1e6))
    bound = run(cluster, jobs, ga(interval=1e6, max_overtakes=0))
    assert bound.starts["a:long"] == 0.0
    assert set(free.states.values()) == set(bound.states.values()) == {"completed"}


def test_a_plan_survives_a_restart():
    datasets, jobs = batch(2)
    plugin = ga(interval=1e6)
    kept = []

    class Keeps:
        @hookimpl
        def decided(self, state):
            if not kept:
                kept.append(plugin.checkpoint())

    run(federated(A, B, C, links=LINKS, datasets=datasets, size=2), jobs, plugin, Keeps())
    again = ga()
    run(federated(A, B, C, links=LINKS, datasets=datasets), [], again)
    again.restore(json.loads(json.dumps(kept[0])))
    assert json.loads(json.dumps(again.checkpoint()))["plan"] == json.loads(json.dumps(kept[0]))["plan"]
    assert len(kept[0]["plan"]["order"]) == len(jobs)


# ---------------------------------------------------------------------- whatever happens


@given(
    seed=st.integers(0, 10**6), plugin=st.sampled_from(["staging", "data-greedy", "data-ga"]),
    fair=st.booleans(), failing=st.sampled_from([0.0, 0.4]), narrow=st.booleans(),
    spread=st.sampled_from([0, 800]),
)  # fmt: skip
@settings(max_examples=30, deadline=None)
def test_each_job_runs_once_where_its_data_are(seed, plugin, fair, failing, narrow, spread):
    rng = np.random.default_rng([seed, 7])
    names = "abcd"[: int(rng.integers(2, 5))]
    datasets, jobs = batch(seed, sites=names, jobs=12, spread=spread)
    changed = []
    for one in jobs:
        attributes = {key: value for key, value in (one.job.attributes or {}).items()
                      if key != "movable" or rng.random() < 0.6}  # fmt: skip
        request = msgspec.structs.replace(one.job.request, processors=int(rng.choice([1, 1, 1, 2])))
        changed.append(
            msgspec.structs.replace(
                one, job=msgspec.structs.replace(one.job, attributes=attributes, request=request)
            )
        )
    whole = sum(one.size for one in datasets)
    sites = []
    for name in names:
        own = sum(one.size for one in datasets if name in one.at)
        capacity = own + int(rng.uniform(0.2, 0.7) * whole) if narrow else 0
        sites.append(Site(name, store=Store(capacity, int(rng.integers(0, 4)))))
    links = [
        Link(x, y, float(rng.uniform(2, 50)), float(rng.uniform(0, 5)))
        for x in names for y in names if x != y and rng.random() < 0.8
    ]  # fmt: skip
    made = {
        "staging": Staging(SupplyOptions(parallel=3)),
        "data-greedy": greedy(parallel=3),
        "data-ga": ga(parallel=3),
    }
    cluster = federated(*sites, links=links, datasets=datasets, size=2)
    faults = Faults(copy_failure_rate=failing)
    found = emulate(
        cluster, changed, Easy(), made[plugin], DataAreThere(), faults=faults, fair_links=fair, seed=seed
    )
    assert list(found.results) == [one.job.id for one in changed]
    assert [problem for problem in found.problems if "Error" in problem] == []
    state = found.scheduler.state
    for name, one in found.results.items():
        if one.state == "completed":
            assert one.starts == 1
        else:
            assert state.jobs[name].refusal, state.why_waiting(state.jobs[name])
    for site in sites:
        assert state.catalogue.room(site.name) >= 0
    assert not state.catalogue.copies
