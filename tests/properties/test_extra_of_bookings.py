"""What a booking leaves at its start (`Booking.extra`) against a count from scratch, after each start."""

from __future__ import annotations

from building import described, plugged
from hypothesis import given, settings
from hypothesis import strategies as st

from headway import events as ev
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription, Reservation
from headway.scheduler import Scheduler

TOTAL = 8
INF = float("inf")
times = st.integers(1, 12).map(lambda n: n * 10.0)
jobs = st.lists(st.tuples(st.integers(1, 5), times), max_size=6)


class Booking:
    """Starts what it can of the first jobs; books so many, then starts what it can of the last ones."""

    def __init__(self, running, heads):
        self.running, self.heads = running, heads
        #: For each booking after each start: what it says, and what is left at its start.
        self.seen: list[tuple[int, int]] = []
        #: Each job that runs: until when, and on how many processors.
        self.ends: list[tuple[float, int]] = []

    @hookimpl
    def schedule(self, view):
        for number, job in enumerate(list(view.queue)):
            if self.running <= number < self.running + self.heads:
                view.book(job)
            elif view.start(job) is not None:
                self.ends.append((view.now + job.expected_runtime, job.processors))
            for booking in view.bookings:
                if booking.start != INF:
                    self.seen.append((booking.extra, self.left(view, booking)))
        return view.made

    def left(self, view, booking):
        at = booking.start
        kept = sum(r.processors for r in view.domain.reservations if r.start <= at < r.end)
        busy = sum(processors for end, processors in self.ends if end > at)
        booked = sum(
            other.job.processors
            for other in view.bookings
            if other.start <= at < other.start + other.job.expected_runtime
        )
        return TOTAL - kept - busy - booked


def seen(before, heads, behind, reservations=()):
    flat = ClusterDescription.flat(TOTAL)
    policy = Booking(len(before), len(heads))
    cluster = ClusterDescription(flat.name, flat.pools, (), reservations)
    scheduler = Scheduler(cluster, plugged(policy))
    queue = [described(str(n), *job) for n, job in enumerate([*before, *heads, *behind])]
    scheduler.step(0.0, [ev.JobSubmitted(0.0, job) for job in queue])
    assert scheduler.problems == [], scheduler.problems
    return policy.seen


head = st.tuples(st.integers(4, 8), times)


@settings(max_examples=80)
@given(jobs, head, jobs)
def test_a_lone_booking_says_what_is_left_at_its_start(before, head, behind):
    for extra, left in seen(before, [head], behind):
        assert extra == left


def reserved(start, length):
    return (Reservation("r", start, start + length, pool="pool", processors=3),)


@settings(max_examples=80)
@given(jobs, head, jobs, times, times)
def test_a_lone_booking_beside_a_reservation_says_what_is_left(before, head, behind, start, length):
    for extra, left in seen(before, [head], behind, reserved(start, length)):
        assert extra == left


@settings(max_examples=80)
@given(jobs, st.lists(head, min_size=1, max_size=3), jobs, st.booleans(), times, times)
def test_beside_others_and_reservations_none_says_less(before, heads, behind, reserves, start, length):
    for extra, left in seen(before, heads, behind, reserved(start, length) if reserves else ()):
        assert extra >= left
