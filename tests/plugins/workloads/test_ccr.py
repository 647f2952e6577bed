"""The workload of Buffalo's CCR: every published figure, load, arrivals, and what it cannot be."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from headway.workload import Trace, Workload, WorkloadModel, offered_load, to_records
from headway.workload.trace import Records
from headway_plugins.workloads.ccr import (
    CELLS,
    JOBS,
    TABLE_3,
    TABLE_3_PERCENT,
    TABLE_4,
    TABLE_4_COLUMNS,
    TABLE_4_ROWS,
    TABLE_5,
    Ccr,
    CcrModel,
    CcrOptions,
    fit,
)

#: Columns of the records.
SUBMIT, RUNTIME, SIZE, ESTIMATE = 1, 3, 7, 8
#: Bounds of table 4's rows (seconds; the last is the default of ``longest``), and its columns.
ROWS = (0, 60, 600, 1200, 3600, 14_400, 28_800, 259_200)
COLUMNS = ((1, 1), (2, 24), (34, 256))


def draw(seed: int = 1, **options: Any) -> Workload:
    return CcrModel().generate(np.random.default_rng(seed), CcrOptions(**options))


def trace_of(workload: Workload) -> Trace:
    return Trace("ccr", records=to_records(workload.jobs))


def records_of(seed: int = 1, **options: Any) -> Records:
    return trace_of(draw(seed, **options)).records


@pytest.fixture(scope="module")
def month() -> Records:
    return records_of()


def test_is_a_workload_model() -> None:
    model: WorkloadModel = Ccr().register_workloads()["ccr"]
    workload = model.generate(np.random.default_rng(1), model.Options())
    assert workload == draw()
    assert (len(workload.jobs), workload.processors) == (22_385, 2_090)


def test_is_the_same_for_the_same_seed_only() -> None:
    assert draw(3, load=1.1, overestimate=4) == draw(3, load=1.1, overestimate=4)
    assert draw(3) != draw(4)


# -------------------------------------------------------------------------- the published marginals


def percent(count: float) -> float:
    return round(100 * count / JOBS, 2)


def test_the_cells_are_whole_numbers_behind_every_percentage_of_the_paper() -> None:
    cells = np.array(CELLS)
    assert cells.sum() == JOBS
    assert [[percent(count) for count in row] for row in CELLS] == [list(row) for row in TABLE_4]
    assert tuple(percent(n) for n in cells.sum(axis=1)) == TABLE_4_ROWS
    assert tuple(percent(n) for n in cells.sum(axis=0)) == TABLE_4_COLUMNS
    assert {"short": cells[:4].sum(), "long": cells[4:].sum()} == TABLE_3
    assert {name: percent(n) for name, n in TABLE_3.items()} == TABLE_3_PERCENT
    four = {"SN": cells[:4, :1], "LN": cells[4:, :1], "SW": cells[:4, 1:], "LW": cells[4:, 1:]}
    assert {name: percent(part.sum()) for name, part in four.items()} == TABLE_5


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_generated_month_has_every_published_figure(seed: int) -> None:
    rows = fit(trace_of(draw(seed)))
    assert len(rows) == 1 + 4 + 31 + 4 + 3
    assert [row for row in rows if row.difference] == []


def test_jobs_lie_in_the_cells_counted_here_by_hand(month: Records) -> None:
    runtime, size = month[:, RUNTIME], month[:, SIZE]
    for row, counts in enumerate(CELLS):
        inside = (runtime > ROWS[row]) & (runtime <= ROWS[row + 1])
        for (low, high), count in zip(COLUMNS, counts, strict=True):
            assert ((size >= low) & (size <= high) & inside).sum() == count


def test_fit_tells_the_difference_of_another_workload() -> None:
    # Four jobs: 30 s and 2 h on one processor, 15 min on 8, 10 h on 64; a fifth of unknown runtime.
    records = np.full((5, 18), -1.0)
    records[:, RUNTIME] = (30, 7200, 900, 36_000, -1)
    records[:, SIZE] = (1, 1, 8, 64, 1)
    found = {row.what: row for row in fit(Trace("x", records=records))}
    assert found["jobs"].generated == 4
    assert found["jobs"].difference == 4 - 22_385
    assert not found["jobs"].percent
    assert found["< 1 min, 1 CPU, %"].generated == 25
    assert found["< 1 min, 1 CPU, %"].difference == pytest.approx(25 - 4.83)
    assert found["11-20 min, all, %"].generated == 25
    assert found["all, > 32 CPUs, %"].generated == 25
    assert found["SW, %"].generated == 25
    assert found["short jobs within 18 min, %"].generated == 100
    assert found["long jobs within 12 h, %"].generated == 100


def test_without_pieces_lengths_are_log_uniform_and_miss_the_shares_of_the_text() -> None:
    trace = trace_of(draw(pieces=False))
    missed = {row.what: row.difference for row in fit(trace) if row.difference}
    assert missed["short jobs within 18 min, %"] == pytest.approx(-5.9, abs=0.5)
    assert missed["long jobs within 12 h, %"] == pytest.approx(2.6, abs=0.7)
    assert len(missed) == 2
    runtime = trace.records[:, RUNTIME]
    for low, high in pairwise(ROWS):
        inside = np.log(runtime[(runtime > low) & (runtime <= high)])
        place = (inside - np.log(low + 1)) / (np.log(high) - np.log(low + 1))
        assert place.mean() == pytest.approx(0.5, abs=0.02)
        assert np.median(place) == pytest.approx(0.5, abs=0.04)


def test_sizes_are_one_or_even_and_log_uniform(month: Records) -> None:
    size = month[:, SIZE]
    wide = size[size > 1]
    assert (wide % 2 == 0).all()
    assert ((wide <= 24) | (wide >= 34)).all()
    assert (wide.min(), wide.max()) == (2, 256)
    middle = wide[wide <= 24]
    # ln(4 / 2) of ln(26 / 2).
    assert np.mean(middle == 2) == pytest.approx(np.log(2) / np.log(13), abs=0.02)
    assert np.median(wide[wide > 24]) == pytest.approx(np.sqrt(34 * 258), rel=0.08)


def test_other_options_keep_the_shares_as_far_as_jobs_are_whole() -> None:
    for jobs in (2, 100, 1_000, 50_000):
        rows = [row for row in fit(trace_of(draw(jobs=jobs))) if row.percent and row.where != "section 4.2"]
        worst = max(abs(row.difference) for row in rows)
        assert worst <= 300 / jobs + 0.011
    assert records_of(processors=100)[:, SIZE].max() == 100
    assert records_of(processors=101)[:, SIZE].max() == 100
    assert records_of(widest=2090)[:, SIZE].max() > 1800
    longest = records_of(longest=50_000)[:, RUNTIME].max()
    assert 45_000 < longest <= 50_000


# ------------------------------------------------------------------------------ arrivals and load


def test_jobs_are_submitted_over_thirty_days(month: Records) -> None:
    submit = month[:, SUBMIT]
    assert (submit[0], submit[-1]) == (0, 30 * 86_400 - 1)
    assert (np.diff(submit) >= 0).all()
    assert (submit == np.rint(submit)).all()
    assert records_of(days=2.5)[-1, SUBMIT] == 2.5 * 86_400 - 1


def test_arrivals_have_a_daily_cycle(month: Records) -> None:
    hour = np.bincount((month[:, SUBMIT] % 86_400 // 3600).astype(int), minlength=24)
    assert hour[2:6].mean() < 0.25 * hour.mean()
    assert hour[9:17].mean() > 1.5 * hour.mean()
    stretched = records_of(load=0.3)[:, SUBMIT]
    again = np.bincount((stretched % 86_400 // 3600).astype(int), minlength=24)
    assert np.abs(again - hour).max() < 0.15 * hour.max(), "the cycle keeps its 24 hours"


@pytest.mark.parametrize("load", [0.05, 0.7, 1.2, 20])
def test_reaches_the_load(load: float) -> None:
    workload = draw(load=load)
    assert offered_load(trace_of(workload), 2090) == pytest.approx(load, rel=0.002)
    assert workload.notes[0].startswith(f"load {load:g}: submissions over ")


def test_the_load_changes_the_submissions_only() -> None:
    low, high = records_of(7, load=0.5), records_of(7, load=1.0)
    assert (low[:, 2:] == high[:, 2:]).all()
    assert low[-1, SUBMIT] == pytest.approx(2 * high[-1, SUBMIT], rel=1e-4)


def test_the_offered_load_is_above_one_on_many_days() -> None:
    for seed in range(3):
        records = records_of(seed)
        work = np.bincount(
            (records[:, SUBMIT] // 86_400).astype(int), weights=records[:, SIZE] * records[:, RUNTIME]
        )
        above = int((work / (2090 * 86_400) > 1).sum())
        assert 5 <= above <= 25


def test_says_what_it_met() -> None:
    days, tables = draw().notes
    assert re.fullmatch(r"30 days: load (0\.9|1\.0)\d+", days)
    assert tables == "the paper's tables 3 to 5 and its text: largest difference 0.00 percentage points"


# -------------------------------------------------------------------------------------- estimates


def test_estimates_are_exact_or_too_long_by_up_to_the_factor(month: Records) -> None:
    assert (month[:, ESTIMATE] == month[:, RUNTIME]).all()
    records = records_of(overestimate=3)
    assert (records[:, RUNTIME] == month[:, RUNTIME]).all()
    over = records[:, ESTIMATE] / records[:, RUNTIME]
    assert over.min() >= 1
    assert over.max() <= 4
    assert over[records[:, RUNTIME] > 600].mean() == pytest.approx(2.5, abs=0.03)


# ----------------------------------------------------------------------------- what it cannot be


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"jobs": 1}, "jobs"),
        ({"processors": 33}, "processors"),
        ({"processors": 100, "widest": 102}, "widest within the machine's 100 processors"),
        ({"widest": 35}, "widest"),
        ({"days": 10, "load": 0.9}, "either days or load"),
        ({"days": 0}, "days"),
        ({"load": 0}, "load"),
        ({"longest": 43_200}, "longest"),
        ({"overestimate": -1}, "overestimate"),
        ({"cells": 4}, "cells"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        CcrOptions(**options)


@settings(max_examples=40, deadline=None)
@given(
    jobs=st.integers(2, 3000),
    processors=st.integers(34, 5000),
    days=st.one_of(st.none(), st.floats(1e-4, 400)),
    seed=st.integers(0, 2**32 - 1),
    pieces=st.booleans(),
)
def test_every_workload_can_run_on_its_machine(
    jobs: int, processors: int, days: float | None, seed: int, pieces: bool
) -> None:
    records = records_of(seed, jobs=jobs, processors=processors, days=days, pieces=pieces)
    assert len(records) == jobs
    assert (records[:, SIZE] >= 1).all()
    assert (records[:, SIZE] <= processors).all()
    assert (records[:, RUNTIME] >= 1).all()
    assert (records[:, ESTIMATE] >= records[:, RUNTIME]).all()
    assert (np.diff(records[:, SUBMIT]) >= 0).all()
    assert records[0, SUBMIT] == 0
