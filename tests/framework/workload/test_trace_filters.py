"""Parts and variants of a trace."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from headway.errors import UserError
from headway.workload import (
    Column,
    Trace,
    drop_larger_than,
    first,
    last,
    offered_load,
    scale_arrivals,
    scale_runtimes,
    trace_jobs,
    window,
)


@pytest.fixture
def trace() -> Trace:
    """Five jobs, submitted at 1000, 1010, ..., of 1 to 5 processors; 100 s estimated, 51 s run."""
    records = np.full((5, 18), -1.0)
    records[:, Column.NUMBER] = np.arange(1, 6)
    records[:, Column.SUBMIT] = 1000 + 10 * np.arange(5)
    records[:, Column.RUNTIME] = 51
    records[:, Column.REQUESTED] = np.arange(1, 6)
    records[:, Column.ESTIMATE] = 100
    records.setflags(write=False)
    return Trace("log.swf", ["; MaxProcs: 5"], {"MaxProcs": "5"}, records, np.arange(5) + 2)


def numbers(trace: Trace) -> list[float]:
    return trace.records[:, Column.NUMBER].tolist()


def test_first_and_last_jobs(trace: Trace) -> None:
    assert numbers(first(trace, 2)) == [1, 2]
    assert numbers(last(trace, 2)) == [4, 5]
    assert first(trace, 9).line_numbers.tolist() == last(trace, 9).line_numbers.tolist() == [2, 3, 4, 5, 6]
    assert last(trace, 2).line_numbers.tolist() == [5, 6]


def test_a_window_is_counted_from_the_first_submission_and_open_at_its_end(trace: Trace) -> None:
    assert numbers(window(trace, 10, 30)) == [2, 3]
    assert window(trace, 10, 30).records[0, Column.SUBMIT] == 1010
    assert numbers(window(trace, -5, float("inf"))) == [1, 2, 3, 4, 5]


def test_arrivals_are_scaled_from_the_first_on(trace: Trace) -> None:
    assert scale_arrivals(trace, 0.25).records[:, Column.SUBMIT].tolist() == [1000, 1002, 1005, 1008, 1010]
    assert np.array_equal(scale_arrivals(trace, 1).records, trace.records)


def test_runtimes_and_estimates_are_scaled_together(trace: Trace) -> None:
    half = scale_runtimes(trace, 0.5)
    assert half.records[0, [Column.RUNTIME, Column.ESTIMATE]].tolist() == [26, 50]
    tiny = scale_runtimes(trace, 1e-6)
    assert tiny.records[0, [Column.RUNTIME, Column.ESTIMATE]].tolist() == [1, 1]


def test_unknown_runtimes_stay_unknown(trace: Trace) -> None:
    records = trace.records.copy()
    records[0, Column.RUNTIME], records[0, Column.ESTIMATE] = -1, 0
    unknown = Trace("log.swf", records=records)
    assert scale_runtimes(unknown, 7).records[0, [Column.RUNTIME, Column.ESTIMATE]].tolist() == [-1, 0]


def test_jobs_larger_than_a_machine_are_dropped(trace: Trace) -> None:
    smaller = drop_larger_than(trace, 3)
    assert numbers(smaller) == [1, 2, 3]
    assert trace_jobs(smaller, 3)[1] == []


def test_the_offered_load_is_work_over_capacity(trace: Trace) -> None:
    assert offered_load(trace, 5) == pytest.approx((1 + 2 + 3 + 4 + 5) * 51 / (5 * 40))
    assert offered_load(scale_arrivals(trace, 0.5), 5) == pytest.approx(2 * offered_load(trace, 5))


def test_unknown_runtimes_and_sizes_offer_nothing(trace: Trace) -> None:
    records = trace.records.copy()
    records[0, Column.RUNTIME] = -1
    records[1, Column.REQUESTED] = -1
    assert offered_load(Trace("log.swf", records=records), 5) == pytest.approx((3 + 4 + 5) * 51 / (5 * 40))


def test_a_load_needs_time(trace: Trace) -> None:
    with pytest.raises(UserError, match=r"log\.swf: offered load: .* found one instant"):
        offered_load(first(trace, 1), 5)


def test_what_was_done_is_noted_and_the_trace_itself_stays(trace: Trace) -> None:
    before = trace.records.copy()
    changed = scale_runtimes(drop_larger_than(first(trace, 4), 3), 2)
    assert changed.header == [
        "; MaxProcs: 5",
        "; Note: only the first 4 jobs",
        "; Note: without jobs of more than 3 processors",
        "; Note: runtimes and estimates multiplied by 2",
    ]
    assert changed.max_processors == 5
    assert trace.header == ["; MaxProcs: 5"]
    assert np.array_equal(trace.records, before)


@pytest.mark.parametrize(
    ("filtered", "message"),
    [
        (lambda trace: first(trace, 0), "first: expected at least 1, found 0"),
        (lambda trace: last(trace, -1), "last: expected at least 1, found -1"),
        (lambda trace: window(trace, 20, 20), "window: expected a start before its end, found 20 to 20 s"),
        (lambda trace: window(trace, 50, 60), "from 50 to 60 s, but the last is submitted 40 s"),
        (lambda trace: scale_arrivals(trace, 0), "scale_arrivals: expected a factor greater than 0, found 0"),
        (lambda trace: scale_runtimes(trace, float("nan")), "expected a factor greater than 0, found nan"),
        (lambda trace: scale_runtimes(trace, float("inf")), "expected a factor greater than 0, found inf"),
        (lambda trace: drop_larger_than(trace, 0), "drop_larger_than: expected at least 1, found 0"),
        (lambda trace: offered_load(trace, 0), "offered_load: expected at least 1, found 0"),
    ],
)
def test_nonsense_is_the_users_error(trace: Trace, filtered: Callable[[Trace], object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        filtered(trace)
