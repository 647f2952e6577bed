"""What operators tune in backfilling: each cycle is the brute-force reference; what holds on nodes, too."""

from __future__ import annotations

import pytest
import tuned_reference as reference
from building import alike, emulate, node_cluster, traced
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.hookspecs import hookimpl
from headway.model import ClusterDescription
from headway.state import Status
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.conservative import Conservative, ConservativeOptions
from headway_plugins.policies.easy import Easy, EasyOptions

TOTAL = 8
USERS = ("ann", "bob", "carl")


@st.composite
def workloads(draw):
    """Jobs in order of submission; many instants coincide on purpose."""
    jobs, submit = [], draw(st.sampled_from([0, 3, 1000]))
    for at in range(draw(st.integers(1, 14))):
        submit += draw(st.sampled_from([0, 0, 1, 2, 5, 9]))
        estimate = draw(st.integers(1, 12))
        runtime = draw(st.integers(1, estimate))
        user = draw(st.sampled_from(USERS))
        size = draw(st.integers(1, TOTAL))
        jobs.append(traced(str(at), size, estimate, submit, runtime=runtime, user=user))
    return jobs


def bounds(most):
    return st.one_of(st.none(), st.integers(1, most))


TUNED = st.builds(
    reference.Options,
    bookings=st.integers(1, 4),
    queue_depth=bounds(5),
    queue_depth_per_user=bounds(3),
    window=bounds(15),
    resolution=bounds(7),
    shortest=st.booleans(),
)


def easy(options):
    return Easy(
        EasyOptions(
            bookings=options.bookings,
            queue_depth=options.queue_depth,
            queue_depth_per_user=options.queue_depth_per_user,
            window=options.window,
            resolution=options.resolution,
            backfill="shortest-first" if options.shortest else "in-order",
        )
    )


def conservative(options):
    return Conservative(
        ConservativeOptions(
            depth=options.bookings,
            queue_depth=options.queue_depth,
            queue_depth_per_user=options.queue_depth_per_user,
            window=options.window,
            resolution=options.resolution,
        )
    )


class Compared:
    """A policy whose every cycle is worked out once more by the reference."""

    def __init__(self, policy, options):
        self.policy, self.options, self.cycles = policy, options, 0

    @hookimpl
    def schedule(self, view):
        queue = [
            reference.Waiting(
                job.id, job.processors, int(job.expected_runtime), job.user, job.request.licences
            )
            for job in view.queue
            if job.status is Status.PENDING
        ]
        running = [(int(end), size, job.request.licences) for end, _, size, job in view.running]
        started, booked = reference.cycle(self.options, view.free, running, queue, int(view.now))
        decisions = self.policy.schedule(view)
        assert {d.job_id for d in decisions} == set(started)
        if decisions and self.options.window is None and view.free:
            found = {b.job.id: b.start for b in view.bookings}
            assert found == {name: start for name, start in booked.items() if name in found}
        self.cycles += 1
        return decisions


def compared(jobs, policy, options):
    run = emulate(ClusterDescription.flat(TOTAL), jobs, Compared(policy, options))
    assert run.problems == []
    assert all(start is not None for start in run.starts.values())


@settings(max_examples=250, deadline=None)
@given(workloads(), TUNED)
def test_easy_is_the_reference_in_every_cycle(jobs, options):
    compared(jobs, easy(options), options)


@settings(max_examples=200, deadline=None)
@given(workloads(), TUNED, st.booleans())
def test_conservative_is_the_reference_in_every_cycle(jobs, options, everybody):
    options = reference.Options(
        None if everybody else options.bookings,
        options.queue_depth, options.queue_depth_per_user, options.window, options.resolution,
    )  # fmt: skip
    compared(jobs, conservative(options), options)


CLUSTERS = [
    pytest.param(ClusterDescription.flat(TOTAL), id="flat"),
    pytest.param(node_cluster(*alike(4, 2)), id="nodes"),
]


def starts(cluster, jobs, policy):
    run = emulate(cluster, jobs, policy, FirstFit())
    assert run.problems == []
    return run.starts


@pytest.mark.parametrize("cluster", CLUSTERS)
@settings(max_examples=40, deadline=None)
@given(jobs=workloads(), bookings=st.integers(1, 5))
def test_easy_with_n_bookings_is_conservative_of_that_depth(cluster, jobs, bookings):
    deep = Conservative(ConservativeOptions(depth=bookings))
    assert starts(cluster, jobs, Easy(EasyOptions(bookings=bookings))) == starts(cluster, jobs, deep)


@pytest.mark.parametrize("cluster", CLUSTERS)
@settings(max_examples=40, deadline=None)
@given(
    jobs=workloads(),
    wide=st.sampled_from(
        [{"queue_depth": 99}, {"queue_depth_per_user": 99}, {"window": 999}, {"resolution": 1}]
    ),
)
def test_bounds_that_are_never_reached_change_nothing(cluster, jobs, wide):
    assert starts(cluster, jobs, Easy(EasyOptions(**wide))) == starts(cluster, jobs, Easy())
    exact = starts(cluster, jobs, Conservative())
    assert starts(cluster, jobs, Conservative(ConservativeOptions(**wide))) == exact


class Watched:
    """A policy whose bookings are held against its options after each cycle."""

    def __init__(self, policy, options):
        self.policy, self.options = policy, options

    @hookimpl
    def schedule(self, view):
        decisions = self.policy.schedule(view)
        options, bookings = self.options, view.bookings
        assert len(bookings) <= options.bookings
        started = {d.job_id for d in decisions}
        queue = [
            reference.Waiting(job.id, job.processors, int(job.expected_runtime), job.user)
            for job in view.queue
        ]
        looked_at = {job.name for job in reference.looked_at(options, queue, started)}
        assert {b.job.id for b in bookings} <= looked_at
        for booking in bookings:
            if options.window is not None:
                assert booking.start <= view.now + options.window
            assert booking.start == view.now or booking.start % (options.resolution or 1) == 0
        return decisions


@settings(max_examples=80, deadline=None)
@given(workloads(), TUNED)
def test_on_nodes_bookings_keep_to_the_options(jobs, options):
    run = emulate(node_cluster(*alike(4, 2)), jobs, Watched(easy(options), options), FirstFit())
    assert run.problems == []
    assert all(start is not None for start in run.starts.values())
