"""Traces drawn anew by weeks and by users: whole sessions, whole streams, the log's own weekly rhythm."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import UserError
from headway.workload import Column, Trace, resampled, scale_sizes
from headway.workload.dispersion import WEEK
from headway.workload.resampling import session_starts
from headway.workload.trace import WIDTH


def trace_of(*jobs: tuple[float, float, int]) -> Trace:
    """Jobs of (submission, runtime, user), in order of submission."""
    records = np.full((len(jobs), WIDTH), -1.0)
    for row, (submit, runtime, user) in enumerate(jobs):
        records[row, [Column.NUMBER, Column.SUBMIT, Column.RUNTIME, Column.USER]] = (
            row + 1,
            submit,
            runtime,
            user,
        )
        records[row, Column.REQUESTED] = 4
    return Trace("t.swf", records=records, line_numbers=np.arange(len(jobs)) + 1)


def test_a_session_goes_on_for_twenty_minutes_after_a_job():
    trace = trace_of((0, 600, 1), (100, 10, 2), (1800, 10, 1), (3011, 10, 1), (1e5, 10, 1))
    # 1800 is 1200 s after the end of the first; 3011 is 1201 s after 1810.
    assert session_starts(trace.records).tolist() == [0, 100, 0, 3011, 1e5]


def test_a_session_stays_whole_when_weeks_are_drawn():
    late = WEEK - 60
    trace = trace_of((0, 10, 1), (late, 300, 7), (WEEK + 30, 5, 7), (WEEK + 40, 5, 1), (2 * WEEK + 1, 5, 2))
    for seed in range(20):
        drawn = resampled(trace, "weeks", np.random.default_rng(seed)).records
        submit = drawn[drawn[:, Column.USER] == 7][:, Column.SUBMIT]
        assert np.diff(submit).tolist()[::2] == [90.0] * (len(submit) // 2)


streams = st.lists(
    st.tuples(st.integers(0, int(5 * WEEK)), st.integers(0, 10**5), st.integers(1, 5)),
    min_size=1,
    max_size=40,
)


@given(streams, st.integers(0, 2**32 - 1))
def test_weeks_keep_the_time_of_the_week(jobs, seed):
    trace = trace_of(*sorted(jobs))
    begin = trace.records[0, Column.SUBMIT]
    drawn = resampled(trace, "weeks", np.random.default_rng(seed)).records
    known = {((submit - begin) % WEEK, runtime, user) for submit, runtime, user in jobs}
    for record in drawn:
        key = ((record[Column.SUBMIT] - begin) % WEEK, record[Column.RUNTIME], record[Column.USER])
        assert key in known
    assert (np.diff(drawn[:, Column.SUBMIT]) >= 0).all()


@given(streams, st.integers(0, 2**32 - 1))
def test_users_bring_all_their_jobs(jobs, seed):
    trace = trace_of(*sorted(jobs))
    drawn = resampled(trace, "users", np.random.default_rng(seed)).records
    of: dict[int, Counter[float]] = {}
    for _, runtime, user in jobs:
        of.setdefault(user, Counter())[float(runtime)] += 1
    users = np.unique(drawn[:, Column.USER])
    assert len(users) == len(of)
    for user in users:
        assert Counter(drawn[drawn[:, Column.USER] == user][:, Column.RUNTIME].tolist()) in of.values()
    assert drawn[:, Column.NUMBER].tolist() == list(range(1, len(drawn) + 1))


def test_the_same_seed_draws_the_same():
    trace = trace_of(*((at * 1e4, 10.0, at % 7 + 1) for at in range(300)))
    for by in ("weeks", "users"):
        first, second = (resampled(trace, by, np.random.default_rng(4)).records for _ in range(2))
        assert (first == second).all()


def test_another_word_is_refused():
    with pytest.raises(UserError, match="expected weeks or users, found 'days'"):
        resampled(trace_of((0, 1, 1)), "days", np.random.default_rng(1))


def test_sizes_are_scaled_within_the_machine():
    trace = trace_of((0, 1, 1), (1, 1, 1))
    assert scale_sizes(trace, 1.4, 128).records[:, Column.REQUESTED].tolist() == [6, 6]
    assert scale_sizes(trace, 0.1, 128).records[:, Column.REQUESTED].tolist() == [1, 1]
    assert scale_sizes(trace, 3.0, 8).records[:, Column.REQUESTED].tolist() == [8, 8]
    assert scale_sizes(trace, 3.0, 3).records[:, Column.REQUESTED].tolist() == [4, 4]
