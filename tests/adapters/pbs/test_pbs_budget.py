"""How many commands may be run: looks and starts share PBS's connections."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_adapters.pbs.budget import Budget


class Clock:
    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


@given(
    st.integers(30, 600),
    st.lists(
        st.tuples(st.sampled_from(["look", "start"]), st.integers(1, 200), st.floats(0, 20)), max_size=60
    ),
)
def test_in_no_minute_there_are_more_than_that(limit: int, wishes: list[tuple[str, int, float]]) -> None:
    clock = Clock()
    budget = Budget(limit, clock)
    ran: list[tuple[float, int]] = []
    for what, count, pause in wishes:
        clock.now += pause
        if what == "start":
            count = min(count, budget.starts_left() or 0)
            budget.spend(count)
        else:
            # A look of more commands than may be run at once is paid for afterwards.
            count = min(count, 4)
            while (seconds := budget._pause(count)) > 0.0:
                clock.now += seconds
        ran.append((clock.now, count))
    for begin, _ in ran:
        assert sum(count for at, count in ran if begin <= at < begin + 60.0) <= limit


def test_half_of_the_starts_may_be_run_at_once_and_the_others_as_the_minute_goes_on() -> None:
    """Of 300 a minute 200 are the starts': 100 at once, then 100 in each minute."""
    clock = Clock()
    budget = Budget(300, clock)
    assert budget.starts_left() == 100
    budget.spend(100)
    assert budget.starts_left() == 0
    clock.now += 6.0
    assert budget.starts_left() == 10
    budget.spend(10)
    clock.now += 0.6
    assert budget.starts_left() == 1
    clock.now += 600.0
    assert budget.starts_left() == 100


def test_starts_leave_the_looks_their_third() -> None:
    clock = Clock()
    budget = Budget(300, clock)
    budget.spend(100)
    assert budget._pause(20) == 0.0
    assert budget._pause(1) == pytest.approx(0.75)


def test_what_somebody_ends_is_run_at_once_and_paid_for_by_starts_afterwards() -> None:
    """Of 30 a minute 20 are the starts': after the bucket's ten, one in six seconds."""
    clock = Clock()
    budget = Budget(30, clock)
    budget.spend(15)
    assert budget.starts_left() == 0
    clock.now += 30.0
    assert budget.starts_left() == 0
    clock.now += 6.0
    assert budget.starts_left() == 1


def test_without_a_limit_nobody_waits() -> None:
    budget = Budget(None)
    budget.spend(10_000)
    budget.wait(10_000)
    assert budget.starts_left() is None


def test_a_look_that_waits_ends_when_the_adapter_is_closed() -> None:
    clock = Clock()
    budget = Budget(30, clock)
    budget.wait(500)
    waiting = threading.Thread(target=budget.wait, args=(2,))
    waiting.start()
    budget.close()
    waiting.join(60.0)
    assert not waiting.is_alive()
