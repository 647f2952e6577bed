"""``headway diff``: how two runs of one workload differ."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from commandline import Headway

#: Two processors. Job 2 waits for both; only a policy that backfills starts job 3 at once.
TRACE = """; MaxProcs: 2
1 0 0 100 1 -1 -1 1 100 -1 1 1 1 1 1 1 -1 -1
2 10 0 50 2 -1 -1 2 50 -1 1 1 1 1 1 1 -1 -1
3 20 0 30 1 -1 -1 1 60 -1 1 2 1 1 1 1 -1 -1
"""


@pytest.fixture
def runs(headway: Headway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs ``easy`` and ``fcfs``."""
    monkeypatch.setattr("headway.report.html.write_html", lambda *_, **__: None)
    (tmp_path / "three.swf").write_text(TRACE)
    for policy in ("easy", "fcfs"):
        assert headway("dry-run", "--trace", "three.swf", "--policy", policy, "--out", policy).code == 0


def test_two_runs_that_differ_are_told_apart_job_by_job_and_by_the_first_decision(
    headway: Headway, runs: None
) -> None:
    ran = headway("diff", "easy", "fcfs")
    assert (ran.code, ran.err) == (1, "")
    assert ran.out == (
        "policy: easy in easy, fcfs in fcfs\n"
        "of 3 jobs in both:\n"
        "  1 start at another time: on average 2 min 10 s later, 2 min 10 s either way, at most 2 min 10 s "
        "later\n"
        "  1 end at another time: on average 2 min 10 s later, 2 min 10 s either way, at most 2 min 10 s "
        "later\n"
        "  0 on other nodes, 0 in another state at the end\n"
        "\n"
        "whose start moved most:\n"
        "  job 3 (1 processor): 20 and 150, 2 min 10 s later\n"
        "\n"
        "                                        easy                fcfs\n"
        "mean wait                               30 s          1 min 13 s\n"
        "p95 wait                          1 min 21 s          2 min 06 s\n"
        "mean bounded slowdown                   1.60                3.04\n"
        "utilisation                            76.7%               63.9%\n"
        "makespan                          2 min 30 s          3 min 00 s\n"
        "\n"
        "The first difference is at 20:\n"
        "  easy: Start of job 3 (backfilled: ends by 100, when job 2 is to start); the other starts "
        "it at 150\n"
        "  fcfs decides nothing that the other does not\n"
        "Then running jobs held 1 of 2 processors (1 free), and 2 jobs waited, by submission:\n"
        "  job 2: 2 processors, limit 50 s, waiting for 10 s\n"
        "  job 3: 1 processor, limit 1 min 00 s, waiting for 0 s\n"
    )


def test_the_same_as_json(headway: Headway, runs: None) -> None:
    ran = headway("diff", "fcfs", "easy", "--json")
    assert ran.code == 1
    found = json.loads(ran.out)
    assert not found["same"] and found["labels"] == ["fcfs", "easy"]
    assert found["start"] == {
        "differing": 1, "only_one": 0, "mean": -130.0, "mean_absolute": 130.0, "largest": -130.0,
    }  # fmt: skip
    assert found["most"] == [{"job_id": "3", "processors": 1, "first": 150.0, "second": 20.0}]
    decided = found["decided"]
    assert (decided["time"], decided["first"], decided["waiting"]) == (20.0, [], 2)
    assert decided["second"][0]["job_id"] == "3" and decided["starts"] == found["most"]


def test_a_run_is_the_same_as_itself(headway: Headway, runs: None) -> None:
    shutil.copytree("easy", "again")
    ran = headway("diff", "easy", "again")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "the same: 3 jobs with the same starts, ends and nodes, by the same decisions\n"


def test_other_reasons_for_the_same_starts_are_no_difference(headway: Headway, runs: None) -> None:
    shutil.copytree("easy", "again")
    path = Path("again/decisions.csv")
    path.write_text(path.read_text().replace("backfilled", "slipped in"))
    assert headway("diff", "easy", "again").code == 0


def test_runs_of_other_workloads_are_refused_or_told(headway: Headway, runs: None) -> None:
    Path("other.swf").write_text(TRACE.replace("3 20 0", "3 21 0"))
    assert headway("dry-run", "--trace", "other.swf", "--out", "other").code == 0
    ran = headway("diff", "easy", "other")
    assert ran.code == 1
    assert "1 job of easy not in other with the same id, submission and size\n" in ran.out
    assert (
        "1 job of other not in easy" in ran.out
        and "workload: three.swf in easy, other.swf in other" in ran.out
    )
    assert headway("dry-run", "--workload", "month", "--set", "days=1", "--out", "month").code == 0
    ran = headway("diff", "easy", "month")
    assert (ran.code, ran.out) == (2, "")
    assert (
        "expected a run of the same workload as easy (three.swf), found one of month days=1 seed=0" in ran.err
    )


def test_what_is_no_run_is_said(headway: Headway, runs: None, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    ran = headway("diff", "easy", "none")
    assert (
        ran.code == 2
        and "none: expected a run's files (`headway dry-run --out`), found no metrics.json" in ran.err
    )


def test_a_job_that_starts_in_one_run_only_is_told(headway: Headway, runs: None) -> None:
    shutil.copytree("easy", "again")
    jobs = Path("again/jobs.csv")
    lines = jobs.read_text().splitlines()
    fields = lines[3].split(",")
    fields[3:5] = "", ""
    fields[8] = "pending"
    jobs.write_text("\n".join([*lines[:3], ",".join(fields)]) + "\n")
    ran = headway("diff", "easy", "again")
    assert ran.code == 1
    assert "0 start at another time; 1 start in one run only" in ran.out
    assert "job 3 (1 processor): 20 and never" in ran.out and "1 in another state" in ran.out
