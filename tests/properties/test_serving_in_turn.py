"""Serving a queue in turn is to start or book one job after the other, however few bookings it makes."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import msgspec
import pytest
from building import PLACES, described, emulate, node_cluster, plugged, traced
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_no_oversubscription import NAMES, NODES, Meddler, flat_workloads, node_workloads, reservations

from headway import events as ev
from headway.decisions import SetTimeLimit, Start
from headway.energy.profiles import load_profile, with_energy
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription, NodeDescription, Request, SwitchDescription
from headway.plugins import Again
from headway.resources.profile import Profile
from headway.scheduler import Scheduler
from headway.state import Status
from headway.state.by_size import JobsBySize
from headway.view import FlatView, NodeView, View
from headway.view.ahead import Ahead
from headway.workload.jobs import TraceJob, dedicated
from headway_adapters.emulated import Faults
from headway_plugins.energy.power_down import PowerDownIdle
from headway_plugins.placement.best_fit import BestFit
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.placement.topology.plugin import Tree
from headway_plugins.policies.conservative import Conservative, ConservativeOptions
from headway_plugins.policies.dedicated import Dedicated, DedicatedOptions
from headway_plugins.policies.easy import Easy

INF = float("inf")


class OneByOne:
    """Conservative backfilling in its plainest words: no slate is kept, nothing is put off."""

    def __init__(self, depth=None):
        self.depth = depth

    @hookimpl
    def schedule(self, view):
        view.forget()
        booked = 0
        for job in view.queue:
            if view.start(job, "fits before all bookings of earlier jobs") is None and (
                self.depth is None or booked < self.depth
            ):
                view.book(job)
                booked += 1
        return view.made


class Looking(Conservative):
    """Conservative backfilling, of which somebody wants to see the bookings now and then."""

    def __init__(self, depth=None, every=1, anew=False):
        super().__init__(ConservativeOptions(depth=depth))
        self.every, self.cycles, self.anew = every, 0, anew
        # Else jobs that came to the tail and do not fit are booked with the next cycle that has other news.
        if every == 1:
            self.traits = replace(self.traits, ask_again=Again.ANY_EVENT)

    @hookimpl
    def schedule(self, view):
        if not self.anew:
            return super().schedule(view)
        view.forget()
        view.serve(view.queue, "fits before all bookings of earlier jobs", self.options.depth)
        return view.made

    @hookimpl
    def control(self, state):
        self.cycles += 1
        if self.every and self.cycles % self.every == 0:
            for pool in state.domains.values():
                assert pool.view.bookings is pool.view.bookings
        return []


class Notes:
    """What is booked after each cycle in which the policy was asked: who, when, where; what that leaves."""

    def __init__(self):
        self.seen, self.extra = {}, {}

    @hookimpl
    def control(self, state):
        for pool in state.domains.values():
            view = pool.view
            waiting = [job for job in pool.queue if job.status is Status.PENDING]
            bookings = [b for b in view.bookings if b.job in waiting]
            self.seen[state.now, pool.name] = [(b.job.id, b.start, b.placement) for b in bookings]
            self.extra[state.now, pool.name] = [(b.job.id, b.extra) for b in bookings]
        return []


class Impatient:
    """Changes limits of waiting and of running jobs."""

    def __init__(self, seed):
        import numpy as np

        self.rng = np.random.default_rng(seed)

    @hookimpl
    def react(self, state):
        for job in list(state.jobs.values()):
            if self.rng.random() < 0.05 and job.status in (Status.PENDING, Status.RUNNING):
                yield SetTimeLimit(job.id, job.estimate + float(self.rng.integers(1, 9)))


@st.composite
def long_queues(draw):
    """Many small and large jobs for a small machine, some of which end early."""
    jobs, submit = [], 0
    for at in range(draw(st.integers(1, 40))):
        submit += draw(st.sampled_from([0, 0, 0, 1, 2, 7]))
        estimate = draw(st.sampled_from([1, 2, 3, 5, 9, 14, 30]))
        runtime = draw(st.sampled_from([estimate, estimate, estimate // 2, 0]))
        jobs.append(traced(f"j{at}", draw(st.integers(1, 8)), estimate, submit, runtime=runtime))
    return jobs


def compare(cluster, jobs, depth, every, *others, anew=False):
    """That both ways of serving give the same starts and, where all is looked at, the same bookings.

    ``anew``: no bookings stay over an arrival. Best fit would put them on other nodes by then, since it looks
    at what started behind them."""
    notes = Notes(), Notes()
    plain = emulate(cluster, jobs, OneByOne(depth), *(other() for other in others), notes[0])
    watched = [notes[1]] if every == 1 else []
    ours = emulate(cluster, jobs, Looking(depth, every, anew), *(other() for other in others), *watched)
    assert plain.problems == ours.problems == []
    rows = [{r.job.id: (r.start_time, r.placement) for r in run.results.values()} for run in (plain, ours)]
    assert rows[1] == rows[0]
    for moment, seen in notes[1].seen.items():
        assert seen == notes[0].seen[moment], moment


DEPTHS = st.sampled_from([None, None, 1, 2, 5])
OFTEN = st.sampled_from([0, 0, 1, 1, 3])


@settings(max_examples=300, deadline=None)
@given(long_queues(), DEPTHS, OFTEN)
def test_on_a_flat_pool(jobs, depth, every):
    compare(ClusterDescription.flat(8), jobs, depth, every)


@settings(max_examples=300, deadline=None)
@given(long_queues(), DEPTHS, OFTEN)
def test_when_everybody_who_is_in_the_way_is_looked_for(jobs, depth, every):
    # Else where few are owed they are booked without a look, and queues of examples are short.
    with patch.object(JobsBySize, "count", 0):
        compare(ClusterDescription.flat(8), jobs, depth, every)


#: j3 starts behind j2, which is not booked with a depth of 1, and runs past the start of j1.
OVERTAKEN = [traced("j0", 5, 9), traced("j1", 6, 9), traced("j2", 4, 9), traced("j3", 2, 30)]


@settings(max_examples=60, deadline=None)
@given(long_queues(), DEPTHS)
@example(OVERTAKEN, 1)
def test_bookings_that_were_put_off_tell_the_same_extra_processors(jobs, depth):
    told = []
    for serve in (View.serve, FlatView.serve):
        notes = Notes()
        with patch.object(FlatView, "serve", serve):
            run = emulate(ClusterDescription.flat(8), jobs, Looking(depth), notes)
        assert run.problems == []
        told.append((notes.seen, notes.extra))
    assert told[0] == told[1]


@settings(max_examples=100, deadline=None)
@given(long_queues(), DEPTHS, OFTEN, st.integers(0, 9))
def test_while_jobs_are_suspended_requeued_and_get_other_limits(jobs, depth, every, seed):
    # Both runs draw at the same events only if they are asked at the same ones.
    compare(ClusterDescription.flat(8), jobs, depth, every, lambda: Impatient(seed), lambda: Meddler(seed, 3))


@settings(max_examples=100, deadline=None)
@given(flat_workloads(), DEPTHS, OFTEN, reservations())
def test_beside_reservations(jobs, depth, every, kept):
    flat = ClusterDescription.flat(8)
    compare(ClusterDescription(flat.name, flat.pools, (), kept), jobs, depth, every)


@settings(max_examples=120, deadline=None)
@given(node_workloads(), st.sampled_from(sorted(PLACES)), DEPTHS, OFTEN, reservations(NAMES))
def test_on_nodes(jobs, place, depth, every, kept):
    cluster = node_cluster(*NODES, pools=("wide", "all"), reservations=kept)
    compare(cluster, jobs, depth, every, PLACES[place], anew=place == "best-fit")


#: Two pools that share half of their nodes; on two switches.
MANY_NODES = tuple(
    NodeDescription(
        f"n{at}", 2 + 2 * (at % 2), memory=4, gres=(("gpu", 1),) if at % 3 == 0 else (),
        pools=(("p",), ("p", "q"), ("q",))[at % 3], features=("fast",) if at % 4 else (),
    )
    for at in range(12)
)  # fmt: skip
SWITCHES = tuple(
    SwitchDescription(f"s{side}", nodes=tuple(f"n{at}" for at in range(6 * side, 6 * side + 6)))
    for side in range(2)
)
SHAPES = st.sampled_from(
    (
        {}, {}, {}, {"nodes": 2}, {"nodes": 5}, {"exclusive": True}, {"processors_per_node": 2},
        {"memory_per_processor": 1}, {"memory_per_node": 3}, {"gres_per_node": (("gpu", 1),)},
        {"features": ("fast",)}, {"required_nodes": ("n1",)}, {"switches": 1, "switches_wait": 9.0},
    )
)  # fmt: skip


@st.composite
def long_queues_on_nodes(draw, parts=True):
    """Many jobs of several shapes, some of which end early."""
    jobs, submit = [], 0
    for at in range(draw(st.integers(1, 40))):
        submit += draw(st.sampled_from([0, 0, 0, 1, 2, 7]))
        estimate = draw(st.sampled_from([1, 2, 3, 5, 9, 14, 30]))
        runtime = draw(st.sampled_from([estimate, estimate, estimate // 2, 0]))
        shape, size = draw(SHAPES), 2 * draw(st.integers(1, 8))
        if parts and draw(st.integers(0, 9)) == 0:
            sizes = draw(st.lists(st.integers(1, 4), min_size=2, max_size=3))
            asked = [Request(n, estimate, **({"exclusive": True} if n == 3 else {})) for n in sizes]
            shape, size = {"parts": tuple(asked)}, sum(sizes)
        pool = draw(st.sampled_from("pq"))
        jobs.append(traced(f"j{at}", size, estimate, submit, runtime=runtime, pool=pool, **shape))
    return jobs


def seen_on_nodes(serve, jobs, depth, every, place, **more):
    """What is started and booked, and what bookings leave, if the view serves a queue in this way."""
    notes = Notes()
    watched = [notes] if every == 1 else []
    cluster = node_cluster(*MANY_NODES, pools=("p", "q"), switches=SWITCHES)
    with patch.object(NodeView, "serve", serve):
        run = emulate(cluster, jobs, Looking(depth, every), place(), *watched, **more)
    assert run.problems == []
    rows = {r.job.id: (r.start_time, r.placement) for r in run.results.values()}
    return rows, notes.seen, notes.extra


@settings(max_examples=300, deadline=None)
@given(long_queues_on_nodes(), DEPTHS, OFTEN, st.sampled_from([FirstFit, BestFit, Tree]))
def test_on_nodes_it_is_to_serve_one_job_after_the_other(jobs, depth, every, place):
    told = [seen_on_nodes(serve, jobs, depth, every, place) for serve in (View.serve, NodeView.serve)]
    assert told[1] == told[0]


@settings(max_examples=100, deadline=None)
@given(long_queues_on_nodes(), DEPTHS, OFTEN, st.integers(0, 9))
def test_so_it_is_on_nodes_that_fail_and_where_starts_fail(jobs, depth, every, seed):
    faults = Faults(
        node_mtbf=60, node_repair=9, requeue=True, latency=seed % 2, failure_rate=0.1 * (seed % 2)
    )
    told = []
    for serve in (View.serve, NodeView.serve):
        told.append(seen_on_nodes(serve, jobs, depth, every, FirstFit, faults=faults, seed=seed))
    assert told[1] == told[0]


class Unfit(FirstFit):
    """First fit that looks at the view, if only at nothing in it."""

    @hookimpl
    def place(self, offer, view):
        return super().place(offer)


@pytest.mark.parametrize(("place", "made"), [(FirstFit, 1), (Unfit, 200)])
def test_bookings_on_nodes_that_are_in_no_way_are_not_made(place, made):
    """Of 201 jobs that do not fit the last is a candidate, which ends before any other job could start."""
    nodes = tuple(NodeDescription(f"n{at}", 4, pools=("p",)) for at in range(8))
    one = Scheduler(node_cluster(*nodes, pools=("p",)), plugged(Conservative(ConservativeOptions()), place()))
    jobs = [described("long", 28, 100, 0)]
    jobs += [described(f"j{at}", 8 + at % 4, 50, 1) for at in range(200)]
    jobs.append(described("short", 3, 99, 1))
    submitted = [ev.JobSubmitted(0.0, job) for job in jobs]
    made_at_once = one.step(1.0, submitted)
    assert [decision.job_id for decision in made_at_once if isinstance(decision, Start)] == ["long", "short"]
    view = one.views["p"]
    assert len(view._bookings) <= made
    assert [booking.job.id for booking in view.bookings] == [f"j{at}" for at in range(200)]


def due(job, start):
    """The job as a dedicated one."""
    return TraceJob(dedicated(job.job, float(start)), job.runtime)


@st.composite
def with_dedicated_jobs(draw, others):
    """Beside others, jobs with a requested start soon after their submission."""
    jobs = list(draw(others))
    pools = sorted({one.job.pool for one in jobs})
    for at in range(draw(st.integers(1, 4))):
        submit = draw(st.integers(0, 20))
        estimate = draw(st.integers(1, 20))
        job = traced(f"d{at}", draw(st.integers(1, 4)), estimate, submit, runtime=draw(st.integers(1, 25)))
        description = msgspec.structs.replace(job.job, pool=draw(st.sampled_from(pools)))
        jobs.append(due(TraceJob(description, job.runtime), submit + draw(st.integers(-5, 40))))
    return sorted(jobs, key=lambda one: one.job.submit_time)


#: d0 is due and waits at the queue's head, so with a depth of 1 it is the one that is booked.
DUE = [
    traced("j0", 5, 14, 1), traced("j1", 3, 5, 1, runtime=0), due(traced("d0", 4, 3, 2), 10),
    traced("j2", 7, 5, 8), traced("j3", 2, 14, 8), traced("j4", 2, 14, 8),
]  # fmt: skip


@settings(max_examples=50, deadline=None)
@given(with_dedicated_jobs(long_queues()), DEPTHS, OFTEN, st.sampled_from(["first", "all"]))
@example(DUE, 1, 1, "all")
def test_beside_dedicated_jobs(jobs, depth, every, freeze):
    def others():
        return Dedicated(DedicatedOptions(freeze=freeze))

    compare(ClusterDescription.flat(8), jobs, depth, every, others)


@settings(max_examples=50, deadline=None)
@given(with_dedicated_jobs(long_queues()))
@example(DUE)
def test_with_a_depth_of_1_it_is_easy_also_beside_dedicated_jobs(jobs):
    starts = []
    for policy in (Easy(), Conservative(ConservativeOptions(depth=1))):
        run = emulate(ClusterDescription.flat(8), jobs, policy, Dedicated(DedicatedOptions()))
        assert run.problems == []
        starts.append({record.job.id: record.start_time for record in run.results.values()})
    assert starts[0] == starts[1]


@settings(max_examples=40, deadline=None)
@given(with_dedicated_jobs(node_workloads()), st.sampled_from(sorted(PLACES)), DEPTHS, OFTEN)
def test_beside_dedicated_jobs_on_nodes(jobs, place, depth, every):
    cluster = node_cluster(*NODES, pools=("wide", "all"))
    anew = place == "best-fit"
    compare(cluster, jobs, depth, every, PLACES[place], lambda: Dedicated(DedicatedOptions()), anew=anew)


def of_fast_nodes(name, processors, submit, **more):
    """In pool wide, whose fast nodes are a1 with four processors and c1 with two."""
    job = traced(name, processors, 1, submit, runtime=0)
    request = msgspec.structs.replace(job.job.request, features=("fast",), **more)
    return TraceJob(msgspec.structs.replace(job.job, request=request, pool="wide"), 0)


#: c1 was in use at 8, so at 10 all nodes but it fall asleep, for ten seconds. j2 waits for a1 from 11 on. j3
#: comes a second later, when j2's booking, of c1 as well, has come to its time and cannot be kept.
OVERSLEPT = [
    of_fast_nodes("j0", 1, 0, required_nodes=("c1",)), of_fast_nodes("j1", 1, 8, required_nodes=("c1",)),
    of_fast_nodes("j2", 6, 11), of_fast_nodes("j3", 2, 12),
]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(node_workloads(), DEPTHS, st.integers(1, 12), st.integers(0, 9))
@example(OVERSLEPT, None, 10, 1)
def test_while_nodes_fall_asleep_and_wake(jobs, depth, idle, wake):
    nodes = [msgspec.structs.replace(node, wake_time=float(wake)) for node in NODES]
    cluster = with_energy(node_cluster(*nodes, pools=("wide", "all")), load_profile("present-day"))

    def power_down():
        return PowerDownIdle(PowerDownIdle.Options(idle=idle, stay=0, margin=0))

    compare(cluster, jobs, depth, 0, PLACES["first-fit"], power_down)


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_a_profile_that_only_falls_is_searched_right(data):
    releases = sorted(data.draw(st.lists(st.tuples(st.integers(1, 20), st.integers(1, 3)), max_size=6)))
    plain = Profile.of_releases(0, 4, releases)
    ahead = Ahead.of(plain.times.copy(), plain.free.copy())
    now = 0
    for _ in range(data.draw(st.integers(1, 25))):
        now += data.draw(st.sampled_from([0, 0, 0, 1, 3]))
        processors = data.draw(st.integers(1, 6))
        duration = data.draw(st.sampled_from([0, 1, 2, 3, 5, 8, 13, INF]))
        after = data.draw(st.sampled_from([None, None, None, 2, 11, 30]))
        start = plain.earliest(processors, duration, max(now, after or now))
        left = 0
        if start != INF:
            plain.reserve(start, start + duration, processors)
            left = plain.free_at(start)
        assert ahead.book(processors, duration, now, after) == (start, left)
        assert ahead.minimum(now, now + 9) == plain.minimum(now, now + 9)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 5)), min_size=1, max_size=9),
    st.integers(0, 3),
    st.integers(0, 12),
    st.integers(1, 12),
)
def test_the_longest_stretches_are_found(steps, now, start, length):
    """Against a look at each second."""
    start, end = now + start, now + start + length
    lasting = [seconds for seconds, _ in steps]
    times = [sum(lasting[:at]) for at in range(len(steps))]
    ahead = Ahead.of(times, [level for _, level in steps])
    horizon = end + 40
    spans = ahead.spans(now, start, end, horizon)
    lengths = [seconds for _, seconds in spans]
    assert spans == sorted(spans) and lengths == sorted(lengths, reverse=True)
    for processors in range(1, 7):
        longest, begun = 0, now
        for second in range(now, 2 * horizon):
            if ahead.free_at(second) < processors:
                begun = second + 1
            elif begun < end and second + 1 > start:
                longest = max(longest, second + 1 - begun)
        told = next((seconds for level, seconds in spans if level >= processors), 0)
        assert told == (longest if longest < horizon else INF), processors
