"""Several emulated clusters with one clock: as one cluster with their pools, and what lies between."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from building import emulate, federated, told, traced
from building import traced_at_home as job
from hypothesis import given, settings
from hypothesis import strategies as st

from headway import decisions as d
from headway import events as ev
from headway.errors import UserError
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription, Dataset, Link, PoolDescription, Site, Store
from headway.workload.jobs import Follows
from headway_adapters.emulated import Faults
from headway_plugins.policies.easy import Easy
from headway_plugins.policies.fcfs import Fcfs

HOUR, DAY = 3600.0, 86400.0


class Wishes:
    """Makes decisions at their times."""

    def __init__(self, *wishes: tuple[float, d.Decision]) -> None:
        self.wishes = list(wishes)

    @hookimpl
    def startup(self, state: Any) -> None:
        for time, _ in self.wishes:
            state.wake_at(time, next(iter(state.pools.values())))

    @hookimpl
    def react(self, state: Any) -> list[d.Decision]:
        due = [decision for time, decision in self.wishes if time <= state.now]
        self.wishes = [wish for wish in self.wishes if wish[0] > state.now]
        return due


A, B = Site("a"), Site("b")
STORED = Site("a", store=Store()), Site("b", store=Store(capacity=1000))
WIRE = Link("a", "b", bandwidth=10.0, latency=5.0)
DATA = Dataset("d", 600, ("a",)), Dataset("e", 500, ("a",))

JOBS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(1, 4), st.integers(1, 50), st.integers(0, 20)),
    min_size=1, max_size=25,
)  # fmt: skip


@given(rows=JOBS)
@settings(max_examples=60, deadline=None)
def test_clusters_by_themselves_run_as_pools_of_one_cluster_do(rows):
    jobs, now = [], 0.0
    for at, (site, processors, seconds, later) in enumerate(rows):
        now += later
        jobs.append(job(f"{site}:{at}", processors, seconds, now))
    apart = federated(A, B, Site("c"))
    one = emulate(msgspec.structs.replace(apart, sites=None), jobs, Easy())
    several = emulate(apart, jobs, Easy())
    assert several.results == one.results
    assert several.decisions == one.decisions
    assert several.adapter.rounds == one.adapter.rounds


# ---------------------------------------------------------------------- routes


def test_a_waiting_job_goes_to_another_cluster_and_keeps_its_id():
    cluster = federated(A, B, links=[WIRE])
    jobs = [job("a:1", 4, 100), job("a:2", 4, 30)]
    run = emulate(cluster, jobs, Fcfs(), Wishes((10, d.Route("a:2", "b:q", "b is empty"))))
    assert run.results["a:2"].start_time == 15.0 and run.results["a:2"].pool == "b:q"
    assert told(run, ev.JobRouted) == [ev.JobRouted(15.0, "a:2", "b:q")]
    assert list(run.results) == ["a:1", "a:2"] and set(run.states.values()) == {"completed"}
    assert run.problems == []


def test_on_its_way_it_starts_nowhere_and_says_so():
    why = {}

    class Asks:
        @hookimpl
        def observe(self, event: ev.Event, state: Any) -> None:
            if state.now == 12.0 and "a:2" in state.jobs:
                why["a:2"] = state.why_waiting(state.jobs["a:2"])

    jobs = [job("a:1", 4, 12), job("a:2", 4, 30)]
    run = emulate(federated(A, B, links=[WIRE]), jobs, Fcfs(), Asks(), Wishes((10, d.Route("a:2", "b:q"))))
    assert why == {"a:2": "it is on its way to pool 'b:q'"}
    assert run.starts["a:2"] == 15.0


def test_a_job_comes_home_again():
    jobs = [job("a:1", 4, 100), job("b:1", 4, 100), job("a:2", 4, 30)]
    wishes = Wishes((10, d.Route("a:2", "b:q")), (20, d.Route("a:2", "a:q")))
    run = emulate(federated(A, B), jobs, Fcfs(), wishes)
    assert [event.time for event in told(run, ev.JobRouted)] == [10.0, 20.0]
    assert run.starts["a:2"] == 100.0 and run.results["a:2"].pool == "a:q"


def test_a_job_changes_its_pool_in_one_cluster():
    cluster = ClusterDescription("one", (PoolDescription("p", 2), PoolDescription("q", 2)))
    jobs = [traced("1", 2, 100, pool="p"), traced("2", 2, 10, pool="p")]
    run = emulate(cluster, jobs, Fcfs(), Wishes((5, d.Route("2", "q"))))
    assert run.starts["2"] == 5.0 and run.results["2"].pool == "q"


@pytest.mark.parametrize(
    ("route", "more", "why"),
    [
        (d.Route("a:2", "c:q"), {}, "needs 4 processors, pool 'c:q' has 2"),
        (d.Route("a:1", "b:q"), {}, ""),
        (d.Route("a:3", "b:q"), {}, "waits for other jobs"),
        (d.Route("a:4", "b:q"), {}, "other jobs wait for job a:4"),
    ],
)
def test_what_cannot_go_stays(route, more, why):
    from headway.model import Dependency

    cluster = federated(A, B, Site("c"))
    pools = (*cluster.pools[:2], PoolDescription("c:q", 2))
    cluster = msgspec.structs.replace(cluster, pools=pools)
    jobs = [
        job("a:1", 4, 100), job("a:2", 4, 10), job("a:4", 4, 10),
        job("a:3", 1, 10, dependencies=(Dependency("ended", "a:4"),)),
    ]  # fmt: skip
    run = emulate(cluster, jobs, Fcfs(), Wishes((10, route)))
    failed = told(run, ev.DecisionFailed)
    if why:
        assert len(failed) == 1 and why in failed[0].message
    else:
        # A running job: the scheduler itself knows better.
        assert failed == [] and "job a:1 is running; not sent on" in run.problems[0]
    assert told(run, ev.JobRouted) == []
    assert set(run.states.values()) == {"completed"}


@given(rows=JOBS, routes=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 24), st.sampled_from("abc"))))
@settings(max_examples=60, deadline=None)
def test_jobs_that_are_sent_about_run_once_each(rows, routes):
    jobs, now = [], 0.0
    for at, (site, processors, seconds, later) in enumerate(rows):
        now += later
        jobs.append(job(f"{site}:{at}", processors, seconds, now))
    ids = [one.job.id for one in jobs]
    wishes = [(float(at), d.Route(ids[which % len(ids)], f"{to}:q")) for at, which, to in routes]
    links = [Link("a", "b", 1.0, 7.0), Link("b", "c", 1.0, 3.0)]
    run = emulate(federated(A, B, Site("c"), links=links), jobs, Easy(), Wishes(*wishes))
    assert list(run.results) == ids
    for one in run.results.values():
        assert one.state == "completed" and one.starts == 1
    # What the scheduler believes is what there is.
    assert not run.scheduler.state.jobs and not told(run, ev.DecisionFailed)
    for domain in run.scheduler.state.domains.values():
        assert domain.free == domain.total


# ---------------------------------------------------------------------- data


def test_a_copy_takes_its_link_and_then_a_job_can_read_it():
    jobs = [
        job("b:1", seconds=10, attributes={"data": "d"}),
        job("b:2", seconds=10, submit=200, attributes={"data": "d"}),
    ]
    run = emulate(
        federated(*STORED, links=[WIRE], datasets=DATA), jobs, Fcfs(), Wishes((0, d.Copy("d", "b", "a")))
    )
    assert told(run, ev.DatasetCopied) == [ev.DatasetCopied(65.0, "d", "b", "a", 65.0)]
    progress = [(event.time, event.done) for event in told(run, ev.DatasetCopying)]
    assert progress[0] == (0.0, 0) and progress[1:] == [(16.25, 112), (32.5, 275), (48.75, 437)]
    # The cluster itself refuses what cannot be read there.
    refused = {event.message for event in told(run, ev.DecisionFailed)}
    assert refused == {"job b:1 reads d, which b does not have"}
    assert run.starts["b:1"] is not None and run.starts["b:1"] >= 65.0 and run.starts["b:2"] == 200.0


@pytest.mark.parametrize(("fair", "ends"), [(False, [65.0, 55.0]), (True, [115.0, 105.0])])
def test_copies_share_a_link_or_do_not(fair, ends):
    datasets = Dataset("d", 600, ("a",)), Dataset("e", 500, ("a",))
    cluster = federated(STORED[0], Site("b", store=Store()), links=[WIRE], datasets=datasets)
    wishes = Wishes((0, d.Copy("d", "b", "a")), (0, d.Copy("e", "b", "a")))
    run = emulate(cluster, [job("a:1", submit=500)], Fcfs(), wishes, fair_links=fair, start=0.0)
    there = {event.dataset: event.time for event in told(run, ev.DatasetCopied)}
    assert [there["d"], there["e"]] == ends


def test_a_store_is_not_filled_beyond_its_size_and_is_emptied():
    wishes = Wishes(
        (0, d.Copy("d", "b", "a")), (1, d.Copy("e", "b", "a")), (70, d.Drop("d", "b")),
        (71, d.Copy("e", "b", "a")), (72, d.Drop("d", "a")),
    )  # fmt: skip
    cluster = federated(*STORED, links=[WIRE], datasets=DATA)
    run = emulate(cluster, [job("a:1", submit=500)], Fcfs(), wishes, start=0.0)
    assert "the store of b has room for 400 bytes, and dataset e has 500; not copied" in run.problems[0]
    assert told(run, ev.DatasetLost) == [ev.DatasetLost(70.0, "d", "b")]
    assert [(event.dataset, event.time) for event in told(run, ev.DatasetCopied)] == [
        ("d", 65.0),
        ("e", 126.0),
    ]
    (failed,) = told(run, ev.DecisionFailed)
    assert failed.message == "dataset d was at a from the beginning and stays there"


@given(seed=st.integers(0, 50))
@settings(max_examples=20, deadline=None)
def test_a_copy_that_breaks_leaves_nothing(seed):
    wishes = Wishes((0, d.Copy("d", "b", "a")))
    cluster = federated(*STORED, links=[WIRE], datasets=DATA)
    faults = Faults(copy_failure_rate=0.999)
    run = emulate(cluster, [job("a:1", submit=500)], Fcfs(), wishes, faults=faults, seed=seed, start=0.0)
    (broken,) = told(run, ev.CopyFailed)
    assert 0 <= broken.done < 600 and broken.time == 5.0 + broken.done / 10.0
    assert run.scheduler.state.catalogue.used("b") == 0 and not run.scheduler.state.catalogue.copies


def test_nothing_passes_where_there_is_no_link():
    links = [Link("a", "b", 0.0)]
    wishes = Wishes((0, d.Copy("d", "b", "a")))
    run = emulate(federated(*STORED, links=links, datasets=DATA), [job("a:1")], Fcfs(), wishes)
    assert "there is no link from a to b; not copied" in run.problems[0]


# ---------------------------------------------------------------------- calendars


def test_a_site_starts_jobs_when_its_calendar_has_it_open():
    # From 20:00 to 6:00 by the clock in Oslo, where it is an hour later; the run begins on a Monday at 0:00.
    nights = tuple((day * 86400 + 20 * 3600, day * 86400 + 30 * 3600) for day in range(6))
    spans = ((0, 6 * 3600), *nights, (6 * 86400 + 20 * 3600, 7 * 86400))
    site = Site("a", zone="Europe/Oslo", calendar=spans)
    jobs = [job("a:1", 1, 10, 0), job("a:2", 1, 10, 5 * HOUR), job("a:3", 1, 10, 30 * HOUR)]
    run = emulate(federated(site, B), jobs, Fcfs(), epoch=4 * DAY)
    assert run.starts == {"a:1": 0.0, "a:2": 19 * HOUR, "a:3": 43 * HOUR}
    changes = [(event.time / HOUR, event.pool.open) for event in told(run, ev.PoolChanged)]
    assert changes[:3] == [(5.0, False), (19.0, True), (29.0, False)]


def test_chains_over_several_sites_are_refused():
    jobs = [job("a:1"), job("b:1")]
    with pytest.raises(UserError, match="job b:1 follows job a:1 of another site"):
        emulate(federated(A, B), jobs, Fcfs(), chains={"b:1": Follows("a:1", 10.0)})


def test_a_job_without_a_site_is_refused():
    with pytest.raises(UserError, match="job x: expected pools of one site, found nowhere"):
        emulate(federated(A, B), [traced("x", pool="nowhere")], Fcfs())
