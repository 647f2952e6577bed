"""Jobs' ids in the order in which batch systems number them."""

from __future__ import annotations

import random

import msgspec
import pytest
from building import described
from hypothesis import given
from hypothesis import strategies as st

from headway import events as ev
from headway.model import ClusterDescription
from headway.model.numbering import number
from headway.state import State


def test_the_number_comes_first_and_then_the_element() -> None:
    for names in (
        ["9", "25", "25+0", "25+1", "25_1", "25_2", "25_10", "26_1", "26_2", "100"],
        ["7.server", "25[1].server", "25[2].server", "25[10].server", "26[1].server", "100.server"],
        ["25[1]", "25[2]", "25[10]", "26", "100[1]"],
        ["siteA:25_1", "siteA:25_2", "siteA:25_10", "siteA:26_1", "siteB:3", "siteB:25_1"],
        ["", "a", "a1", "a1b", "a1b2", "a02", "a2", "b"],
    ):
        mixed = random.Random(1).sample(names, len(names))
        assert sorted(mixed, key=number) == names


@given(st.lists(st.text(alphabet="0123456789_[].ab²٣") | st.text()))
def test_all_ids_compare_whatever_they_look_like(names: list[str]) -> None:
    """Each id has one place, also without digits, with a leading 0, or with more digits than a number has."""
    names = [*names, "1" * 19, "1" * 5000, "01", "1"]
    assert sorted(names, key=number) == sorted(reversed(names), key=number)


@given(st.text(), st.text())
def test_only_equal_ids_are_equal(one: str, other: str) -> None:
    assert (number(one) == number(other)) == (one == other)


@pytest.mark.parametrize(
    ("numbered", "order"), [(True, ["25_2", "25_10", "26_1"]), (False, ["26_1", "25_10", "25_2"])]
)
def test_ties_break_by_numbers_only_where_ids_are_the_batch_system_s(
    numbered: bool, order: list[str]
) -> None:
    state = State(msgspec.structs.replace(ClusterDescription.flat(4), numbered=numbered))
    state.now = 5.0
    state.apply([ev.JobSubmitted(5.0, described(name, 1, 10, 5.0)) for name in ("26_1", "25_10", "25_2")])
    assert [job.id for job in state.domains["pool"].queue] == order


def test_a_cluster_that_was_recorded_without_numbers_has_the_order_of_then() -> None:
    """So its journal replays."""
    recorded = msgspec.to_builtins(ClusterDescription.flat(4))
    del recorded["numbered"]
    assert not msgspec.convert(recorded, ClusterDescription).numbered
