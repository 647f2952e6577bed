"""``headway analyze``: traces, models, options, and what is wrong with them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from commandline import Headway

USERS_MISTAKE = 2


def test_a_trace_is_told_on_standard_output(headway: Headway, trace: Path) -> None:
    ran = headway("analyze", trace)
    assert (ran.code, ran.err) == (0, "")
    assert ": 40 jobs\n" in ran.out
    assert "SW short, wide" in ran.out
    assert "offered load" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80


def test_the_files_go_to_a_directory(headway: Headway, trace: Path, tmp_path: Path) -> None:
    ran = headway("analyze", tmp_path / "small.swf.gz", "--out", "new/study")
    assert ran.code == 0
    assert "results: summary.csv, classes.csv, " in ran.out
    found = json.loads((tmp_path / "new/study/analysis.json").read_text())
    assert found["summary"]["jobs"] == 40
    assert found["summary"]["processors"] == 16
    assert (tmp_path / "new/study/analysis.html").exists()


def test_bounds_bins_zone_and_machine_are_options(headway: Headway, trace: Path, tmp_path: Path) -> None:
    ran = headway(
        "analyze", trace, "--narrow", 8, "--short", "3m20s", "--lengths", "2m,5m", "--widths", "4,8",
        "--processors", 32, "--time-zone", "Europe/Stockholm", "--out", "out",
    )  # fmt: skip
    assert (ran.code, ran.err) == (0, "")
    found = json.loads((tmp_path / "out/analysis.json").read_text())
    assert found["workload"]["class_bounds"] == {"narrow": 8, "short": 200}
    assert found["workload"]["length_bounds"] == [120, 300]
    assert found["workload"]["width_bounds"] == [4, 8]
    assert found["workload"]["zone"] == "Europe/Stockholm"
    assert found["summary"]["processors"] == 32
    assert len(found["cells"]) == 9
    with open(tmp_path / "out/cells.csv", newline="") as stream:
        assert sum(int(row["jobs"]) for row in csv.DictReader(stream)) == 40


def test_a_model_s_workload_is_told_too(headway: Headway, tmp_path: Path) -> None:
    ran = headway("analyze", "--workload", "ccr", "--set", "load=1.1", "--seed", 4, "--out", "out")
    assert ran.code == 0
    assert ran.err.startswith("load 1.1: submissions over ")
    assert ran.out.startswith("ccr load=1.1 seed=4: 22\u202f385 jobs\n")
    found = json.loads((tmp_path / "out/analysis.json").read_text())
    assert found["summary"]["offered_load"] == pytest.approx(1.1, rel=0.001)
    classes = {row["class"]: row["jobs"] for row in found["classes"]}
    assert (classes["short"], classes["long"]) == (10_428, 11_957)


def test_a_cloud_trace_is_read_as_well(headway: Headway) -> None:
    assert headway("generate", "lublin-cwf", "--set", "jobs=50", "-o", "cloud.cwf.gz").code == 0
    ran = headway("analyze", "cloud.cwf.gz")
    assert ran.code == 0
    assert "cloud.cwf.gz: 50 jobs" in ran.out


def test_broken_lines_are_told_on_standard_error(headway: Headway, trace: Path) -> None:
    broken = trace.with_name("broken.swf")
    broken.write_text(trace.read_text() + "41 900 x\n")
    ran = headway("analyze", broken)
    assert ran.code == 0
    assert "1 line skipped: too few fields" in ran.err
    assert ": 40 jobs\n" in ran.out
    strict = headway("analyze", broken, "--strict")
    assert (strict.code, strict.out) == (USERS_MISTAKE, "")
    assert "broken.swf:43" in strict.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "expected either TRACE or --workload MODEL"),
        (["small.swf", "--workload", "ccr"], "expected either TRACE or --workload MODEL"),
        (["small.swf", "--set", "jobs=3"], "--set goes with --workload"),
        (["missing.swf"], "missing.swf: cannot be read: No such file or directory"),
        (["empty.swf"], "empty.swf: expected job lines of 18 numbers, found none"),
        (["--workload", "cr"], "no workload model is called 'cr'. Did you mean 'ccr'?"),
        (["--workload", "ccr", "--set", "job=1"], "ccr has no option 'job'"),
        (["--workload", "ccr", "--set", "jobs=1"], "--set: jobs: expected greater than or equal to 2"),
        (
            ["--workload", "ccr", "--processors", "20"],
            "--set: processors: expected greater than or equal to 34",
        ),
        (
            ["small.swf", "--time-zone", "Nowhere"],
            "time zone: expected a name such as Europe/Stockholm or UTC",
        ),
        (["small.swf", "--short", "soon"], "expected a time such as 30m"),
        (["small.swf", "--lengths", "1h,30m"], "expected upper bounds that rise, found '1h,30m'"),
        (["small.swf", "--widths", "1,x"], "'x' is not a valid integer range"),
        (["small.swf", "--widths", "0,4"], "0 is not in the range x>=1"),
        (["small.swf", "--narrow", "0"], "0 is not in the range x>=1"),
        (["small.swf", "--out", "small.swf"], "--out small.swf: expected a directory, found a file"),
    ],
)
def test_what_is_wrong_is_said(headway: Headway, trace: Path, arguments: list[str], said: str) -> None:
    trace.with_name("empty.swf").write_text("; MaxProcs: 4\n")
    ran = headway("analyze", *arguments)
    assert (ran.code, ran.out) == (USERS_MISTAKE, "")
    assert said in " ".join(ran.err.split())
