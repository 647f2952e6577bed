"""Flow shares of groups: the specification's vectors, then what holds for all demands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_plugins.grid.flow_share import max_min


def test_w21_who_demands_most_is_cut():
    assert max_min(140, {"Biomed": 100, "Dteam": 10, "Atlas": 60}) == {"Biomed": 70, "Dteam": 10, "Atlas": 60}


@pytest.mark.parametrize(
    ("capacity", "demands", "shares"), [(90, [100] * 3, [30] * 3), (140, [20, 30], [20, 30])]
)
def test_w22_equal_demands_get_equal_shares_and_nothing_is_cut_without_need(capacity, demands, shares):
    found = max_min(capacity, {str(at): demand for at, demand in enumerate(demands)})
    assert list(found.values()) == shares


@given(st.floats(0, 1e6), st.dictionaries(st.text(max_size=3), st.floats(0, 1e6), min_size=1))
def test_all_is_given_and_nobody_who_is_cut_has_less_than_another(capacity, demands):
    shares = max_min(capacity, demands)
    assert sum(shares.values()) == pytest.approx(min(capacity, sum(demands.values())), abs=1e-6)
    for name, share in shares.items():
        assert 0 <= share <= demands[name]
        if share < demands[name]:
            assert share == pytest.approx(max(shares.values()))
