"""How many commands may be run: looks and starts share PBS's connections."""

from __future__ import annotations

import threading

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


def test_starts_leave_the_looks_their_third() -> None:
    clock = Clock()
    budget = Budget(300, clock)
    assert budget.starts_left() == 200
    budget.spend(200)
    assert budget.starts_left() == 0
    budget.wait(20)
    clock.now += 59.0
    assert budget.starts_left() == 0
    clock.now += 2.0
    assert budget.starts_left() == 200


def test_what_is_ended_by_somebody_is_run_at_once_and_counted() -> None:
    budget = Budget(30)
    budget.spend(500)
    assert budget.starts_left() == 0


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
