"""Runtimes in stages: the vectors, the presets' figures, and the fit."""

from __future__ import annotations

import numpy as np
import pytest

from headway.errors import UserError
from headway_plugins.grid.lpc import GROUPS
from headway_plugins.grid.runtimes import StagedRuntimes, fitted

TWO = StagedRuntimes((1, 10, 100), (0.5, 0.5))


def test_w23_moments():
    assert TWO.mean == pytest.approx(21.4975769, abs=5e-8)
    assert TWO.second_moment == pytest.approx(1085.6276311, abs=5e-8)


def test_w24_draws():
    wanted = [1, 3.16227766, 10, 31.6227766, 100]
    assert TWO.at([0, 0.25, 0.5, 0.75, 1]) == pytest.approx(wanted, rel=1e-8)
    assert TWO.below(wanted) == pytest.approx([0, 0.25, 0.5, 0.75, 1])


@pytest.mark.parametrize("name", GROUPS)
def test_presets_have_the_printed_mean_and_deviation(name):
    group = GROUPS[name]
    assert group.runtimes.mean == pytest.approx(group.mean_run, rel=1e-3)
    assert group.runtimes.deviation == pytest.approx(group.run_deviation, rel=1e-3)


def test_biomed_has_the_printed_quantiles():
    assert GROUPS["lpc-biomed"].runtimes.below([10, 900]) == pytest.approx([0.5, 0.7])


def test_repeats_keep_the_runtime_before():
    rng = np.random.default_rng(1)
    found = GROUPS["lpc-biomed"].runtimes.draw(rng, 20_000, repeat=0.8)
    assert (np.diff(found) == 0).mean() > 0.8
    assert np.log(found).mean() == pytest.approx(np.log(drawn_of_biomed()).mean(), rel=0.1)


def drawn_of_biomed():
    return GROUPS["lpc-biomed"].runtimes.draw(np.random.default_rng(2), 20_000)


@pytest.mark.parametrize("name", ["lpc-biomed", "lpc-dteam", "lpc-dzero"])
def test_the_fit_finds_the_distribution_again(name):
    stages = GROUPS[name].runtimes
    drawn = stages.at(np.random.default_rng(1).random(50_000))
    found = fitted(drawn)
    times = np.geomspace(2, stages.knots[-1], 100)
    assert np.abs(found.below(times) - stages.below(times)).max() < 0.025
    assert found.mean == pytest.approx(drawn.mean(), rel=0.15)


def test_the_fit_of_one_line_is_one_stage():
    drawn = StagedRuntimes((1, 1000), (1.0,)).at(np.linspace(0, 1, 10_001))
    assert len(fitted(drawn, 1).masses) == 1
    # A stage more gains next to nothing of next to no error, or there are few.
    assert np.abs(fitted(drawn).below([10, 100]) - [1 / 3, 2 / 3]).max() < 0.01


def test_the_fit_of_runtimes_that_are_all_alike():
    found = fitted(np.full(10, 60.0))
    assert found.draw(np.random.default_rng(1), 5).tolist() == [60.0] * 5


@pytest.mark.parametrize(
    ("knots", "masses", "what"),
    [
        ((1, 10), (0.5, 0.5), "expected 1 masses"),
        ((10, 1), (1.0,), "rise"),
        ((0, 1), (1.0,), "above 0 s"),
        ((1, 10, 100), (0.9, 0.9), "1 together, found 1.8"),
        ((1, 10, 100), (1.5, -0.5), "0 or more"),
        ((1, float("nan")), (1.0,), "rise"),
    ],
)
def test_refuses_what_is_no_distribution(knots, masses, what):
    with pytest.raises(UserError, match=what):
        StagedRuntimes(knots, masses)


def test_refuses_to_fit_nothing():
    with pytest.raises(UserError, match="found none"):
        fitted(np.array([np.nan]))
