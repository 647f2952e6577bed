"""Hooks whose answers change with time: a run is as if each event made everything be looked at anew.

The reference is brute force: its own loop for orders, and a plugin that has every pool looked at from
scratch at each event for the rest.
"""

from __future__ import annotations

import numpy as np
import pytest
import reference
from building import POLICIES, alike, emulate, node_cluster, traced
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headway import workload
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription, PoolDescription
from headway.workload.filters import offered_load, scale_arrivals
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.greedy import Greedy
from headway_plugins.policies.k_reserved import KReserved, KReservedOptions
from headway_plugins.policies.window import Window, WindowOptions

TOTAL = 8
MORE = {
    **POLICIES,
    "greedy": Greedy,
    "window": lambda: Window(WindowOptions(size=3)),
    "k-reserved": lambda: KReserved(KReservedOptions()),
}


@st.composite
def workloads(draw, least: int = 1):
    """Jobs in order of submission; many instants coincide on purpose."""
    jobs, submit = [], 0
    for _ in range(draw(st.integers(2, 16))):
        submit += draw(st.sampled_from([0, 0, 1, 2, 5, 9]))
        estimate = draw(st.integers(least, 12))
        jobs.append(reference.Job(submit, draw(st.integers(1, TOTAL)), estimate, draw(st.integers(0, 15))))
    return jobs


def expansion(now: float, submit: float, estimate: float) -> float:
    """The expansion factor that a job would have if it started now, negative: largest first."""
    return -(now - submit + estimate) / estimate


class ExpansionFactor:
    """The job first that waits longest in proportion to its estimate; with ``until``, only before that."""

    def __init__(self, until: float = float("inf")) -> None:
        self.until = until

    @hookimpl
    def order_queue(self, jobs, state):
        if state.now >= self.until:
            return None
        return sorted(jobs, key=lambda job: expansion(state.now, job.submit_time, job.estimate))


def ordered(policy: reference.Policy, until: float = float("inf")) -> reference.Policy:
    def decide(queue, running, free, now):
        if now < until:
            queue = sorted(queue, key=lambda entry: expansion(now, entry[1].submit, entry[1].estimate))
        return policy(queue, running, free, now)

    return decide


def traced_jobs(jobs):
    return [
        traced(str(at), j.processors, j.estimate, j.submit, runtime=j.runtime) for at, j in enumerate(jobs)
    ]


def starts(jobs, *plugins, cluster=None, **more):
    run = emulate(cluster or ClusterDescription.flat(TOTAL), jobs, *plugins, **more)
    assert run.problems == []
    return [run.starts[job.job.id] for job in jobs]


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=150, deadline=None)
@given(workloads(), st.sampled_from([float("inf"), 20]))
def test_an_order_that_changes_is_that_of_each_event(policy, jobs, until):
    expected = reference.schedule(jobs, TOTAL, ordered(getattr(reference, policy), until))
    assert starts(traced_jobs(jobs), ExpansionFactor(until), POLICIES[policy]()) == expected


def test_under_easy_an_arrival_that_does_not_fit_may_change_who_is_first():
    """The head's booking moves with the order, so another may start although nothing became free."""
    jobs = [
        reference.Job(0, 6, 100, 100),
        reference.Job(1, 8, 1000, 1000),
        reference.Job(2, 2, 120, 120),
        reference.Job(90, 8, 10, 10),
        reference.Job(95, 8, 1, 1),
    ]
    expected = reference.schedule(jobs, TOTAL, ordered(reference.easy))
    assert starts(traced_jobs(jobs), ExpansionFactor(), POLICIES["easy"]()) == expected


@pytest.mark.traces
def test_a_trace_under_easy_by_expansion_factor(trace_dir):
    """Records 1001 to 6000 of CTC-SP2 at load 0.8."""
    trace = workload.read_swf(next(trace_dir.glob("CTC-SP2*")))
    trace = trace.part(slice(1000, 6000))
    trace = scale_arrivals(trace, offered_load(trace, 430) / 0.8)
    jobs, _ = workload.trace_jobs(trace, 430)
    again = [
        reference.Job(job.job.submit_time, job.job.request.processors, job.job.request.walltime, job.runtime)
        for job in jobs
    ]
    expected = reference.schedule(again, 430, ordered(reference.easy))
    found = starts(jobs, ExpansionFactor(), POLICIES["easy"](), cluster=ClusterDescription.flat(430))
    differing = np.flatnonzero(np.asarray(found) != np.asarray(expected))
    assert len(differing) == 0


# ---------------------------------------------------------------- the other hooks


class Alarm:
    """Brute force: at each event, all pools are looked at from scratch."""

    @hookimpl
    def observe(self, event, state):
        for pool in state.domains.values():
            pool.touch()


def by_night(now: float) -> bool:
    return now % 12 >= 6


class VetoByDay:
    """Wide jobs start by night only."""

    @hookimpl
    def veto(self, decision, state):
        job = state.jobs[decision.job_id]
        return "by night" if job.processors > 3 and not by_night(state.now) else None


class ReviseByDay:
    @hookimpl
    def revise(self, decisions, state):
        return [
            d for d in decisions if by_night(state.now) or state.jobs[getattr(d, "job_id", "")].processors < 4
        ]


class KeepByDay:
    """By day, four processors are kept from 6 s later on for a job that never comes into a queue."""

    @hookimpl
    def prepare(self, view):
        phantom = next((job for job in view._state.jobs.values() if job.name == "phantom"), None)
        if phantom is not None and not by_night(view.now):
            view.book(phantom, after=view.now + 6)


class PlaceByNight:
    """Wide jobs find no place by day."""

    @hookimpl
    def place(self, job, offer, view):
        return None if job.processors < 4 or by_night(view.now) else ()


@settings(max_examples=250, deadline=None)
@given(
    workloads(),
    st.sampled_from(sorted(MORE)),
    st.sampled_from([VetoByDay, ReviseByDay, KeepByDay, ExpansionFactor]),
)
def test_answers_by_the_clock_are_those_of_each_event(jobs, policy, kind):
    phantom = traced("phantom", 4, 5, 0, name="phantom", held=True)
    jobs = [phantom, *traced_jobs(jobs)]
    assert starts(jobs, kind(), MORE[policy]()) == starts(jobs, Alarm(), kind(), MORE[policy]())


@settings(max_examples=120, deadline=None)
@given(workloads(), st.sampled_from(sorted(MORE)))
@example([reference.Job(0, 4, 1, 0)] + [reference.Job(0, 1, 1, 0)] * 14, "k-reserved")
def test_places_by_the_clock_are_those_of_each_event(jobs, policy):
    jobs, cluster = traced_jobs(jobs), node_cluster(*alike(4, 2))

    def run(*more):
        # Policies count: each run has its own.
        return starts(jobs, *more, PlaceByNight(), MORE[policy](), FirstFit(), cluster=cluster)

    assert run() == run(Alarm())


class LeastServedPool:
    """The order of one pool follows what runs in the other."""

    @hookimpl
    def order_queue(self, jobs, state):
        busy = sum(pool.total - pool.free for pool in state.domains.values())
        return sorted(jobs, key=lambda job: (job.processors * (1 if busy % 2 else -1), job.seq))


@settings(max_examples=150, deadline=None)
@given(workloads(), st.lists(st.booleans(), min_size=16, max_size=16), st.sampled_from(sorted(MORE)))
def test_what_happens_in_one_pool_may_change_the_order_in_another(jobs, sides, policy):
    cluster = ClusterDescription("two", (PoolDescription("a", TOTAL), PoolDescription("b", TOTAL)))
    jobs = [
        traced(str(at), j.processors, j.estimate, j.submit, runtime=j.runtime, pool="b" if side else "a")
        for at, (j, side) in enumerate(zip(jobs, sides, strict=False))
    ]

    def run(*more):
        return starts(jobs, *more, LeastServedPool(), MORE[policy](), cluster=cluster)

    assert run() == run(Alarm())
