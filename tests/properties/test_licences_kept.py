"""Licences are a further dimension of starts and bookings: the brute-force reference; what holds anywhere."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest
import tuned_reference as reference
from building import POLICIES, alike, emulate, node_cluster, traced
from hypothesis import given, settings
from hypothesis import strategies as st
from test_tuned_backfilling import Compared, conservative, easy

from headway import events as ev
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription, PoolDescription, Reservation
from headway.state import Status
from headway_adapters.emulated import Faults
from headway_plugins.placement.first_fit import FirstFit

TOTAL = 8
LICENCES = (("matlab", 3), ("ansys", 2))


@st.composite
def workloads(draw, pools=("",)):
    """Jobs in order of submission; many instants coincide on purpose, and most jobs want licences."""
    jobs, submit = [], 0
    for at in range(draw(st.integers(1, 12))):
        submit += draw(st.sampled_from([0, 0, 1, 2, 5]))
        estimate = draw(st.integers(1, 12))
        wanted = {name: draw(st.integers(0, total)) for name, total in LICENCES}
        licences = tuple((name, amount) for name, amount in wanted.items() if amount)
        runtime = draw(st.integers(1, estimate))
        size, pool = draw(st.integers(1, 5)), draw(st.sampled_from(pools))
        jobs.append(traced(str(at), size, estimate, submit, runtime=runtime, licences=licences, pool=pool))
    return jobs


OPTIONS = st.builds(
    reference.Options,
    bookings=st.integers(1, 3),
    queue_depth=st.one_of(st.none(), st.integers(1, 5)),
    window=st.one_of(st.none(), st.integers(1, 15)),
    resolution=st.one_of(st.none(), st.integers(1, 7)),
    shortest=st.booleans(),
    licences=st.just(LICENCES),
)


@settings(max_examples=200, deadline=None)
@given(workloads(), OPTIONS, st.booleans())
def test_each_cycle_is_the_reference(jobs, options, deep):
    if deep:
        options = reference.Options(
            options.bookings, options.queue_depth, None, options.window, options.resolution, False, LICENCES
        )
    cluster = msgspec.structs.replace(ClusterDescription.flat(TOTAL), licences=LICENCES)
    run = emulate(cluster, jobs, Compared(conservative(options) if deep else easy(options), options))
    assert run.problems == []
    assert all(start is not None for start in run.starts.values())


class Watched:
    """A policy after whose every cycle licences are added up: what runs, what is reserved, what is booked."""

    def __init__(self, policy):
        self.policy, self.state, self.total = policy, None, dict(LICENCES)

    @hookimpl
    def startup(self, state):
        self.state = state

    @hookimpl
    def observe(self, event):
        if isinstance(event, ev.LicencesChanged):
            self.total[event.licence] = event.total

    @hookimpl
    def schedule(self, view):
        had = self._spans()
        decisions = self.policy.schedule(view)
        spans = [*had, *(
            (view.now, view.now + job.expected_runtime, job.request.licences) for job in view.started
        )]  # fmt: skip
        for pool in self.state.domains.values():
            spans += [
                (b.start, b.start + b.job.expected_runtime, b.job.request.licences)
                for b in pool.view.bookings
                if b.job.status is Status.PENDING and b.start < float("inf")
            ]
        for name, total in self.total.items():
            already = max(_most(had, name, view.now), total)
            assert _most(spans, name, view.now) <= already, (name, spans)
        return decisions

    def _spans(self):
        return [
            (self.state.now, max(job.expected_end, self.state.now + 0.001), job.request.licences)
            for job in self.state.running_jobs()
        ]


def _most(spans, name, now):
    """The most of a licence that is taken at any moment from now on."""
    starts = {now, *(start for start, _, _ in spans)}
    return max(
        sum(dict(licences).get(name, 0) for start, end, licences in spans if start <= moment < end)
        for moment in starts
    )


def never_too_many(run, licences):
    """At no moment more is in use than there is."""
    changes = Counter()
    for result in run.results.values():
        for name, amount in result.job.request.licences:
            changes[result.start_time, 1, name] += amount
            changes[result.end_time, 0, name] -= amount
    used = Counter()
    for (_, _, name), amount in sorted(changes.items()):
        used[name] += amount
        assert used[name] <= dict(licences)[name]


TWO_POOLS = ClusterDescription(
    "cluster", (PoolDescription("left", 4), PoolDescription("right", 5)), licences=LICENCES
)
CLUSTERS = {
    "nodes": (node_cluster(*alike(4, 2), licences=LICENCES), ("",)),
    "two pools": (TWO_POOLS, ("left", "right")),
}


@pytest.mark.parametrize("policy", sorted(POLICIES))
@pytest.mark.parametrize("where", sorted(CLUSTERS))
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_nothing_is_given_twice_and_everybody_runs(where, policy, data):
    cluster, pools = CLUSTERS[where]
    jobs = data.draw(workloads(pools))
    small = [job for job in jobs if job.job.pool != "left" or job.job.request.processors <= 4]
    run = emulate(cluster, small, Watched(POLICIES[policy]()), FirstFit())
    assert run.problems == []
    assert all(start is not None for start in run.starts.values())
    never_too_many(run, LICENCES)


@settings(max_examples=60, deadline=None)
@given(workloads(), st.sampled_from(sorted(POLICIES)), st.lists(st.tuples(
    st.integers(0, 30), st.sampled_from(["matlab", "ansys"]), st.integers(0, 4)
), max_size=4))  # fmt: skip
def test_amounts_that_change_hold_up_only_who_needs_them(jobs, policy, changes):
    changes = [*changes, (60, "matlab", 3), (60, "ansys", 2)]
    faults = Faults(licences=[{"at": at, "licence": name, "total": total} for at, name, total in changes])
    cluster = msgspec.structs.replace(ClusterDescription.flat(TOTAL), licences=LICENCES)
    run = emulate(cluster, jobs, Watched(POLICIES[policy]()), faults=faults)
    assert run.problems == []
    assert all(start is not None for start in run.starts.values())


@settings(max_examples=60, deadline=None)
@given(
    workloads(), st.sampled_from(sorted(POLICIES)), st.integers(0, 12), st.integers(1, 12), st.integers(1, 3)
)
def test_what_is_reserved_is_there_for_whom_it_is_reserved(jobs, policy, start, length, amount):
    kept = Reservation("r", start, start + length, licences=(("matlab", amount),))
    cluster = msgspec.structs.replace(ClusterDescription.flat(TOTAL), licences=LICENCES, reservations=(kept,))
    run = emulate(cluster, jobs, Watched(POLICIES[policy]()))
    assert run.problems == []
    # By their limits, nobody from outside has any of it meanwhile.
    for moment in range(start, start + length):
        used = sum(
            dict(r.job.request.licences).get("matlab", 0)
            for r in run.results.values()
            if r.start_time is not None and r.start_time <= moment < r.end_time
        )
        assert used <= 3 - amount
