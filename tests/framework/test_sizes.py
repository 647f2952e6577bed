"""The index of a queue by size: what it yields is what a walk along the queue would have found."""

from __future__ import annotations

from dataclasses import replace

from building import described, emulate, plugged, traced
from hypothesis import given, settings
from hypothesis import strategies as st

from headway import events as ev
from headway.decisions import Resize, Start
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription
from headway.plugins import Again
from headway.scheduler import Scheduler
from headway_plugins.orders.largest_first import LargestFirst
from headway_plugins.orders.shortest_first import ShortestFirst
from headway_plugins.policies.greedy import Greedy


class Fitting:
    """Starts nothing, or everything, that fits; remembers what it was offered."""

    def __init__(self, starting=False):
        self.starting, self.offered = starting, []

    @hookimpl
    def schedule(self, view):
        self.offered = []
        for job in view.fitting():
            self.offered.append(job.id)
            if self.starting:
                view.start(job)
        return view.made


def arrive(now, *jobs):
    return [ev.JobSubmitted(now, described(*job)) for job in jobs]


def test_it_offers_what_fits_in_queue_order():
    policy = Fitting()
    s = Scheduler(ClusterDescription.flat(4), plugged(policy))
    s.step(0, arrive(0, ("a", 3), ("b", 5), ("c", 1), ("d", 3), ("e", 4)))
    assert policy.offered == list("acde")


def test_what_has_become_too_large_meanwhile_is_left_out():
    policy = Fitting(starting=True)
    s = Scheduler(ClusterDescription.flat(4), plugged(policy))
    s.step(0, arrive(0, ("a", 3), ("b", 2), ("c", 1), ("d", 1)))
    assert policy.offered == list("ac")


def test_nothing_fits_in_a_full_machine():
    policy = Fitting()
    s = Scheduler(ClusterDescription.flat(4), plugged(policy))
    assert s.step(0, [*arrive(0, ("a", 4), ("b", 1)), ev.JobStarted(0, "a")]) == []
    assert policy.offered == []


def test_jobs_that_leave_and_come_back_are_known():
    policy = Fitting()
    s = Scheduler(ClusterDescription.flat(4), plugged(policy))
    s.step(0, arrive(0, ("a", 1), ("b", 1), ("c", 1)))
    s.step(1, [ev.JobHeld(1, "b"), ev.JobEnded(1, "c", "cancelled")])
    assert policy.offered == ["a"]
    s.step(2, [ev.JobReleased(2, "b")])
    assert policy.offered == ["a", "b"]
    s.step(3, [ev.JobChanged(3, described("a", 5)), ev.Tick(3)])
    assert policy.offered == ["b"]


class Grow:
    """Changes a waiting job's size when it is told to."""

    @hookimpl
    def react(self, state):
        return [Resize("a", 9)] if state.now == 1 else []


def test_a_waiting_job_whose_change_of_size_is_foreseen_is_found_under_the_new_one():
    policy = Fitting()
    s = Scheduler(ClusterDescription.flat(4), plugged(policy, Grow()))
    s.step(0, arrive(0, ("a", 1), ("b", 1)))
    s.step(1, [])
    assert policy.offered == ["b"]
    s.step(2, [ev.DecisionFailed(2, Resize("a", 9), "no")])
    assert policy.offered == ["a", "b"]


class Backwards:
    """An order made anew in each cycle, of which there is no index."""

    @hookimpl
    def order_queue(self, jobs):
        return list(reversed(jobs))


def test_under_an_order_of_each_cycle_it_is_the_same_by_a_walk():
    policy = Fitting(starting=True)
    s = Scheduler(ClusterDescription.flat(4), plugged(policy, Backwards()))
    made = s.step(0, arrive(0, ("a", 1), ("b", 2), ("c", 9), ("d", 1)))
    assert [d.job_id for d in made if isinstance(d, Start)] == list("dba")


class Walking(Greedy):
    """Greedy by a walk along the queue, in every cycle."""

    traits = replace(Greedy.traits, ask_again=Again.ANY_EVENT)

    @hookimpl
    def schedule(self, view):
        for job in view.queue:
            view.start(job)
        return view.made


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(1, 9), st.integers(1, 9), st.booleans()),
        min_size=1,
        max_size=60,
    ),
    st.sampled_from([None, LargestFirst, ShortestFirst]),
)
def test_greedy_by_the_index_is_greedy_by_a_walk(rows, order):
    jobs, submit = [], 0
    for at, (gap, processors, estimate, held) in enumerate(rows):
        submit += gap
        # Jobs with a begin time come into the queue later, and not in order of arrival.
        more = {"begin_time": submit + 7.0} if held else {}
        jobs.append(traced(str(at), processors, estimate, submit, **more))
    cluster = ClusterDescription.flat(8)
    orders = [order()] if order is not None else []
    assert (
        emulate(cluster, jobs, Greedy(), *orders).starts == emulate(cluster, jobs, Walking(), *orders).starts
    )
