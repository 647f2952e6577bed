"""How good predictions were: what is counted, against the definitions."""

from __future__ import annotations

import json
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_plugins.prediction.measures import Measures

SIZES = (0, 10, 30)
SECONDS = st.floats(0.01, 1e6)
JOBS = st.lists(
    st.tuples(st.integers(0, 50), SECONDS, st.none() | SECONDS, SECONDS, st.booleans()), min_size=1
)


def measured(jobs, **more):
    found = Measures(SIZES, **more)
    for job in jobs:
        found.count(*job)
    return found


def accuracy(one, other):
    return min(one, other) / max(one, other)


def defined(jobs):
    """The figures, from their definitions."""
    answered = [job for job in jobs if job[2] is not None]
    of = (lambda values: pytest.approx(mean(values))) if answered else (lambda values: None)
    return {
        "jobs": len(jobs),
        "answered": pytest.approx(len(answered) / len(jobs)),
        "mean_error_percent": of([100 * abs(told / ran - 1) for _, ran, told, _, _ in answered]),
        "accuracy": of([accuracy(told, ran) for _, ran, told, _, _ in answered]),
        "estimate_accuracy": of([accuracy(estimate, ran) for _, ran, _, estimate, _ in answered]),
        "inside_interval": of([inside for *_, inside in answered]),
    }


@given(JOBS)
def test_the_figures_are_those_of_their_definitions_over_all_and_by_what_there_was_to_go_by(jobs):
    found = measured(jobs, intervals=True).figures()
    by_history = found.pop("by_history")
    assert found == defined(jobs)
    for least, below in ((0, 10), (10, 30), (30, 100)):
        here = [job for job in jobs if least <= job[0] < below]
        assert [one for one in by_history if one["runs_from"] == least] == (
            [{"runs_from": least, **defined(here)}] if here else []
        )


@given(JOBS, JOBS)
def test_counting_goes_on_with_what_was_saved(before, after):
    again = Measures(SIZES)
    again.restore(json.loads(json.dumps(measured(before).saved())))
    for job in after:
        again.count(*job)
    assert again.figures() == measured([*before, *after]).figures()


def test_without_intervals_nothing_is_said_of_them_and_of_nothing_there_is_no_mean():
    assert Measures(SIZES).figures() == {
        "jobs": 0,
        "answered": None,
        "mean_error_percent": None,
        "accuracy": None,
        "estimate_accuracy": None,
        "by_history": [],
    }
    assert Measures(SIZES, intervals=True).figures()["inside_interval"] is None
