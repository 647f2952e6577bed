"""The availability profile, by vectors and against an array with one entry a second."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.resources.profile import Profile, next_after

INF = float("inf")


def test_it_begins_with_what_is_free_now_and_grows_with_each_release():
    profile = Profile.of_releases(10, 2, [(20, 3), (20, 1), (30, 4)])
    assert profile.times == [10, 20, 30]
    assert profile.free == [2, 6, 10]


def test_an_overdue_release_counts_at_the_next_moment_not_now():
    profile = Profile.of_releases(10, 1, [(5, 2), (10, 3), (20, 1)])
    assert profile.free_at(10) == 1
    assert profile.free_at(next_after(10)) == 6
    assert profile.earliest(4, 100) == next_after(10)


def test_a_release_right_after_now_keeps_the_times_in_order():
    profile = Profile.of_releases(10, 1, [(5, 2), (10.0002, 3), (20, 1)])
    assert profile.times == sorted(profile.times)
    assert profile.free_at(15) == 6


@pytest.mark.parametrize(
    ("processors", "duration", "after", "expected"),
    [
        (2, 5, -INF, 0),
        (3, 5, -INF, 20),
        (2, 11, -INF, 20),
        (2, 10, -INF, 0),
        (6, 1, -INF, 20),
        (6, 1, 25, 25),
        (6, 6, 25, 25),
        (7, 1, -INF, 30),
        (9, 1, -INF, INF),
        (0, 5, 12, 12),
        (2, 0, 12, 20),
        (1, INF, -INF, 0),
        (2, INF, -INF, 20),
        (7, INF, -INF, 30),
    ],
)
def test_the_earliest_start(processors, duration, after, expected):
    profile = Profile(0, 2)
    profile.times, profile.free = [0, 10, 20, 30], [2, 1, 6, 8]
    assert profile.earliest(processors, duration, after) == expected


def test_a_gap_that_is_too_short_is_jumped_over():
    profile = Profile(0, 8)
    profile.reserve(10, 20, 6)
    assert profile.earliest(4, 10) == 0
    assert profile.earliest(4, 11) == 20
    assert profile.earliest(2, 100) == 0


def test_what_is_reserved_ends_where_it_ends():
    profile = Profile(0, 8)
    profile.reserve(10, 20, 6)
    assert [profile.free_at(t) for t in (0, 9.99, 10, 19.99, 20)] == [8, 8, 2, 2, 8]
    assert profile.minimum(0, 10) == 8
    assert profile.minimum(0, 10.01) == 2
    assert profile.minimum(20, 30) == 8
    assert profile.minimum(15, 15) == 2


def test_reserving_for_ever_leaves_no_end():
    profile = Profile(0, 8)
    profile.reserve(5, INF, 8)
    assert profile.earliest(1, 1, 5) == INF
    assert profile.earliest(1, 5) == 0


def test_a_copy_is_independent():
    profile = Profile(0, 8)
    twin = profile.copy()
    twin.reserve(0, 10, 8)
    assert profile.earliest(8, 1) == 0
    assert twin.earliest(8, 1) == 10


def test_nothing_is_reserved_by_no_processors_or_no_time():
    profile = Profile(0, 8)
    profile.reserve(5, 5, 3)
    profile.reserve(5, 9, 0)
    assert profile.times == [0]


# ---------------------------------------------------------------- against one entry a second

HORIZON = 60
spans = st.tuples(st.integers(0, 40), st.integers(1, 15), st.integers(1, 5))


def by_the_second(free, releases, taken):
    level = [free] * HORIZON
    for time, processors in releases:
        for second in range(time, HORIZON):
            level[second] += processors
    for start, duration, processors in taken:
        for second in range(start, start + duration):
            level[second] -= processors
    return level


@given(
    st.integers(0, 6),
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 4)), max_size=5).map(sorted),
    st.lists(spans, max_size=6),
    st.lists(st.tuples(st.integers(1, 10), st.integers(1, 12), st.integers(0, 30)), min_size=1, max_size=5),
)
def test_it_answers_as_the_array_does(free, releases, taken, questions):
    profile = Profile.of_releases(0, free, releases)
    for start, duration, processors in taken:
        profile.reserve(start, start + duration, processors)
    level = by_the_second(free, releases, taken)
    assert [profile.free_at(second) for second in range(HORIZON)] == level
    for processors, duration, after in questions:
        assert profile.minimum(after, after + duration) == min(level[after : after + duration])
        expected = next(
            (
                start
                for start in range(after, HORIZON)
                if all(
                    level[min(second, HORIZON - 1)] >= processors for second in range(start, start + duration)
                )
            ),
            INF,
        )
        assert profile.earliest(processors, duration, after) == expected


@given(st.lists(spans, max_size=6))
def test_release_gives_back_what_reserve_took(taken):
    profile = Profile(0, 9)
    for start, duration, processors in taken:
        profile.reserve(start, start + duration, processors)
    for start, duration, processors in reversed(taken):
        profile.release(start, start + duration, processors)
    assert set(profile.free) == {9}


def test_until_when_enough_is_free():
    profile = Profile(0, 6)
    profile.reserve(10, 20, 4)
    profile.reserve(30, 40, 6)
    assert [profile.until(2, start) for start in (0, 15, 25, 30, 45)] == [30, 30, 30, 30, INF]
    assert [profile.until(3, start) for start in (0, 10, 19, 20)] == [10, 10, 19, 30]


def test_what_is_over_is_forgotten_and_nothing_else():
    profile = Profile(0, 6)
    profile.reserve(10, 20, 4)
    profile.forget_before(12)
    assert (profile.times, profile.free) == ([10, 20], [2, 6])
    profile.forget_before(12)
    assert profile.earliest(3, 5, 12) == 20 and profile.free_at(12) == 2
    profile.forget_before(25)
    assert (profile.times, profile.free) == ([20], [6])
