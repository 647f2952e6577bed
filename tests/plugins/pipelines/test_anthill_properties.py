"""What holds for any profile: every filter has a copy, all processors are given, more need is never less."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_plugins.pipelines.sizing import anthill, history, rounded

number = st.floats(0.001, 1e6)
processors = st.integers(1, 200)


@st.composite
def profiles(draw, broadcasts=True):
    count = draw(st.integers(1, 8))
    some = st.lists(number, min_size=count, max_size=count)
    flags = st.lists(st.booleans() if broadcasts else st.just(False), min_size=count, max_size=count)
    return draw(some), draw(some), draw(processors), draw(flags)


# ---------------------------------------------------------------------- 1, 4 and 5


@given(profiles(), st.sampled_from(["loop", "final"]), st.integers(1, 30))
def test_1_real_shares_are_all_processors(profile, mode, iterations):
    steps = history(*profile, mode=mode, iterations=iterations)
    assert len(steps) <= iterations
    for step in steps:
        assert sum(step) == pytest.approx(profile[2], rel=1e-9)


@given(profiles(broadcasts=False), st.integers(2, 50), st.sampled_from(["loop", "final"]))
def test_4_without_a_broadcast_iterations_change_nothing(profile, iterations, mode):
    assert anthill(*profile, iterations=iterations, mode=mode) == anthill(*profile, iterations=1)


@given(profiles(), st.sampled_from(["loop", "final"]))
def test_5_every_filter_has_a_copy_and_all_processors_are_given(profile, mode):
    copies = anthill(*profile, mode=mode)
    assert min(copies) >= 1 and sum(copies) == max(profile[2], len(copies))


@given(profiles(broadcasts=False), st.data(), st.floats(0, 1e6))
def test_5_more_bytes_or_time_is_never_a_smaller_share(profile, data, more):
    received, seconds, count, _ = profile
    j = data.draw(st.integers(0, len(received) - 1))
    which = data.draw(st.sampled_from([0, 1]))
    before = history(received, seconds, count)[0][j]
    changed = [list(received), list(seconds)]
    changed[which][j] += more
    assert history(*changed, count)[0][j] >= before * (1 - 1e-9)


@given(profiles(), st.lists(st.one_of(st.none(), st.integers(1, 20)), min_size=8, max_size=8))
def test_caps_hold_and_leave_over_only_what_nobody_may_take(profile, caps):
    received, _, count, _ = profile
    mine = caps[: len(received)]
    copies = anthill(*profile, caps=mine)
    assert all(cap is None or one <= cap for one, cap in zip(copies, mine, strict=True)) and min(copies) >= 1
    if sum(copies) < max(count, len(copies)):
        assert all(one == cap for one, cap in zip(copies, mine, strict=True))


@given(st.lists(st.floats(0, 50), min_size=1, max_size=10), processors)
def test_rounding_moves_nobody_by_more_than_it_must(wanted, count):
    copies = rounded(wanted, count)
    assert sum(copies) == max(count, len(wanted)) and min(copies) >= 1
