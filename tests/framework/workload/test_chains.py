"""Whom the jobs of a log follow: fields 17 and 18, or what their users' ends and submissions say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import UserError
from headway.workload import Column, Trace, scale_arrivals, trace_jobs
from headway.workload.chains import chains_of, recorded_chains, with_chains
from headway.workload.jobs import Follows
from headway.workload.trace import WIDTH


def trace_of(*jobs: tuple[float, ...], **columns: list[float]) -> Trace:
    """Jobs of (submission, wait, runtime, user), in order of submission."""
    records = np.full((len(jobs), WIDTH), -1.0)
    for row, job in enumerate(jobs):
        records[row, [Column.SUBMIT, Column.WAIT, Column.RUNTIME, Column.USER]] = job
        records[row, [Column.NUMBER, Column.REQUESTED]] = row + 1, 1
    for name, values in columns.items():
        records[:, Column[name]] = values
    return Trace("t.swf", records=records, line_numbers=np.arange(len(jobs)) + 1)


def links(trace: Trace, processors: int | None = None) -> dict[str, tuple[str, float]]:
    jobs, _ = trace_jobs(trace, processors)
    return {name: (link.job_id, link.think) for name, link in chains_of(trace, jobs).items()}


def test_a_job_follows_the_last_one_of_its_user_that_ended_at_most_20_minutes_before():
    trace = with_chains(trace_of(
        (0, 0, 100, 1),      # ends at 100
        (50, 0, 10, 2),      # another user
        (60, 10, 20, 1),     # ends at 90, before the first; nothing of its user's has ended
        (100, 0, 1000, 1),   # the first has ended this instant
        (200, 0, 10, 1),     # follows the first too: the others run still
        (1300, 0, 10, 1),    # 200 s after the end of the fourth
        (2510, 0, 10, 1),    # 1200 s after the end of the sixth
        (3721, 0, 10, 1),    # 1201 s after: a new session
    ))  # fmt: skip
    assert links(trace) == {
        "4": ("1", 0.0), "5": ("1", 100.0), "6": ("4", 200.0), "7": ("6", 1200.0),
    }  # fmt: skip


def test_fields_17_and_18_are_taken_where_a_trace_has_any():
    trace = trace_of(
        (0, 0, 100, 1), (150, 0, 10, 1), (160, 0, 10, 1), (400, 0, 10, 1),
        PRECEDING=[-1, -1, 1, 2], THINK_TIME=[-1, -1, 7, -1],
    )  # fmt: skip
    assert recorded_chains(trace)
    # The second follows nobody, for the trace does not say so; the fourth came 240 s after the second ended.
    assert links(with_chains(trace)) == {"3": ("1", 7.0), "4": ("2", 240.0)}
    # Think times stay what they were when the load is changed.
    assert links(scale_arrivals(with_chains(trace), 0.5)) == {"3": ("1", 7.0), "4": ("2", 240.0)}


def test_a_trace_that_says_all_think_times_is_taken_as_it_is():
    trace = trace_of((0, 0, 100, 1), (150, 0, 10, 1), PRECEDING=[-1, 1], THINK_TIME=[-1, 7])
    assert with_chains(trace) is trace


def test_a_job_whose_predecessor_is_not_there_follows_nobody():
    columns = {"PRECEDING": [-1, 1, 9, 4], "THINK_TIME": [-1, 5, 5, 5], "REQUESTED": [64, 1, 1, 1]}
    trace = trace_of((0, 0, 1, 1), (1, 0, 1, 1), (2, 0, 1, 1), (3, 0, 1, 1), **columns)
    # The first is too large for 8 processors, there is no ninth, and nobody follows itself.
    assert links(trace, 8) == {}
    assert links(trace) == {"2": ("1", 5.0)}


def test_users_and_ends_that_are_not_known():
    trace = with_chains(trace_of((0, -1, 10, 1), (20, 0, 10, 1), (40, 0, 10, -1), (60, 0, 10, -1)))
    assert links(trace) == {}


def test_nothing_to_infer_from_is_refused():
    with pytest.raises(UserError, match=r"t.swf: feedback: expected preceding jobs .* found neither"):
        with_chains(trace_of((0, -1, 10, 1)))


@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.integers(0, 30), st.integers(0, 60), st.integers(1, 3)), max_size=40
    ),
    st.integers(0, 40),
)
def test_what_is_inferred_is_what_looking_at_all_pairs_finds(jobs, think):
    submit = np.cumsum([gap for gap, *_ in jobs])
    found = [(float(t), *rest) for t, (_, *rest) in zip(submit, jobs, strict=True)]
    expected = {}
    for at, (time, _, _, user) in enumerate(found):
        ended = [
            (when + wait + runtime, other)
            for other, (when, wait, runtime, theirs) in enumerate(found[:at])
            if theirs == user and when + wait + runtime <= time
        ]
        if ended and time - max(ended)[0] <= think:
            end, other = max(ended)
            expected[str(at + 1)] = Follows(str(other + 1), time - end)
    if not found:
        return
    trace = with_chains(trace_of(*found), think)
    assert chains_of(trace, trace_jobs(trace, None)[0]) == expected
