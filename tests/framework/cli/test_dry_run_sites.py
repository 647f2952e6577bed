"""Several clusters with sites from the command line: traces of their own, one clock, replay."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from commandline import Headway

SWF = """; MaxProcs: 4
; UnixStartTime: 345600
1 0 -1 10 4 -1 -1 4 10 -1 1 1 1 -1 1 -1 -1 -1
2 0 -1 10 4 -1 -1 4 10 -1 1 1 1 -1 1 -1 -1 -1
"""
SITES = """
mode: dry-run
plugins: [easy]
clusters:
  a:
    emulation: {processors: 4, trace: a.swf}
    site: {calendar: ["mon 01:00-02:00"], store: {}}
  b:
    emulation: {processors: 8, trace: a.swf}
    site: {store: {}}
datasets: {d: {size: 1GB, at: [b]}, e: {size: 1GB, at: [a]}}
"""


@pytest.fixture
def configured(tmp_path: Path) -> Path:
    (tmp_path / "a.swf").write_text(SWF)
    (tmp_path / "site.yaml").write_text(SITES)
    return tmp_path / "site.yaml"


def test_each_cluster_runs_its_own_trace_by_its_calendar(headway: Headway, configured: Path) -> None:
    out, journal = configured.parent / "out", configured.parent / "journal.db"
    run = headway("dry-run", "-c", configured, "--out", out, "--journal", journal)
    assert run.code == 0, run.err
    with open(out / "jobs.csv", newline="") as stream:
        rows = {row["job_id"]: (row["start_time"], row["pool"]) for row in csv.DictReader(stream)}
    assert rows == {
        "a:1": ("3600", "a:pool"), "a:2": ("3610", "a:pool"), "b:1": ("0", "b:pool"), "b:2": ("0", "b:pool"),
    }  # fmt: skip
    replayed = headway("replay", journal)
    assert replayed.code == 0, replayed.err
    assert headway("run", "-c", configured).code == 0


def test_a_job_does_not_start_without_its_data(headway: Headway, configured: Path) -> None:
    use = configured.parent / "use.csv"
    use.write_text("job_id,datasets\nb:1,e\nb:2,d\n")
    run = headway("dry-run", "-c", configured, "--data", use, "--out", configured.parent / "out")
    assert run.code == 0, run.err
    with open(configured.parent / "out" / "jobs.csv", newline="") as stream:
        states = {row["job_id"]: row["state"] for row in csv.DictReader(stream)}
    assert states == {"a:1": "completed", "a:2": "completed", "b:1": "pending", "b:2": "completed"}


def test_what_is_wrong_with_the_files_is_told(headway: Headway, configured: Path) -> None:
    use = configured.parent / "use.csv"
    use.write_text("job_id,datasets\nb:1,d f\n")
    run = headway("dry-run", "-c", configured, "--data", use)
    assert run.code == 2 and "use.csv, line 2: datasets: expected configured datasets, found 'f'" in run.err
    configured.write_text(SITES.replace(", trace: a.swf", ""))
    run = headway("dry-run", "-c", configured)
    assert run.code == 2 and "expected a trace (emulation.trace), --trace FILE, --workload MODEL" in run.err
