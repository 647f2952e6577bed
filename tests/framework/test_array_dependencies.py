"""Dependencies on arrays, delays after a start, and jobs that are told before those that they depend on."""

from __future__ import annotations

from typing import Any

import pytest
from building import described
from test_state import begin, flat, queued, submit, tell

from headway import events as ev
from headway.model import Dependency, JobDescription
from headway.state import State


def element(number: int, **more: Any) -> JobDescription:
    return described(f"9_{number}", array_id="9", array_index=number, **more)


def after(kind: str, job_id: str, delay: float = 0.0) -> dict[str, Any]:
    return {"dependencies": (Dependency(kind, job_id, delay),)}


def end(state: State, time: float, *outcomes: tuple[str, str]) -> None:
    tell(state, *(ev.JobEnded(time, job_id, outcome) for job_id, outcome in outcomes))


@pytest.mark.parametrize(
    ("kind", "outcomes", "met"),
    [
        ("ended", ("completed", "failed"), True), ("completed", ("completed", "completed"), True),
        ("completed", ("failed", "completed"), False), ("completed", ("completed", "cancelled"), False),
        ("failed", ("failed", "completed"), True), ("failed", ("completed", "cancelled"), True),
        ("failed", ("completed", "completed"), False),
    ],
)  # fmt: skip
def test_an_array_is_over_with_its_last_element(kind: str, outcomes: tuple[str, str], met: bool) -> None:
    state = flat()
    submit(state, element(1), element(2), described("b", **after(kind, "9")))
    end(state, 5, ("9_1", outcomes[0]))
    assert "b" not in queued(state)
    end(state, 6, ("9_2", outcomes[1]))
    assert queued(state) == (["b"] if met else [])
    assert met or "never" in state.why_waiting(state.jobs["b"])


def test_what_came_of_the_first_elements_counts_for_a_job_that_comes_later() -> None:
    state = flat()
    submit(state, element(1), element(2))
    end(state, 5, ("9_1", "failed"))
    bad, good = described("bad", **after("failed", "9")), described("good", **after("completed", "9"))
    submit(state, bad, good, now=6)
    end(state, 7, ("9_2", "completed"))
    assert queued(state) == ["bad"]


def test_an_array_of_which_nothing_is_left_is_forgotten() -> None:
    state = flat()
    submit(state, element(1), element(2))
    end(state, 5, ("9_1", "completed"), ("9_2", "completed"))
    assert not state.arrays and not state.past


def test_an_array_has_started_when_all_of_it_has() -> None:
    state = flat()
    submit(state, element(1), element(2), described("b", **after("started", "9")))
    begin(state, "9_1")
    tell(state, ev.JobStarted(1, "9_1"))
    end(state, 2, ("9_1", "completed"))
    assert queued(state) == ["9_2"]
    begin(state, "9_2")
    tell(state, ev.JobStarted(3, "9_2"))
    assert queued(state) == ["b"]


@pytest.mark.parametrize("ends", [False, True])
def test_a_delay_counts_from_the_start(ends: bool) -> None:
    state = flat()
    submit(state, described("a"), described("b", **after("started", "a", 60)))
    assert "60 s" in state.why_waiting(state.jobs["b"])
    begin(state, "a")
    tell(state, ev.JobStarted(10, "a"))
    if ends:
        end(state, 20, ("a", "failed"))
    assert queued(state) == [] and state.next_wakeup() == 70
    state.now = 70
    state.advance(70)
    assert queued(state) == ["b"]


def test_a_job_that_never_started_counts_as_started_when_it_was_cancelled() -> None:
    state = flat()
    submit(state, described("a"), described("b", **after("started", "a", 60)))
    end(state, 20, ("a", "cancelled"))
    assert queued(state) == [] and state.next_wakeup() == 80


def test_a_job_may_be_told_before_the_jobs_that_it_depends_on() -> None:
    """All of them came in the same second, or the other job was requeued since."""
    state = flat()
    submit(
        state,
        described("b", **after("ended", "9")),
        described("c", **after("started", "a")),
        element(1),
        described("a"),
    )
    assert queued(state) == ["9_1", "a"]
    end(state, 5, ("9_1", "completed"), ("a", "completed"))
    assert queued(state) == ["b", "c"]


def test_a_changed_dependency_may_be_told_before_the_job_that_it_is_on() -> None:
    state = flat()
    submit(state, described("b"))
    tell(state, ev.JobChanged(1, described("b", **after("ended", "a"))), ev.JobSubmitted(1, described("a")))
    assert queued(state) == ["a"]


def test_elements_of_a_singleton_do_not_wait_for_each_other() -> None:
    state = flat()
    single = {"name": "x", "user": "u", **after("singleton", "")}
    submit(state, described("a", name="x", user="u"), element(1, **single), element(2, **single))
    assert queued(state) == ["a"]
    end(state, 5, ("a", "completed"))
    assert queued(state) == ["9_1", "9_2"]
