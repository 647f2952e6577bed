"""Four logs as four sites: small logs, and what is kept of a run."""

from __future__ import annotations

import numpy as np
import pytest

from headway.errors import UserError
from headway.experiment.reproduction import Context
from headway.workload import Column, write_swf
from headway.workload.trace import WIDTH
from headway_plugins.reproductions import four_sites
from headway_plugins.reproductions.four_sites import (
    AIMS,
    HOME,
    LOGS,
    METRICS,
    MONDAY,
    VARIANTS,
    WEEK,
    FourSites,
    federation,
    jobs_of,
)


def context(out, traces, keep=False):
    return Context(
        out=out, seeds=(1, 2), workers=1, traces=traces, on_plan=lambda name, count: None,
        on_done=lambda count: None, rows=[], keep=keep,
    )  # fmt: skip


@pytest.fixture
def traces(tmp_path):
    """Two weeks of each log, the smaller machines busier."""
    directory = tmp_path / "traces"
    directory.mkdir()
    for at, log in enumerate(LOGS):
        rng = np.random.default_rng(at)
        count = 40
        records = np.full((count, WIDTH), -1.0)
        records[:, Column.NUMBER] = np.arange(1, count + 1)
        records[:, Column.SUBMIT] = np.sort(rng.integers(0, 14 * 86400, count))
        records[:, Column.ESTIMATE] = 20000
        records[:, Column.RUNTIME] = rng.integers(1, 20000, count)
        records[:, Column.ALLOCATED] = records[:, Column.REQUESTED] = rng.integers(1, 100, count)
        records[:, Column.USER] = rng.integers(1, 8, count)
        header = ["; UnixStartTime: 835823160", f"; MaxProcs: {log.processors}"]
        write_swf(directory / f"{log.file}.swf", header, records)
    return directory


def test_all_variants_run_and_rows_are_taken_up_again(tmp_path, traces, monkeypatch):
    out = tmp_path / "out"
    out.mkdir()
    of = context(out, traces)
    claims = FourSites(warmup=1).run(of)
    assert len(claims) == len(AIMS) and {claim.holds for claim in claims} <= {"yes", "no", "in part"}
    ((name, rows),) = of.rows
    assert name == "four-sites" and [row.variant for row in rows] == 2 * list(VARIANTS)
    home, by_load = rows[0].values, rows[1].values
    assert set(METRICS) <= set(home)
    assert home["routes"] == home["moved"] == 0 and by_load["routes"] > 0 and by_load["moved"] > 0
    assert by_load["mean wait"] < home["mean wait"]
    assert 1 < home["cost of a processor-hour"] < 3
    table = (out / "table.md").read_text()
    assert table.count("\n") == len(METRICS) + 2 * len(LOGS) + 2 and f"| {HOME} |" in table
    monkeypatch.setattr(four_sites, "run_point", None)
    assert FourSites(warmup=1).run(context(out, traces, keep=True)) == claims


def test_jobs_are_submitted_at_their_second_of_the_week(traces):
    log = LOGS[0]
    jobs = jobs_of(log, traces / f"{log.file}.swf", 1, np.random.default_rng(1))
    assert all(0 <= one.job.submit_time < WEEK for one in jobs)
    # Both weeks of the log begin at the same second of the week.
    whole = jobs_of(log, traces / f"{log.file}.swf", 2, np.random.default_rng(1))
    assert len(whole) > len(jobs) > 0 and all(one.job.id.startswith("kth:") for one in whole)
    assert (835823160 - MONDAY) % WEEK > 0


def test_each_dataset_is_at_one_site():
    sites = federation(np.random.default_rng(3)).sites
    assert sites is not None and len(sites.links) == 12
    assert {len(one.at) for one in sites.datasets} == {1}
    assert {name for one in sites.datasets for name in one.at} == {log.site for log in LOGS}


def test_without_the_traces_it_is_not_run(tmp_path, traces):
    (traces / "CTC-SP2.swf").unlink()
    (claim,) = FourSites().run(context(tmp_path, traces))
    assert claim.holds == "not run" and claim.measured == "needs the traces CTC-SP2 (--traces DIR)"
    (claim,) = FourSites().run(context(tmp_path, None))
    assert claim.holds == "not run"


@pytest.mark.parametrize("given", [{"weeks": 0}, {"weeks": "two"}, {"warmup": 13}, {"warmup": -1}])
def test_parameters_are_checked(given):
    with pytest.raises(UserError, match=r"--set (weeks|warmup): expected"):
        FourSites(**given)
