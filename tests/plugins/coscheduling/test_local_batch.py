"""The batch system of the emulated sites: jobs start as planned, and a reservation keeps its nodes."""

from __future__ import annotations

import random

import numpy as np
import pytest
from gur_sites import random_queue, site

from headway.model import JobDescription, Request
from headway.workload import TraceJob
from headway_plugins.coscheduling.calls import Call, Granted
from headway_plugins.coscheduling.emulated_sites import EmulatedSites
from headway_plugins.coscheduling.local_batch import Arrival, LocalBatch, arrivals_of
from headway_plugins.coscheduling.queue_plan import Queued
from headway_plugins.coscheduling.site_book import SiteBook
from headway_plugins.coscheduling.site_policy import SitePolicy


def arrival(name, nodes, limit, submit, runtime=None):
    return Arrival(Queued(name, nodes, limit, submit), limit if runtime is None else runtime)


def test_jobs_start_in_their_places_and_move_forward_when_a_job_ends_early():
    batch = LocalBatch(
        site(4),
        [arrival("a", 4, 100, 0, 30), arrival("b", 4, 50, 1), arrival("c", 2, 10, 2), arrival("d", 1, 9, 40)],
    )
    batch.advance(20)
    assert (batch.started, batch.book.starts(20)) == ({"a": 0}, {"b": 100, "c": 150})
    batch.advance(1000)
    assert batch.started == {"a": 0, "b": 30, "c": 80, "d": 80}
    assert (batch.now, batch.book.busy, batch.book.queue) == (1000, [], [])


def test_the_queue_is_sorted_anew_when_a_running_job_ends():
    """At 0 s the larger job has the larger expansion factor, at 10 s the other job."""
    queue = [Queued("a", 4, 100, -20), Queued("b", 2, 50, -8)]
    book = site(4, (0, 10, 2), (0, 20, 2), queue=queue, policy=SitePolicy(xf_weight=1))
    assert book.starts(0) == {"a": 20, "b": 120}
    batch = LocalBatch(book, [])
    batch.advance(1000)
    assert batch.started == {"b": 10, "a": 60}


def test_a_reservation_keeps_its_nodes_to_its_end():
    batch = LocalBatch(site(4), [arrival("a", 4, 50, 5)])
    call = Call("set", "", "m-1-A", nodes=1, duration=40, earliest=10, latest=100)
    assert batch.book.set(call, 0) == Granted(10, 1)
    batch.advance(1000)
    assert batch.started == {"a": 50}


@pytest.mark.parametrize("seed", range(60))
def test_with_exact_limits_each_job_starts_at_its_planned_time(seed):
    rng = random.Random(seed)
    book = random_queue(rng)
    planned = book.starts(0)
    batch = LocalBatch(book, [arrival("late", rng.randint(1, book.nodes), rng.randint(1, 40), 7)])
    batch.advance(1e6)
    assert {job: start for job, start in batch.started.items() if job != "late"} == planned


def test_the_batch_system_goes_on_while_a_search_asks():
    batch = LocalBatch(site(4), [arrival("a", 4, 50, 5)])
    sites = EmulatedSites({"A": batch.book}, 0.0, 3.0, [batch])
    call = Call("set", "A", "m-1-A", nodes=4, duration=10, earliest=0, latest=1000)
    assert sites.carry_out(call) == Granted(3, 4)
    sites.pass_time(10)
    assert (sites.now, batch.started) == (13, {"a": 13})
    assert (sites.costs.calls, sites.costs.made) == (1, 1)


def test_what_a_cancelled_reservation_held_is_counted():
    sites = EmulatedSites({"A": SiteBook(4)}, latency=5.0)
    sites.carry_out(Call("set", "A", "m-1-A", nodes=3, duration=10, earliest=100, latest=1000))
    sites.carry_out(Call("cancel", "A", "m-1-A"))
    assert (sites.costs.cancelled, sites.costs.held_in_vain) == (1, 15.0)


def test_a_competitor_is_what_changes_a_book_but_the_metajob_itself():
    sites = EmulatedSites({"A": SiteBook(4)})
    for name in ("m", "n"):
        sites.carry_out(Call("set", "A", f"{name}-0-A", nodes=1, duration=9, latest=99))
    assert (sites.changed("m"), sites.changed("n")) == (True, False)


def trace_job(name, submit, processors, runtime, estimate):
    request = Request(processors=processors, walltime=estimate)
    return TraceJob(job=JobDescription(id=name, submit_time=submit, request=request), runtime=runtime)


def test_jobs_of_a_workload_on_nodes_of_several_processors():
    jobs = [trace_job("1", 0, 9, 10.0, 60.0), trace_job("2", 5, 800, 70.0, 60.0), trace_job("3", 6, 1, 0, 60)]
    found = arrivals_of(np.random.default_rng(1), jobs, 16, 8)
    assert found == [
        Arrival(Queued("1", 2, 60.0, 0), 10.0), Arrival(Queued("2", 16, 70.0, 5), 70.0),
    ]  # fmt: skip
    assert [one.runtime for one in arrivals_of(np.random.default_rng(1), jobs, 16, exact=True)] == [60, 70]


def test_limits_are_drawn_where_the_workload_has_none():
    jobs = [trace_job(str(n), n, 1, 100.0 * n, 100.0 * n) for n in range(1, 200)]
    found = arrivals_of(np.random.default_rng(1), jobs, 4)
    assert all(one.job.limit >= one.runtime for one in found)
    assert sum(one.job.limit > one.runtime for one in found) > 100
