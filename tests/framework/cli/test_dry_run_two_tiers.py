"""MEASY and its kin from the command line: a run, its files, and its replay."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from commandline import Headway

SWF = """; MaxProcs: 2
1 0 -1 10 2 -1 -1 2 10 -1 1 1 1 -1 1 -1 -1 -1
2 0 -1 8 1 -1 -1 1 8 -1 1 1 1 -1 1 -1 -1 -1
"""


@pytest.fixture
def site() -> Path:
    Path("two.swf").write_text(SWF)
    Path("site.yaml").write_text(
        "mode: dry-run\nplugins:\n  - consolidation: {loss: 0, efficiency: 1}\n", encoding="utf-8"
    )
    return Path("site.yaml")


@pytest.mark.parametrize("policy", ["keasy", "reasy", "measy"])
@pytest.mark.parametrize(("given", "end"), [(None, 15), (0.5, 13), (1.0, 18)])
def test_a_job_runs_behind_another_and_comes_forward(headway: Headway, site: Path, policy, given, end):
    more = []
    if given is not None:
        Path("cpu.csv").write_text(f"job_id,cpu\n1,{given}\n")
        more = ["--cpu", "cpu.csv"]
    run = headway("dry-run", "-c", site, "--trace", "two.swf", "--processors", 2, "--policy", policy,
                  "--out", "out", "--journal", "journal.db", *more)  # fmt: skip
    assert run.code == 0, run.err
    with open("out/jobs.csv", newline="") as stream:
        first, second = csv.DictReader(stream)
    assert (first["start_time"], first["end_time"]) == ("0", "10")
    # Behind a process that uses its whole processor nobody is started; else the constant use is 0.7.
    assert second["start_time"] == ("10" if given == 1.0 else "0")
    assert float(second["end_time"]) == pytest.approx(end)
    assert (second["migrations"], second["restarts"]) == ("0", "0")
    assert second["promotions"] == ("0" if given == 1.0 else "1")
    assert headway("replay", "journal.db").code == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1,2\n", "cpu.csv:1: expected a share above 0 and up to 1, found '2'"),
        ("1;0.5\n", "expected job_id,cpu"),
        ("1,.5\n1,.5\n", "cpu.csv:2: job 1 is named twice"),
        ("1,nan\n", "found 'nan'"),
    ],
)
def test_a_wrong_file_of_cpu_use_is_refused_with_its_line(headway: Headway, site: Path, text, said):
    Path("cpu.csv").write_text(text)
    run = headway("dry-run", "--trace", "two.swf", "--policy", "measy", "--cpu", "cpu.csv")
    assert run.code == 2 and said in run.err
