"""A run's time: the wall clock's, but it never goes back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.daemon.clock import SLEW, RunClock


class Machine:
    """A machine's two clocks, and what was logged."""

    def __init__(self) -> None:
        self.wall, self.monotonic = 1_800_000_000.0, 500.0
        self.said: list[tuple[str, dict[str, Any]]] = []
        self.lost = 0
        self.clock = RunClock(wall=lambda: self.wall, monotonic=lambda: self.monotonic, log=self)
        self.clock.when_lost(self._lose)
        self.began = self.wall

    def _lose(self) -> None:
        self.lost += 1

    def warning(self, what: str, **more: Any) -> None:
        self.said.append((what, more))

    def goes_on(self, seconds: float) -> float:
        self.wall += seconds
        self.monotonic += seconds
        return self.clock()

    def is_set(self, seconds: float) -> float:
        self.wall += seconds
        return self.clock()


def test_undisturbed_it_is_the_wall_clock() -> None:
    machine = Machine()
    assert [machine.goes_on(1.5) - machine.began for _ in range(3)] == [1.5, 3.0, 4.5]
    assert not machine.said


def test_a_step_forward_is_followed_at_once() -> None:
    machine = Machine()
    assert machine.is_set(3600) == machine.wall
    assert machine.said == [
        ("the system's clock was set forward", {"seconds": 3600.0, "then": "the run's time follows"})
    ]
    assert not machine.lost


def test_after_a_small_step_back_it_waits_for_the_wall_clock_by_going_slower() -> None:
    machine = Machine()
    before = machine.clock()
    assert machine.is_set(-45) == before
    assert machine.goes_on(30) == pytest.approx(before + 15)
    assert machine.goes_on(60) == pytest.approx(before + 45) == machine.wall
    assert machine.goes_on(10) == machine.wall
    assert [what for what, _ in machine.said] == ["the system's clock was set back"]
    assert not machine.lost


def test_a_large_step_back_is_told_once_and_to_whoever_comes_late() -> None:
    machine = Machine()
    before = machine.clock()
    assert machine.is_set(-3600) == before
    machine.goes_on(5)
    assert machine.lost == 1
    assert machine.said == [
        ("the system's clock was set back", {"seconds": 3600.0, "then": "a new run begins with the new time"})
    ]
    late: list[bool] = []
    machine.clock.when_lost(lambda: late.append(True))
    assert late == [True]


def test_small_steps_back_add_up() -> None:
    machine = Machine()
    for _ in range(4):
        machine.is_set(-20)
    assert machine.lost == 1


def test_what_time_services_correct_by_slewing_is_not_logged() -> None:
    machine = Machine()
    for _ in range(100):
        machine.goes_on(10)
        machine.is_set(-0.01)
    assert not machine.said


@given(st.lists(st.tuples(st.floats(0, 1000), st.floats(-5000, 5000)), max_size=40))
def test_it_never_goes_back_and_always_goes_on(steps: list[tuple[float, float]]) -> None:
    machine = Machine()
    before = machine.clock()
    for seconds, step in steps:
        now = machine.is_set(step)
        assert now >= before
        then = machine.goes_on(seconds)
        # Floats of this size are exact to less than a microsecond.
        assert then >= now + seconds / 2 - 1e-6
        assert then >= machine.wall
        assert machine.lost or then - machine.wall <= SLEW + 1e-6
        before = then
