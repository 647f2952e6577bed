"""Which job has which estimate."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.errors import UserError
from headway_plugins.estimates.pairing import paired, raised


def floats(*values):
    return np.array(values, np.float64)


def test_v35_every_possible_pairing_is_equally_likely():
    rng = np.random.default_rng(35)
    tries = 2_000
    # The two estimates of 100 are told apart by a hair.
    found = Counter(tuple(paired(rng, floats(10, 50, 100), floats(60, 100, 100.5))) for _ in range(tries))
    assert len(found) == 4
    assert all(estimates[2] != 60 for estimates in found)
    deviation = np.sqrt(tries * 0.25 * 0.75)
    assert all(abs(number - tries / 4) < 4 * deviation for number in found.values())


def test_v36_no_pairing_is_possible():
    with pytest.raises(UserError, match="2 jobs run for 80 s or longer, and only 1 estimates"):
        paired(np.random.default_rng(1), floats(80, 85), floats(60, 90))
    with pytest.raises(UserError, match="expected a larger maximum"):
        paired(np.random.default_rng(1), floats(80, 100), floats(60, 90))


def test_a_runtime_beyond_all_estimates_counts_as_the_largest():
    assert paired(np.random.default_rng(1), floats(500, 10), floats(90, 60)).tolist() == [90, 60]


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 40)), min_size=1, max_size=30),
    st.randoms(use_true_random=False),
    st.integers(0, 2**32),
)
def test_acceptance_6_no_estimate_is_below_its_runtime_and_all_are_given_out(jobs, order, seed):
    runtime = floats(*(run for run, _ in jobs))
    estimate = [run + more for run, more in jobs]
    order.shuffle(estimate)
    found = paired(np.random.default_rng(seed), runtime, floats(*estimate))
    assert (found >= runtime).all()
    assert sorted(found.tolist()) == sorted(map(float, estimate))


def test_each_estimate_that_is_too_short_for_its_rank_is_raised_to_the_shortest_that_is_not():
    # Raising the first one further would do with one alone.
    found, number = raised(np.array([3.0, 2.0, 3.0]), np.array([3.0, 1.0, 2.0]))
    assert (found.tolist(), number) == ([2.0, 3.0, 3.0], 2)
