"""Resource equality on cases worked out by hand, and its invariants."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from hypothesis import given, settings
from plugins_fairness import DELAYED, HELPED, NINE, NINE_JOBS, jobs_of, run

from headway import cli
from headway_plugins.fairness.equality import resource_equality
from headway_plugins.fairness.figures import missed


def unfairness(*arguments):
    return resource_equality(run(*arguments)).unfairness


def test_4_7_a_small_job_does_not_deserve_half_of_the_machine():
    assert unfairness(20, [(0, 5, 9, 9), (0, 15, 9, 9)], "easy").tolist() == [0, 0]


@pytest.mark.parametrize(("order", "expected", "mean"), [("fcfs", [-5, 5], 2.5), ("sjf", [1, -1], 0.5)])
def test_4_8_a_short_job_behind_a_long_one(order, expected, mean):
    found = unfairness(1, [(0, 1, 10, 10), (0, 1, 2, 2)], "easy", order)
    assert found.tolist() == expected
    assert missed(found)["mean"] == mean


def test_4_9_4_10_cases_under_easy():
    found = unfairness(10, DELAYED, "easy")
    assert found == pytest.approx([-344 / 9, -344 / 9, 1930 / 9, -138])
    assert missed(found)["mean"] == pytest.approx(53.6111, abs=1e-4)
    found = unfairness(4, HELPED, "easy")
    assert found == pytest.approx([-319 / 45, 532 / 45, -17 / 15, -18 / 5])
    assert missed(found)["mean"] == pytest.approx(2.95556, abs=1e-5)


def test_4_6_what_nine_jobs_deserve_under_easy():
    found = resource_equality(run(8, NINE_JOBS, "easy"))
    assert found.deserved == pytest.approx(
        [38.7560, 28.4003, 20.2607, 21.9644, 60.2198, 35.4432, 135.3570, 5.6583, 1.9403], abs=1e-4
    )
    assert found.deserved - found.unfairness == pytest.approx([96, 24, 16, 44, 48, 16, 72, 24, 8])


MEANS = [11.1794, 12.0955, 12.1828, 11.5201, 10.1686, 10.9336, 9.6477, 10.0321, 10.2497]


@pytest.mark.parametrize(
    ("policy", "order", "mean"),
    [
        *((*which, mean) for which, mean in zip(NINE, MEANS, strict=True)),
        ("keep", "fcfs", 9.6477), ("keep", "sjf", 10.2675), ("keep", "lxf", 10.2675),
        ("strict", "fcfs", 9.4092),
    ],
)  # fmt: skip
def test_4_6_nine_jobs_under_every_policy(policy, order, mean):
    assert missed(unfairness(8, NINE_JOBS, policy, order))["mean"] == pytest.approx(mean, abs=1e-4)


@given(jobs=jobs_of)
@settings(max_examples=20)
def test_what_some_got_too_much_others_got_too_little(jobs):
    result = run(6, jobs, "easy")
    found = resource_equality(result).unfairness
    assert float(found.sum()) == pytest.approx(0, abs=1e-6)
    assert missed(found)["mean"] == pytest.approx(np.abs(found).mean() / 2, abs=1e-6)


def test_a_dry_run_writes_all_measures(tmp_path, capsys):
    lines = [f"{at} {a} -1 {r} {n} -1 -1 {n} {e} -1 1 {at % 2 + 1} -1 -1 -1 -1 -1 -1"
             for at, (a, n, r, e) in enumerate(NINE_JOBS, 1)]  # fmt: skip
    trace = tmp_path / "nine.swf"
    trace.write_text("; MaxProcs: 8\n" + "\n".join(lines) + "\n")
    cli.main(["dry-run", "--trace", str(trace), "--with", "fairness", "--out", str(tmp_path)])
    assert "fairness / strict / mean" in capsys.readouterr().out
    figures = json.loads((tmp_path / "metrics.json").read_text())["extra"]["fairness"]
    assert figures["strict"]["mean"] == pytest.approx(16 / 9)
    assert figures["equality"]["mean"] == pytest.approx(11.5201, abs=1e-4)
    assert sum(row["jobs"] for row in figures["by_width"].values()) == 9
    assert sum(row["strict"] for row in figures["by_user"].values()) == 16
    with open(tmp_path / "jobs.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    strict = [2, 14, 18, 18, 29, 35, 39, 14, 18]
    assert [float(row["fair_start_strict"]) for row in rows] == strict
    assert [float(row["miss_relaxed"]) for row in rows] == [0, 0, 0, 4, 4, 4, 4, 0, 0]
    assert "Jobs that later arrivals delayed most" in (tmp_path / "report.html").read_text()
