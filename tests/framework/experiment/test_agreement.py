"""Whether two scenarios put policies in the same order."""

from __future__ import annotations

import math

import pytest

from headway.experiment.agreement import Pairs, decisions, kendall, orders, pairs, taus
from headway.experiment.campaign import Campaign, Row, Scenario, Variant
from headway.experiment.rulebook import Evidence


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ([1, 2, 3], [10, 20, 30], 1.0),
        ([1, 2, 3], [30, 20, 10], -1.0),
        # Of six pairs five agree and one does not.
        ([1, 2, 3, 4], [1, 3, 2, 4], 4 / 6),
        # tau-b: one tie among three pairs, the other two agree: 2 / sqrt(2 x 3).
        ([1, 1, 2], [1, 2, 3], 2 / math.sqrt(6)),
    ],
)
def test_kendall(ours, theirs, expected):
    assert kendall(ours, theirs) == pytest.approx(expected)


@pytest.mark.parametrize(("ours", "theirs"), [([1], [1]), ([], []), ([1, 1], [1, 2]), ([1, 2], [2, 2])])
def test_no_order_no_tau(ours, theirs):
    assert math.isnan(kendall(ours, theirs))


def rows_of(scenario, **values):
    """A row of each variant and sample; the k-th value is that of seed k."""
    return [
        Row(scenario, 0.0, variant, seed, {"mean wait": float(value)})
        for variant, of in values.items()
        for seed, value in enumerate(of, start=1)
    ]


REAL = rows_of("own", a=[10, 11, 12], b=[20, 22, 25], c=[11, 10, 13])


def test_an_order_of_each_sample():
    assert orders(REAL, "own", "mean wait", ["b", "a"]) == {1: [20, 10], 2: [22, 11], 3: [25, 12]}


def test_tau_is_taken_sample_by_sample():
    other = rows_of("model", a=[1, 3], b=[3, 2], c=[2, 1])
    # In the first sample the order is the same; in the second b, c, a against c, a, b: one pair of three.
    assert taus([*REAL, *other], "own", "model", "mean wait", ["a", "b", "c"]) == {
        1: 1.0,
        2: pytest.approx(1 / 3),
    }


def evidence(*rows):
    variants = tuple(Variant(label, ()) for label in "abc")
    scenarios = tuple(Scenario(label, 0.0, 10) for label in ("own", "model"))
    return Evidence(Campaign(variants, scenarios, (1, 2, 3)), (), (), rows)


def test_pairs_that_differ_significantly_are_decided():
    assert decisions(evidence(*REAL), "mean wait", {}) == {
        ("own", "a", "b"): "less",
        ("own", "b", "c"): "more",
    }


def test_points_that_are_left_out_decide_nothing():
    found = decisions(evidence(*REAL), "mean wait", {("own", 0.0, "a"): "saturated"})
    assert found == {("own", "b", "c"): "more"}


def test_the_other_scenario_keeps_loses_or_reverses_a_decision():
    model = rows_of("model", a=[20, 22, 25], b=[10, 11, 12], c=[9.9, 12, 11.5])
    found = pairs(decisions(evidence(*REAL, *model), "mean wait", {}), "own", "model")
    assert found == Pairs(decided=2, same=0, reversed=1)
    assert str(found) == "0 of 2, 1 reversed"
    assert str(Pairs(2, 2, 0)) == "2 of 2"
