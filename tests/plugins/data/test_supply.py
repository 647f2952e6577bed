"""Copies are ordered by one plugin of a run, in one way whichever plugin that is."""

from __future__ import annotations

import itertools

import pytest
from building import Run, described, emulate, federated, plugged, told
from sites_of import DataAreThere, decided, job, why

from headway import decisions as d
from headway import events as ev
from headway.errors import UserError
from headway.hookspecs import hookimpl
from headway.model import Dataset, Dependency, Link, Site, Store
from headway.scheduler import Scheduler
from headway_adapters.emulated import Faults
from headway_plugins.data.coscheduling import DataGa, DataGreedy
from headway_plugins.data.staging import Staging
from headway_plugins.data.supply_options import SupplyOptions
from headway_plugins.policies.fcfs import Fcfs
from headway_plugins.sites.follow import Follow
from headway_plugins.sites.options import FollowOptions

A, B = Site("a", store=Store()), Site("b", store=Store(capacity=1200))
WIRE = Link("a", "b", bandwidth=10.0)
D, E, F = Dataset("d", 600, ("a",)), Dataset("e", 500, ("a",)), Dataset("f", 200, ("a",))


def follow(**options) -> Follow:
    """It sends no job anywhere."""
    return Follow(FollowOptions(most_routes=0, **options))


def staging(**options) -> Staging:
    return Staging(SupplyOptions(**options))


#: Why a job waited at the end of the first step.
said: list[str] = []


class Asks:
    @hookimpl
    def control(self, state):
        if not said:
            said.append(state.why_waiting(state.jobs["c:2"]))


#: Plugins that have data copied where jobs wait.
BOTH = pytest.mark.parametrize("plugin", [staging, follow])


def run(plugin, jobs, *, sites=(A, B), links=(WIRE,), **more) -> Run:
    cluster = federated(*sites, links=links, datasets=[D, E, F])
    found = emulate(cluster, jobs, Fcfs(), plugin, DataAreThere(), **more)
    assert found.problems == []
    return found


def copies(found: Run) -> list[tuple[float, str]]:
    return [(at, copy.dataset) for at, copy in decided(found, d.Copy)]


@BOTH
def test_copies_come_in_the_order_of_the_queue_within_one_limit(plugin):
    jobs = [job(f"b:{at}", name, movable=True) for at, name in enumerate("fed", 1)]
    wide = Site("b", store=Store(most_copies=0))
    found = run(plugin(parallel=2), jobs, sites=(A, wide))
    assert copies(found) == [(0.0, "f"), (0.0, "e"), (20.0, "d")]


@BOTH
def test_a_copy_that_failed_is_tried_again_later_each_time(plugin):
    found = run(plugin(retry=10.0, longest_retry=30.0), [job("b:1", "d", movable=True)],
                faults=Faults(copy_failure_rate=0.9), seed=3)  # fmt: skip
    failed = [event.time for event in told(found, ev.CopyFailed)]
    waits = [again - at for at, (again, _) in zip(failed, copies(found)[1:], strict=True)]
    assert waits == pytest.approx([10, 20, *[30] * (len(waits) - 2)]) and len(waits) > 3


@BOTH
def test_a_full_store_loses_what_was_read_least_recently(plugin):
    jobs = [job("b:1", "d", 10, movable=True), job("b:2", "e", 10, movable=True),
            job("b:3", "d", 10, 100, movable=True), job("b:4", "f", 10, 200, movable=True)]  # fmt: skip
    found = run(plugin(), jobs)
    assert [event.dataset for event in told(found, ev.DatasetLost)] == ["e"]
    assert set(found.states.values()) == {"completed"}


@BOTH
def test_nothing_is_copied_for_a_job_that_may_not_start(plugin):
    after = Dependency("completed", "b:1")
    found = run(plugin(), [job("b:1", seconds=50), job("b:2", "d", movable=True, dependencies=(after,))])
    assert copies(found) == [(50.0, "d")]


@BOTH
def test_a_job_whose_data_can_never_come_is_refused(plugin):
    found = run(plugin(), [job("b:1", "nowhere", movable=True)])
    (job_,) = found.scheduler.state.jobs.values()
    assert job_.refusal.startswith("dataset 'nowhere' is not configured (key datasets)")


def test_a_job_waits_to_go_where_its_data_can_come_or_is_refused():
    plugin = Follow(FollowOptions(by=["data"], at_a_time=1))
    jobs = [job("c:1", "d", movable=True), job("c:2", "d", movable=True), job("c:3", "e")]
    found = emulate(federated(A, Site("c"), datasets=[D, E]), jobs, Fcfs(), plugin, Asks())
    assert {route.job_id for _, route in decided(found, d.Route)} == {"c:1", "c:2"}
    assert found.states["c:2"] == "completed" and why(found, "c:3").endswith(
        ": it reads dataset e, and c has no store"
    )
    assert said == ["it waits to go to another site: it reads dataset d, and c has no store"]


@pytest.mark.parametrize(
    ("first", "second"), list(itertools.permutations([staging, follow, DataGreedy, DataGa], 2))
)
def test_two_plugins_that_have_data_copied_are_refused_by_their_names(first, second):
    names = {staging: "staging", follow: "follow", DataGreedy: "data-greedy", DataGa: "data-ga"}
    one, two = names[first], names[second]
    instead = r" \(or set `copies: false` of follow\)" if follow in (first, second) else ""
    expected = f"expected one plugin that has datasets copied, found {one} and {two}; leave one of them out"
    with pytest.raises(UserError, match=f"^plugins: {expected}{instead}$"):
        emulate(federated(A, B, links=[WIRE], datasets=[D]), [], Fcfs(), first(), second())


def test_follow_leaves_copies_to_staging():
    """One supply serves both: its limit counts for jobs that may move and for jobs that stay."""
    jobs = [job("b:1", "f", movable=True), job("b:2", "e"), job("b:3", "d", movable=True)]
    cluster = federated(A, Site("b", store=Store()), links=[WIRE], datasets=[D, E, F])
    plugins = follow(copies=False), staging(parallel=1)
    found = emulate(cluster, jobs, Fcfs(), *plugins, DataAreThere())
    assert copies(found) == [(0.0, "f"), (20.0, "e"), (70.0, "d")] and found.problems == []


def test_what_was_measured_is_kept_by_follow_over_a_restart():
    plugin = follow()
    run(plugin, [job("b:1", "d", 10, movable=True)])
    saved = plugin.checkpoint()["supply"]
    assert saved == {"rates": [["a", "b", [10.0]]], "used": [["d", "b", 70.0]]}


def test_a_job_that_waits_for_a_thousand_datasets_names_a_few():
    names = [f"d{at}" for at in range(1000)]
    cluster = federated(
        A, Site("b", store=Store()), links=[WIRE], datasets=[Dataset(one, 10, ("a",)) for one in names]
    )
    scheduler = Scheduler(cluster, plugged(Fcfs(), Staging()), capabilities=frozenset({d.Copy, d.Drop}))
    waits = described("b:1", 1, pool="b:q", attributes={"data": ",".join(names)})
    copies_ = scheduler.step(0.0, [ev.JobSubmitted(0.0, waits)])
    assert [one.dataset for one in copies_] == names[:4]
    (one,) = scheduler.state.jobs.values()
    said = scheduler.state.why_waiting(one)
    assert (
        said.startswith("it waits for datasets d0 (0 % ")
        and said.endswith(" and 995 more")
        and len(said) < 600
    )


def test_names_that_are_none_are_told_as_they_are():
    commas = "; commas stand between names"
    for data, hint in {"../../etc/passwd": "", "-rf": "", "a b": commas, "d'; rm": commas}.items():
        found = run(staging(), [job("b:1", data)])
        (one,) = found.scheduler.state.jobs.values()
        assert one.refusal == f"dataset {data!r} is not configured (key datasets){hint}"
