"""Verdicts on claims: what they say of several points, and how often chance alone makes them true."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

from headway.experiment import interval
from headway.experiment.judging import (
    Of,
    agrees,
    doubt,
    held,
    joined,
    pooled,
    provided,
    size_verdict,
    verdict,
)
from headway.experiment.statistics import Interval, share
from headway_plugins import reproductions

#: Tables of each kind: a share of 2.5 % is known to 0.8 % (one standard deviation).
TABLES = 400


def points(*means_and_halves: tuple[float, float]) -> list[Interval]:
    return [Interval(mean, half, 10) for mean, half in means_and_halves]


@pytest.mark.parametrize("of", Of)
@pytest.mark.parametrize("count", [1, 5, 20])
@pytest.mark.parametrize("common", [0.0, 0.8])
def test_tables_without_an_effect_are_judged_true_in_at_most_5_percent(of, count, common):
    rng = np.random.default_rng([count, int(10 * common)])
    wrong = 0
    for _ in range(TABLES):
        # The points of a table have the same ten seeds, and what these have in common.
        noise = rng.standard_normal((count, 10)) + common * rng.standard_normal(10)
        wrong += verdict([interval(row.tolist()) for row in noise], of) == "yes"
    assert wrong <= 0.05 * TABLES


@pytest.mark.parametrize("of", Of)
def test_a_clear_effect_is_seen_and_its_contrary_is_a_no(of):
    clear = points(*[(5, 1)] * 20)
    assert verdict(clear, of) == "yes"
    assert verdict([Interval(-one.mean, one.half, one.count) for one in clear], of) == "no"
    assert verdict(points(*[(0.5, 1)] * 20), of) == "no"
    assert verdict([], of) == "no"


@pytest.mark.parametrize(
    ("of", "found", "expected"),
    [
        (Of.ALL, [(5, 1), (5, 1)], "yes"),
        (Of.ALL, [(5, 1), (0, 1)], "in part"),
        (Of.ALL, [(5, 1), (-5, 1)], "in part"),
        (Of.MOST, [(5, 1), (5, 1), (-5, 1)], "yes"),
        (Of.MOST, [(5, 1), (0.5, 1), (-5, 1)], "in part"),
        (Of.MOST, [(5, 1), (-0.5, 1), (-5, 1)], "no"),
        (Of.MEAN, [(5, 1), (5, 1), (-5, 1)], "yes"),
        (Of.MEAN, [(5, 1), (-5, 1)], "no"),
        (Of.SOME, [(5, 1), (0, 1)], "yes"),
        (Of.SOME, [(5, 1), (-5, 1)], "in part"),
    ],
)
def test_a_claim_is_judged_by_what_it_says_of_its_points(of, found, expected):
    assert verdict(points(*found), of) == expected


def test_one_significant_point_of_many_is_chance():
    barely = (1.05, 1)
    assert verdict(points(barely), Of.SOME) == "yes"
    assert verdict(points(barely, *[(0, 1)] * 9), Of.SOME) == "no"


def test_the_doubt_of_an_interval_that_touches_0_is_5_percent():
    assert doubt(Interval(1.0, 1.0, 10)) == pytest.approx(0.05)
    assert doubt(Interval(-1.0, 0.1, 10)) == 1.0
    assert doubt(Interval(1.0, float("nan"), 1)) == 1.0
    # Nothing was drawn: the difference is what it is.
    assert doubt(Interval(1.0, 0.0, 1)) == 0.0


def test_points_are_pooled_as_if_they_moved_together():
    assert pooled([Interval(1.0, 2.0, 10), Interval(3.0, 4.0, 5)]) == Interval(2.0, 3.0, 5)


@pytest.mark.parametrize(
    ("checks", "of", "expected"),
    [
        ([True, True], Of.ALL, "yes"), ([True, False], Of.ALL, "in part"), ([False], Of.ALL, "no"),
        ([], Of.ALL, "no"), ([True, True, False], Of.MOST, "yes"), ([True, False], Of.MOST, "no"),
        ([True, False], Of.SOME, "yes"), ([False, False], Of.SOME, "no"),
    ],
)  # fmt: skip
def test_checks_without_chance_are_counted(checks, of, expected):
    assert held(checks, of) == expected


def test_checks_have_no_mean():
    with pytest.raises(ValueError, match="checks have no mean"):
        held([True], Of.MEAN)


def test_a_claim_of_several_parts_holds_in_part_where_they_differ():
    assert [joined("yes", "yes"), joined("yes", "no"), joined("no", "no")] == ["yes", "in part", "no"]


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        ((2.8, 0.3), "yes"),
        ((3.3, 0.3), "no"),
        ((3.0, 2.5), "yes"),
        ((10.0, 11.0), "no"),
        ((2.7, float("nan")), "no"),
    ],
)
def test_a_figure_agrees_if_its_interval_can_tell(measured, expected):
    assert agrees(2.7, Interval(*measured, 10)) == expected


def test_details_of_an_effect_that_is_not_there_say_nothing():
    found = [provided("yes", "yes"), provided("yes", "no"), provided("in part", "yes"), provided("no", "yes")]
    assert found == ["yes", "in part", "in part", "no"]


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        ((10.8, 2.0), "smaller: 0.34 of it"),
        ((30.0, 2.0), "as published"),
        ((40.0, 2.0), "larger: 1.25 of it"),
    ],
)
def test_a_size_is_judged_beside_the_published_one(measured, expected):
    assert size_verdict(31.88, Interval(*measured, 10)) == expected


def test_a_share_has_wilsons_interval():
    # Wilson's interval of 10 of 100 is 0.0552 to 0.1744; none of 100 may still be 3.7 %.
    found = share(10, 100)
    assert (found.low, found.high) == (pytest.approx(0.05523, abs=1e-5), pytest.approx(0.17437, abs=1e-5))
    assert share(0, 100).high == pytest.approx(0.0370, abs=1e-4)
    with pytest.raises(ValueError, match="at least one"):
        share(0, 0)


def words_of(node: ast.AST) -> set[str]:
    """The texts that a conditional expression may become."""
    if isinstance(node, ast.IfExp):
        return words_of(node.body) | words_of(node.orelse)
    return {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()


def test_each_judge_of_a_reproduction_can_say_no():
    for path in sorted(Path(reproductions.__path__[0]).glob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        parts = {part for node in ast.walk(tree) if isinstance(node, ast.IfExp)
                 for part in (node.body, node.orelse)}  # fmt: skip
        for node in ast.walk(tree):
            if isinstance(node, ast.IfExp) and node not in parts and "yes" in words_of(node):
                assert "no" in words_of(node), f"{path.name}:{node.lineno} cannot say no"
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Claim" and len(node.args) > 3:
                said = getattr(node.args[3], "value", "")
                assert said not in ("yes", "in part"), f"{path.name}:{node.lineno} is judged by nothing"
