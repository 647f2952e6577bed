"""Means with confidence intervals."""

from __future__ import annotations

import math

import pytest

from headway.errors import UserError
from headway.experiment import interval, paired
from headway.experiment.campaign import read_rows
from headway.experiment.reproduction import Claim, claims_table


def test_an_interval_is_students():
    # t(0.975, 3) = 3.1824; the standard deviation of 1, 2, 3, 4 is 1.29099
    found = interval([1, 2, 3, 4])
    assert found.mean == 2.5
    assert found.half == pytest.approx(3.182446 * 1.2909944 / 2, rel=1e-6)
    assert (found.low, found.high) == (found.mean - found.half, found.mean + found.half)


def test_one_value_has_no_interval_and_none_no_mean():
    assert interval([7.0]).mean == 7.0
    assert math.isnan(interval([7.0]).half)
    assert str(interval([7.0])) == "7"
    assert math.isnan(interval([]).mean)


def test_pairs_are_compared_seed_by_seed():
    # Each is 10 % less than its partner, so there is no spread, however different the pairs are.
    found = paired([90, 900, 9], [100, 1000, 10])
    assert found.mean == pytest.approx(-10)
    assert found.half == pytest.approx(0, abs=1e-9)


def test_pairs_without_a_ratio_are_left_out():
    assert paired([1, 90], [0, 100]).count == 1


def test_claims_are_a_markdown_table():
    table = claims_table(
        [Claim("Figure 1", "more", "+3", "yes"), Claim("2", "3 % more", "+1", "yes", "smaller")]
    )
    assert table.splitlines()[-2:] == [
        "| Figure 1 | more | +3 | yes | - |",
        "| 2 | 3 % more | +1 | yes | smaller |",
    ]


def test_what_is_no_campaigns_rows_is_refused(tmp_path):
    (tmp_path / "figure.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(UserError, match="expected the rows of a campaign"):
        read_rows(tmp_path / "figure.csv")
