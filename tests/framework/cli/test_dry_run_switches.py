"""`headway dry-run --switches`: a trace's jobs wait for few switches."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from commandline import Headway

TRACE = """; MaxProcs: 8
1 0 -1 100 3 -1 -1 3 100 -1 1 1 1 1 1 1 -1 -1
2 1 -1 100 3 -1 -1 3 100 -1 1 1 1 1 1 1 -1 -1
3 2 -1 50 2 -1 -1 2 50 -1 1 1 1 1 1 1 -1 -1
"""
SITE = """
plugins:
  - easy
  - tree: {switches: {a: "n[1-4]", b: "n[5-8]", top: {switches: [a, b]}}, max_wait: 1d}
emulation:
  nodes: [{count: 8, processors: 1}]
"""


def written(tmp_path: Path, uses: str) -> list[Path]:
    files = {"site.yaml": SITE, "trace.swf": TRACE, "use.csv": uses}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return [tmp_path / name for name in files]


@pytest.mark.parametrize(
    ("uses", "start"),
    [
        ("job_id,switches\n1,1\n", "2"),
        ("job_id,switches\n3,1\n", "100"),
        ("wait,job_id,switches\n30,3,1\n,2,2\n", "32"),
        ("job_id,switches,wait\n3,1,1m\n", "62"),
    ],
)
def test_a_job_waits_as_its_file_says(headway: Headway, tmp_path: Path, uses: str, start: str) -> None:
    site, trace, use = written(tmp_path, uses)
    run = headway("dry-run", "-c", site, "--trace", trace, "--switches", use, "--out", tmp_path / "out")
    assert run.code == 0, run.err
    with open(tmp_path / "out" / "jobs.csv", newline="") as stream:
        assert [row["start_time"] for row in csv.DictReader(stream)] == ["0", "1", start]


def test_locality_is_measured(headway: Headway, tmp_path: Path) -> None:
    site, trace, use = written(tmp_path, "job_id,switches\n1,1\n")
    out = tmp_path / "out"
    assert headway("dry-run", "-c", site, "--trace", trace, "--switches", use, "--out", out).code == 0
    with open(out / "jobs.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [(float(row["switches"]), float(row["fewest_switches"])) for row in rows] == [
        (1, 1),
        (1, 1),
        (2, 1),
    ]
    found = json.loads((out / "metrics.json").read_text())["extra"]["locality"]
    assert found["all"] == {
        "jobs": 3,
        "switches": 4 / 3,
        "fewest": 1.0,
        "share_fewest": 2 / 3,
        "ratio": 4 / 3,
    }
    assert found["SN"] == {"jobs": 0, "switches": None, "fewest": None, "share_fewest": None, "ratio": None}
    assert found["SW"]["jobs"] == 3
    assert "on the fewest" in (out / "report.html").read_text()


def test_such_a_run_can_be_replayed(headway: Headway, tmp_path: Path) -> None:
    site, trace, use = written(tmp_path, "job_id,switches,wait\n3,1,30\n")
    journal = tmp_path / "journal.db"
    assert headway("dry-run", "-c", site, "--trace", trace, "--switches", use, "--journal", journal).code == 0
    assert headway("replay", journal).code == 0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("3,0,", "line 2: switches: expected a whole number above 0, found '0'"),
        ("3,x,", "line 2: switches: expected a whole number above 0, found 'x'"),
        ("3,1,soon", "line 2: wait: expected seconds, or a time such as 10m, found 'soon'"),
        ("3,1,5\n3,2,5", "line 3: job '3' is named twice"),
    ],
)
def test_a_mistake_names_its_line(headway: Headway, tmp_path: Path, line: str, said: str) -> None:
    site, trace, use = written(tmp_path, f"job_id,switches,wait\n{line}\n")
    run = headway("dry-run", "-c", site, "--trace", trace, "--switches", use)
    assert run.code == 2
    assert f"use.csv, {said}" in run.err
