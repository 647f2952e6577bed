"""Whose jobs they are: the printed figures of Medernach 2005 as vectors, and small logs by hand."""

from __future__ import annotations

import numpy as np
import pytest

from headway.report.study import render_study, write_study
from headway.workload import Column, Trace
from headway.workload.analysis import study
from headway.workload.group_study import COLUMNS, group_study, normalised_wait


def log(*jobs, **fields):
    """Jobs (submit, wait, runtime, processors, group, queue, status)."""
    records = np.full((len(jobs), len(Column)), -1.0)
    columns = (
        Column.SUBMIT,
        Column.WAIT,
        Column.RUNTIME,
        Column.ALLOCATED,
        Column.GROUP,
        Column.QUEUE,
        Column.STATUS,
    )
    for row, job in enumerate(jobs):
        records[row, list(columns)] = job
    return Trace("log", records=records, fields=fields)


@pytest.mark.parametrize(
    ("jobs", "wait", "runtime", "wanted"),
    [
        (45_760, 33_335.9, 31.0, 2.3500e-2),
        (81_963, 1249.7, 149.5, 1.0199e-4),
        (32_879, 535.1, 2943.2, 5.5296e-6),
        (19_275, 466.8, 6634.8, 3.6501e-6),
        (49_060, 1753.9, 10_062.2, 3.5529e-6),
    ],
)
def test_w1_normalised_waits_of_the_queues(jobs, wait, runtime, wanted):
    assert normalised_wait(jobs, wait, runtime) == pytest.approx(wanted, rel=5e-5)


@pytest.mark.parametrize(
    ("jobs", "wait", "runtime", "wanted"),
    [
        (108_197, 781.5, 5417, 1.3334e-6),
        (94_474, 1424.1, 222, 6.7901e-5),
        (9709, 217.7, 2072, 1.0822e-5),
        (7979, 2332.8, 13_071, 2.2368e-5),
        (1332, 90.7, 213, 3.1969e-4),
    ],
)
def test_w2_normalised_waits_of_the_groups(jobs, wait, runtime, wanted):
    assert normalised_wait(jobs, wait, runtime) == pytest.approx(wanted, rel=5e-5)


@pytest.mark.parametrize(
    ("parts", "total", "wanted"), [(1, 0, 0), (2, 50, 0.25), (4, 150, 0.375), (100, 4950, 0.495)]
)
def test_w3_work_that_is_cut_into_parts(parts, total, wanted):
    length = 100 / parts
    (row,) = group_study(log(*((0, n * length, length, 1, 1, 1, 1) for n in range(parts))), 1)["groups"]
    assert row["mean_wait"] * parts == pytest.approx(total)
    assert row["normalised_wait"] == pytest.approx(wanted)


def test_figures_of_a_small_log():
    tables = group_study(
        log(
            (0, 10, 100, 2, 1, 0, 1),
            (600, 30, 300, 2, 1, 0, 0),
            (1300, 0, 86400, 1, 2, 0, 1),
            (1500, -1, -1, 1, 2, -1, 5),
            (8 * 86400, 0, 10, 1, -1, 0, -1),
        ),
        10,
    )
    one, two = tables["groups"]
    assert (one["group"], one["jobs"], one["share"], one["failed"]) == (1, 2, 0.4, 0.5)
    assert (one["mean_runtime"], one["mean_wait"], one["mean_gap"]) == (200, 20, 600)
    assert one["runtime_sd"] == pytest.approx(141.42, abs=0.01)
    assert one["flow_ratio"] == pytest.approx(400 / 440)
    assert one["normalised_wait"] == pytest.approx(20 / 400)
    assert (one["gap_sd"], one["quiet"], one["busiest"]) == (None, 0.5, 1)
    assert (two["group"], two["processor_days"], two["mean_runtime"], two["wait_sd"]) == (2, 1.0, 86400, None)
    assert [row["queue"] for row in tables["queues"]] == [0]
    assert [row["jobs"] for row in tables["weeks"]] == [4, 1]
    assert tables["weeks"][0]["load"] == pytest.approx((200 + 600 + 86400) / (10 * 7 * 86400))


def test_a_log_that_says_nothing_of_groups_or_times():
    tables = group_study(log((5, -1, -1, -1, -1, -1, -1)), None)
    assert tables["groups"] == tables["queues"] == []
    assert tables["weeks"] == [{"week": 0, "jobs": 1, "processor_seconds": 0.0, "load": None}]
    # Submit times that cannot be any make no list of weeks.
    assert group_study(log((0, 0, 1, 1, 1, 1, 1), (1e12, 0, 1, 1, 1, 1, 1)), 1)["weeks"] == []


def test_the_study_has_and_shows_them(tmp_path):
    jobs = [(60 * n, n, 100 + n, 1, 1 + n % 3, n % 2, 1) for n in range(60)]
    found = study(log(*jobs, MaxProcs="10"))
    for name, columns in COLUMNS.items():
        assert found.columns[name] == columns
        assert all(tuple(row) == columns for row in found.tables[name])
    from rich.console import Console

    console = Console(width=80, record=True, file=None)
    with console.capture() as shown:
        console.print(render_study(found))
    assert "group" in shown.get() and "queue" in shown.get()
    page = (tmp_path / "analysis.html", write_study(found, tmp_path))[0].read_text()
    assert "Groups" in page and "Queues" in page
