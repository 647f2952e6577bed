"""Which of several copies is the job."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_plugins.coscheduling.everywhere import UNKNOWN, Copy, in_vain, the_job


def copy(name: str, start: float | None = None, ended: str = "", *, orders: int = 0) -> Copy:
    return Copy(name.upper(), f"{name}:1", f"{name}:q", start, ended, orders)


@pytest.mark.parametrize(
    ("copies", "chosen", "job"),
    [
        pytest.param([copy("a"), copy("b")], "", None, id="none has started"),
        pytest.param([copy("a"), copy("b")], "b:1", "b:1", id="a start is on its way"),
        pytest.param([copy("a"), copy("b", 5)], "", "b:1", id="the first start"),
        pytest.param([copy("a", 7), copy("b", 5)], "a:1", "b:1", id="the lower start, seen late"),
        pytest.param([copy("a", 5), copy("b", 5)], "b:1", "a:1", id="at one time the first site"),
        pytest.param([copy("a", 3), copy("b", 5, "completed")], "a:1", "b:1", id="ended before running"),
        pytest.param([copy("a", 3, "failed"), copy("b", 2)], "", "a:1", id="a failure is an end"),
        pytest.param(
            [copy("a", 3, "completed"), copy("b", 2, "completed")], "a:1", "b:1", id="two short ones"
        ),
        pytest.param([copy("a", 7), copy("b", 5, orders=1)], "a:1", "a:1", id="it is told to go"),
        pytest.param(
            [copy("a", 7), copy("b", 5, "cancelled", orders=1)], "a:1", "a:1", id="it was told to go"
        ),
        pytest.param([copy("a", None, "cancelled"), copy("b")], "", None, id="a copy is cancelled"),
        pytest.param([copy("a", 4, "cancelled"), copy("b")], "a:1", "a:1", id="the job is cancelled"),
        pytest.param([copy("a", None, UNKNOWN), copy("b", 9)], "", "b:1", id="what runs is known"),
        pytest.param([copy("a"), copy("b", orders=1)], "a:1", "a:1", id="it was requeued"),
    ],
)
def test_which_copy_is_the_job(copies, chosen, job):
    found = the_job(copies, chosen)
    assert (found.job if found is not None else None) == job


def test_a_copy_that_ends_before_the_order_to_go_reaches_it_counts():
    late = copy("b", 5, orders=1)
    late.over("completed")
    assert the_job([copy("a", 3), late], "a:1") is late
    gone = copy("b", 5, orders=1)
    gone.over("cancelled")
    assert the_job([copy("a", 3), gone], "a:1").job == "a:1" and in_vain([copy("a", 3), gone]) == []


@given(
    st.lists(
        st.builds(
            lambda start, ended, orders: (start, ended if start is not None else "", orders),
            st.none() | st.integers(0, 5),
            st.sampled_from(["", "completed", "cancelled"]),
            st.integers(0, 2),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_the_copy_that_is_kept_has_the_lowest_start_of_those_that_can_be_kept(states):
    copies = [copy(f"s{at}", *state[:2], orders=state[2]) for at, state in enumerate(states)]
    free = [one for one in copies if one.start is not None and not one.orders]
    ended = [one for one in free if one.ended]
    found = the_job(copies, "")
    if not free:
        assert found is None
        return
    among = ended or free
    assert found.start == min(one.start for one in among)
    assert found is next(one for one in among if one.start == found.start)
    assert len(in_vain(copies)) == max(len(ended) - 1, 0)
