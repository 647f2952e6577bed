"""What a policy sees and can do: start and book, on counts and on nodes."""

from __future__ import annotations

import msgspec
import pytest
from building import alike, described, node_cluster, plugged

from headway import events as ev
from headway.decisions import Start
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription, Reservation
from headway.scheduler import Scheduler
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.easy import Easy

INF = float("inf")


def cluster_of(kind: str, reservations=()) -> ClusterDescription:
    """Eight processors, as a count or as two nodes."""
    if kind == "flat":
        flat = ClusterDescription.flat(8)
        return ClusterDescription(flat.name, flat.pools, (), reservations)
    return node_cluster(*alike(2, 4), reservations=reservations)


class Bench:
    """A scheduler whose policy is a function given for each step."""

    def __init__(self, kind="flat", reservations=()):
        bench = self

        class Policy:
            @hookimpl
            def schedule(self, view):
                return bench.act(view)

        self.act = lambda view: []
        self.scheduler = Scheduler(cluster_of(kind, reservations), plugged(Policy(), FirstFit()))

    def step(self, act, now=0, events=(), jobs=()):
        """Let ``act(view, jobs by id)`` be the policy of this step; returns what it returned."""
        answers = []

        def policy(view):
            before = {job.id: job for job in view.queue}
            answers.append(act(view, before))
            return list(view.made)

        self.act = policy
        self.scheduler.step(now, [*events, *(ev.JobSubmitted(now, job) for job in jobs)])
        assert self.scheduler.problems == [], self.scheduler.problems
        return answers[0] if answers else None


@pytest.fixture(params=["flat", "nodes"])
def bench(request):
    return Bench(request.param)


def begin(*names):
    def act(view, jobs):
        return [view.start(jobs[name]) is not None for name in names]

    return act


def test_a_start_takes_from_what_is_free(bench):
    def act(view, jobs):
        seen = [(view.free, view.total)]
        for name in ("a", "b", "c"):
            view.start(jobs[name])
            seen.append((view.free, [job.id for job in view.started]))
        return seen

    jobs = [described("a", 5), described("b", 5), described("c", 3)]
    assert bench.step(act, jobs=jobs) == [(8, 8), (3, ["a"]), (3, ["a"]), (0, ["a", "c"])]


def test_a_booking_is_the_earliest_time_and_what_is_left_then(bench):
    bench.step(begin("a", "b"), jobs=[described("a", 4, 50), described("b", 4, 80)])

    def act(view, jobs):
        booking = view.book(jobs["head"])
        assert view.book(jobs["head"]) is booking
        assert view.booked(jobs["head"]) is booking
        return booking.start, booking.extra, booking.when

    assert bench.step(act, now=10, jobs=[described("head", 3, 50)]) == (50, 1, "50")


def test_every_end_up_to_the_shadow_time_counts_for_the_extra_processors(bench):
    bench.step(begin("a", "b"), jobs=[described("a", 4, 50), described("b", 4, 50)])
    act = lambda view, jobs: (view.book(jobs["head"]).start, view.bookings[0].extra)  # noqa: E731
    assert bench.step(act, now=10, jobs=[described("head", 3, 50)]) == (50, 5)


def test_what_a_booking_leaves_beside_a_reservation_shrinks_by_what_is_outside_of_it():
    # Free: 4, from 50 on 8, during [40, 60) 3 less.
    bench = Bench(reservations=(Reservation("r", 40.0, 60.0, pool="pool", processors=3),))
    bench.step(begin("a"), jobs=[described("a", 4, 50)])

    def act(view, jobs):
        booking = view.book(jobs["head"])
        seen = [(booking.start, booking.extra)]
        for name in ("short", "x", "y", "z"):
            seen.append((view.start(jobs[name]) is not None, booking.extra))
        assert view.start(jobs["y"]) is None
        return seen

    jobs = [described("head", 6, 50), described("short", 1, 30), described("x", 1, 40)]
    jobs += [described("y", 2, 60), described("z", 1, 80)]
    expected = [(60, 2), (True, 2), (True, 2), (False, 2), (True, 1)]
    assert bench.step(act, now=0, jobs=jobs) == expected


def test_a_job_in_its_own_reservation_takes_nothing_of_what_a_booking_leaves():
    bench = Bench(reservations=(Reservation("r", 0.0, 60.0, pool="pool", processors=3),))
    bench.step(begin("a"), jobs=[described("a", 4, 50)])

    def act(view, jobs):
        booking = view.book(jobs["head"])
        seen = [(booking.start, booking.extra), view.start(jobs["in"]) is not None]
        # The head needs all that is outside of the reservation then.
        seen += [view.stretch(jobs["in"], 50), view.stretch(jobs["in"], 61), booking.extra]
        return seen

    jobs = [described("head", 5, 50), described("in", 2, 30, reservation="r")]
    assert bench.step(act, now=0, jobs=jobs) == [(50, 0), True, True, False, 0]


def test_overdue_jobs_all_leave_any_moment(bench):
    bench.step(begin("a", "b"), jobs=[described("a", 4, 50), described("b", 4, 60)])
    act = lambda view, jobs: (view.book(jobs["head"]).start, view.bookings[0].extra)  # noqa: E731
    start, extra = bench.step(act, now=100, jobs=[described("head", 3, 50)])
    assert 100 < start < 101
    assert extra == 5


def test_nobody_who_would_delay_a_booking_starts(bench):
    bench.step(begin("a"), jobs=[described("a", 4, 50)])

    def act(view, jobs):
        view.book(jobs["head"])
        return [view.start(jobs[name]) is not None for name in ("long", "short", "late")]

    jobs = [
        described("head", 8, 50),
        described("long", 2, 60),
        described("short", 2, 40),
        described("late", 2, 41),
    ]
    assert bench.step(act, now=10, jobs=jobs) == [False, True, False]


def test_extra_processors_shrink_as_they_are_used(bench):
    bench.step(begin("a"), jobs=[described("a", 4, 50)])

    def act(view, jobs):
        booking = view.book(jobs["head"])
        return [
            booking.extra,
            view.start(jobs["x"]) is not None,
            view.start(jobs["y"]) is not None,
            booking.extra,
        ]

    jobs = [described("head", 6, 50), described("x", 2, 99), described("y", 1, 99)]
    assert bench.step(act, now=10, jobs=jobs) == [2, True, False, 0]


def test_a_job_that_never_fits_is_booked_for_never_and_stops_nobody(bench):
    def act(view, jobs):
        # It is in no queue, but a plugin may know it.
        booking = view.book(bench.scheduler.state.jobs["huge"])
        return booking.start, booking.when, view.start(jobs["x"]) is not None

    assert bench.step(act, jobs=[described("huge", 9), described("x", 8, 99)]) == (INF, "never", True)


def test_a_booked_job_starts_when_its_time_has_come(bench):
    bench.step(begin("a"), jobs=[described("a", 8, 50)])

    def early(view, jobs):
        view.book(jobs["b"])
        return view.start(jobs["b"])

    assert bench.step(early, now=10, jobs=[described("b", 8, 50)]) is None

    def due(view, jobs):
        return view.start(jobs["b"]) is not None, view.bookings

    assert bench.step(due, now=50, events=[ev.JobEnded(50, "a")]) == (True, [])


def test_several_bookings_are_all_kept(bench):
    bench.step(begin("a"), jobs=[described("a", 8, 50)])

    def act(view, jobs):
        return [view.book(jobs[name]).start for name in ("b", "c", "d")]

    jobs = [described("b", 8, 30), described("c", 4, 20), described("d", 4, 30)]
    assert bench.step(act, now=10, jobs=jobs) == [50, 80, 80]


def test_a_later_booking_fills_a_gap_before_an_earlier_one(bench):
    bench.step(begin("a"), jobs=[described("a", 4, 50)])

    def act(view, jobs):
        return [view.book(jobs["b"]).start, view.book(jobs["gap"]).start, view.book(jobs["long"]).start]

    jobs = [described("b", 8, 30), described("gap", 4, 40), described("long", 4, 41)]
    assert bench.step(act, now=10, jobs=jobs) == [50, 10, 80]


def test_the_profile_has_bookings_and_reservations_taken_out_and_is_a_copy():
    bench = Bench("flat", (Reservation("r", 100, 120, pool="pool", processors=6),))
    bench.step(begin("a"), jobs=[described("a", 8, 50)])

    def act(view, jobs):
        view.book(jobs["b"])
        profile = view.profile
        levels = [profile.free_at(time) for time in (10, 50, 80, 100, 120)]
        profile.reserve(0, INF, 8)
        return levels, view.profile.free_at(120)

    assert bench.step(act, now=10, jobs=[described("b", 5, 30)]) == ([0, 3, 8, 2, 8], 8)


@pytest.mark.parametrize("kind", ["flat", "nodes"])
def test_a_booking_goes_around_a_reservation(kind):
    where = {"pool": "pool", "processors": 8} if kind == "flat" else {"nodes": ("n0", "n1")}
    bench = Bench(kind, (Reservation("r", 60, 100, **where),))
    bench.step(begin("a"), jobs=[described("a", 8, 50)])
    act = lambda view, jobs: [view.book(jobs[name]).start for name in ("long", "short")]  # noqa: E731
    assert bench.step(act, now=10, jobs=[described("long", 8, 20), described("short", 8, 10)]) == [100, 50]


def test_bookings_stand_while_only_arrivals_happen(bench):
    bench.step(begin("a"), jobs=[described("a", 8, 50)])
    bench.step(lambda view, jobs: view.book(jobs["b"]), now=10, jobs=[described("b", 8, 50)])
    seen = lambda view, jobs: (view.fresh, [booking.job.id for booking in view.bookings])  # noqa: E731
    assert bench.step(seen, now=20, jobs=[described("c"), described("d")]) == (2, ["b"])
    assert bench.step(seen, now=30, jobs=[described("e")], events=[ev.JobEnded(30, "d", "cancelled")]) == (
        -1,
        [],
    )


def test_a_late_arrival_ahead_of_others_is_no_mere_arrival(bench):
    bench.step(begin("a"), jobs=[described("a", 8, 50)])
    bench.step(lambda view, jobs: view.book(jobs["b"]), now=10, jobs=[described("b", 8, 50, submit=10)])
    late = ev.JobSubmitted(20, described("late", submit=5))
    assert bench.step(lambda view, jobs: view.fresh, now=20, events=[late]) == -1


@pytest.mark.parametrize("kind", ["flat", "nodes"])
def test_a_job_without_any_time_takes_its_processors_all_the_same(kind):
    bench = Bench(kind)

    def act(view, jobs):
        # With several bookings it is looked ahead, moment by moment.
        assert [view.book(jobs[name], after=50).start for name in ("b", "c")] == [50, 80]
        return [view.start(jobs[name]) is not None for name in ("none", "x", "y")]

    jobs = [described("b", 8, 30), described("c", 8, 30), described("none", 4, 0), described("x", 4, 20)]
    assert bench.step(act, now=10, jobs=[*jobs, described("y", 1, 20)]) == [True, True, False]


def test_forgetting_gives_the_booked_capacity_back(bench):
    bench.step(begin("a"), jobs=[described("a", 4, 50)])

    def act(view, jobs):
        view.book(jobs["b"])
        refused = view.start(jobs["long"])
        view.forget()
        return refused, view.start(jobs["long"]) is not None

    assert bench.step(act, now=10, jobs=[described("b", 8, 50), described("long", 4, 99)]) == (None, True)


def test_a_booking_after_others_were_started_still_counts_everything():
    bench = Bench()
    bench.step(begin("a"), jobs=[described("a", 4, 50)])

    def act(view, jobs):
        view.book(jobs["x"])
        view.book(jobs["y"])
        view.bookings.clear()
        booking = view.book(jobs["head"])
        return booking.start, view.start(jobs["long"])

    jobs = [described("x", 8, 10), described("y", 8, 10), described("head", 8, 10), described("long", 4, 99)]
    start, refused = bench.step(act, now=10, jobs=jobs)
    assert start >= 50 and refused is None


# ---------------------------------------------------------------- nodes


def test_a_booking_on_nodes_names_them_and_keeps_them():
    bench = Bench("nodes")
    bench.step(begin("a"), jobs=[described("a", 4, 50)])

    def act(view, jobs):
        booking = view.book(jobs["head"])
        return booking.start, booking.placement, [view.start(jobs[name]) is not None for name in ("x", "y")]

    jobs = [described("head", 2, 50, required_nodes=("n0",)), described("x", 4, 99), described("y", 1, 99)]
    assert bench.step(act, now=10, jobs=jobs) == (50, (("n0", 2),), [True, False])


def test_memory_that_a_running_job_gives_back_is_counted():
    cluster = node_cluster(*alike(1, 4, memory=100))
    bench = Bench()
    bench.scheduler = Scheduler(cluster, plugged(*[bench.scheduler.plugins.by_name["policy"]], FirstFit()))
    bench.step(begin("a"), jobs=[described("a", 1, 50, memory_per_node=80)])
    act = lambda view, jobs: (view.start(jobs["b"]), view.book(jobs["b"]).start)  # noqa: E731
    assert bench.step(act, now=10, jobs=[described("b", 1, 10, memory_per_node=40)]) == (None, 50)


def test_a_node_that_joins_the_cluster_does_not_upset_other_pools():
    from headway.model import NodeDescription
    from headway_plugins.policies.easy import Easy

    cluster = node_cluster(
        *alike(64, 1, pools=("x",)), NodeDescription("y0", 1, pools=("y",)), pools=("x", "y")
    )
    s = Scheduler(cluster, plugged(Easy(), FirstFit()))
    s.step(
        0,
        [
            ev.JobSubmitted(0, described("a", 63, 50, pool="x")),
            ev.JobSubmitted(0, described("h", 64, pool="x")),
        ],
    )
    many = [
        ev.NodeUp(5, NodeDescription(f"new{at}", 1, gres=(("gpu", 1),), pools=("y",))) for at in range(200)
    ]
    s.step(5, many)
    decisions = s.step(9, [ev.JobSubmitted(9, described("small", 1, 5, submit=9, pool="x"))])
    assert s.problems == []
    assert [d.job_id for d in decisions] == ["small"]


@pytest.mark.parametrize("shares_out", [True, False])
def test_no_start_where_the_batch_system_still_shares_out_another(shares_out):
    """Until a start's layout is known, what becomes free on its nodes may be that job's."""
    cluster = msgspec.structs.replace(node_cluster(*alike(3, 4)), shares_out=shares_out)
    scheduler = Scheduler(cluster, plugged(Easy(), FirstFit()))

    def step(now, *events):
        starts = [(d.job_id, d.placement) for d in scheduler.step(now, events) if isinstance(d, Start)]
        assert scheduler.problems == []
        return starts

    jobs = [described("a", 3, 100), described("b", 3, 100), described("c", 2, 100)]
    submitted = [ev.JobSubmitted(0, job) for job in jobs]
    names = [node.name for node in cluster.nodes]
    assert step(0, *submitted[:1]) == [("a", ((names[0], 3),))]
    first = ((names[0], 3),)
    open_layout = described("b", 5, 100)
    assert step(1, ev.JobStarted(0, "a", first), ev.JobSubmitted(1, open_layout)) == [
        ("b", ((names[0], 1), (names[1], 4)))
    ]
    # The first job ends; the batch system may give its processors to the second.
    told = step(2, ev.JobEnded(2, "a"), ev.JobSubmitted(2, jobs[2]))
    assert told == [("c", ((names[2] if shares_out else names[0], 2),))]
    wide = described("d", 3, 100)
    anywhere = [("d", ((names[0], 1), (names[2], 2)))]
    assert step(3, ev.JobSubmitted(3, wide)) == ([] if shares_out else anywhere)
    if shares_out:
        assert step(4, ev.JobStarted(2, "b", ((names[0], 4), (names[1], 1)))) == [("d", ((names[1], 3),))]


def test_which_nodes_requests_may_use_is_kept_for_so_many_alone(monkeypatch):
    monkeypatch.setattr("headway.view.node_plans._KEPT", 4)
    bench = Bench("nodes")
    for at in range(20):
        bench.step(begin(f"j{at}"), now=at, jobs=[described(f"j{at}", 1, 1, excluded_nodes=(f"gone{at}",))])
    assert len(bench.scheduler.views["pool"]._eligible) <= 5
