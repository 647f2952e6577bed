"""The options that bound what backfilling looks at: small cases, what is told of them, what is refused."""

from __future__ import annotations

import pydantic
import pytest
from building import described, plugged

from headway import events as ev
from headway.hookspecs import hookimpl
from headway.inquiry import explain
from headway.model import ClusterDescription, Reservation
from headway.resources.profile import Profile
from headway.scheduler import Scheduler, plain_clock
from headway.view.ahead import Coarse, coarsened, rounded_up
from headway_plugins.policies.conservative import Conservative, ConservativeOptions
from headway_plugins.policies.easy import Easy, EasyOptions

NOW = 100


class Asleep:
    """A policy that starts whatever fits until it is woken."""

    def __init__(self, policy):
        self.policy, self.asleep = policy, True

    @hookimpl
    def schedule(self, view):
        return [view.start(job) for job in view.queue] if self.asleep else self.policy.schedule(view)

    @hookimpl
    def explain(self, job, question, view):
        return self.policy.explain(job, question, view)


def at_hundred(policy, running, queue, reservations=()):
    """The scheduler and its decisions at 100, on eight processors; ``running``: (processors, expected end),
    ``queue``: (processors, estimate, user)."""
    asleep = Asleep(policy)
    s = Scheduler(ClusterDescription.flat(8), plugged(asleep))
    jobs = [described(f"r{at}", size, end) for at, (size, end) in enumerate(running)]
    s.step(0, [ev.JobSubmitted(0, job) for job in jobs])
    s.step(0, [ev.JobStarted(0, job.id, ()) for job in jobs])
    asleep.asleep = False
    waiting = [
        described("abcdefgh"[at], size, estimate, submit=NOW, user=user)
        for at, (size, estimate, user) in enumerate(queue)
    ]
    news = [ev.ReservationMade(NOW, reservation) for reservation in reservations]
    decisions = s.step(NOW, [*news, *(ev.JobSubmitted(NOW, job) for job in waiting)])
    assert s.problems == []
    return s, decisions


def started(policy, running, queue):
    return "".join(d.job_id for d in at_hundred(policy, running, queue)[1])


ANN, BOB = "ann", "bob"
#: One processor is free until 150, five until 300, all then.
RUNNING = [(4, 150), (3, 300)]
#: The first waits until 150, the second until 300; the fourth is in the way of the second.
QUEUE = [(5, 100, ANN), (8, 100, ANN), (1, 50, ANN), (1, 500, BOB)]
#: The first waits until 300 as well, and leaves two processors over.
LATER = [(6, 100, ANN), *QUEUE[1:]]


@pytest.mark.parametrize(
    "queue, options, starts",
    [
        (QUEUE, {}, "c"),
        (QUEUE, {"bookings": 2}, "c"),
        (QUEUE, {"queue_depth": 2}, ""),
        (QUEUE, {"queue_depth": 3}, "c"),
        (QUEUE, {"queue_depth_per_user": 2}, ""),
        (LATER, {"queue_depth_per_user": 3}, "c"),
        (LATER, {"queue_depth_per_user": 1}, "d"),
        # With less than 50 s nothing is kept for the first, and the third is short enough for the second.
        (QUEUE[:1] + QUEUE[3:], {}, ""),
        (QUEUE[:1] + QUEUE[3:], {"window": 50}, ""),
        (QUEUE[:1] + QUEUE[3:], {"window": 49}, "b"),
    ],
)
def test_who_is_looked_at(queue, options, starts):
    assert started(Easy(EasyOptions(**options)), RUNNING, queue) == starts


def test_with_two_bookings_the_second_is_not_delayed_either():
    running, queue = [(4, 150)], [(5, 50, ANN), (8, 50, ANN), (3, 101, ANN)]
    assert started(Easy(), running, queue) == "c"
    assert started(Easy(EasyOptions(bookings=2)), running, queue) == ""


def test_one_that_starts_makes_room_for_the_next_in_the_depth():
    assert (
        started(Easy(EasyOptions(queue_depth=1)), [], [(2, 9, ANN), (2, 9, ANN), (8, 9, ANN), (1, 9, ANN)])
        == "ab"
    )


def test_shortest_first_goes_on_with_whom_the_started_make_room_for():
    policy = Easy(EasyOptions(queue_depth=3, backfill="shortest-first"))
    queue = [(8, 9, ANN), (2, 40, ANN), (2, 30, ANN), (1, 50, ANN), (1, 20, ANN)]
    assert started(policy, [(2, 150)], queue) == "cbed"


def test_a_resolution_puts_off_what_becomes_free():
    s, decisions = at_hundred(
        Conservative(ConservativeOptions(resolution=60)),
        [(4, 150), (3, 170)],
        [(5, 30, ANN), (8, 30, ANN), (1, 70, ANN)],
    )
    assert [d.job_id for d in decisions] == ["c"]
    # 150 and 170 become 180, the end of the first booking 240, as that of the job that starts.
    assert {b.job.id: b.start for b in s.views["pool"].bookings} == {"a": 180, "b": 240}


def test_a_reservation_begins_when_it_begins():
    kept = Reservation("r", NOW + 30, NOW + 45, "pool", processors=8)
    s, decisions = at_hundred(Easy(EasyOptions(resolution=60)), [], [(8, 40, ANN), (8, 30, ANN)], [kept])
    assert [d.job_id for d in decisions] == ["b"]
    # The running job's and the reservation's ends are 180 then.
    assert s.views["pool"].booked(s.state.jobs["a"]).start == 180


def test_coarse_profiles_never_have_more_than_there_is():
    profile = Profile(7, 5)
    for span in [(9, 11, 3), (14, 33, 2), (21, 22, 2), (38, 41, 5), (30, 40, -1)]:
        profile.reserve(*span)
    coarse = coarsened(profile, 10)
    for time in range(7, 70):
        begin = max(time // 10 * 10, 7)
        assert coarse.free_at(time) == min(profile.free_at(t) for t in range(begin, time + 1)), time


def test_what_is_given_back_is_given_back_for_that_time_only():
    coarse = Coarse.of_steps([0], [4], 10)
    coarse.reserve(5, 21, 3)
    coarse.release(5, 21, 3)
    assert [coarse.free_at(t) for t in (0, 20, 21, 29, 30)] == [4, 4, 1, 1, 4]


@pytest.mark.parametrize("time, up", [(0, 0), (1, 60), (60, 60), (60.001, 120), (float("inf"), float("inf"))])
def test_times_are_rounded_up(time, up):
    assert rounded_up(time, 60) == up


@pytest.mark.parametrize(
    "options, said",
    [
        ({"queue_depth": 2}, "Only the first 2 waiting jobs are looked at (queue_depth)."),
        (
            {"queue_depth_per_user": 2},
            "Only the first 2 waiting jobs of user ann are looked at (queue_depth_per_user).",
        ),
        (
            {"bookings": 9, "window": 60},
            "It cannot start within 60 s, so nothing is booked for it yet (window).",
        ),
    ],
)
def test_explain_says_whom_an_option_leaves_out(options, said):
    queue = [QUEUE[0], QUEUE[0], (8, 100, ANN), (1, 50, BOB)]
    s, _ = at_hundred(Easy(EasyOptions(**options)), RUNNING, queue)
    assert said in explain(s, "c", plain_clock)
    assert "Processors are kept for it from 150 on" in " ".join(explain(s, "a", plain_clock))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"bookings": 0}, "greater than or equal to 1"),
        ({"queue_depth": 0}, "greater than or equal to 1"),
        ({"queue_depth_per_user": -1}, "greater than or equal to 1"),
        ({"window": "soon"}, "a time such as 30m"),
        ({"resolution": 0}, "greater than or equal to 1"),
        ({"resolution": "1x"}, "a time such as 30m"),
    ],
)
def test_what_is_no_bound_is_refused(options, message):
    with pytest.raises(pydantic.ValidationError, match=message):
        EasyOptions(**options)


@pytest.mark.parametrize("option", ["queue_depth", "queue_depth_per_user", "window", "resolution"])
def test_guarantees_are_given_to_everybody_and_exactly(option):
    with pytest.raises(pydantic.ValidationError, match=f"no {option} with guarantees: keep"):
        ConservativeOptions(guarantees="keep", **{option: 60})
