"""Licences from the command line: a run with them, its replay."""

from __future__ import annotations

import csv
from pathlib import Path

from commandline import Headway

SWF = """; MaxProcs: 4
1 0 -1 10 1 -1 -1 1 10 -1 1 1 1 -1 1 -1 -1 -1
2 0 -1 10 1 -1 -1 1 10 -1 1 1 1 -1 1 -1 -1 -1
3 0 -1 10 1 -1 -1 1 10 -1 1 1 1 -1 1 -1 -1 -1
"""


def test_a_dry_run_with_licences(headway: Headway, tmp_path: Path) -> None:
    trace, use, site = tmp_path / "three.swf", tmp_path / "use.csv", tmp_path / "site.yaml"
    trace.write_text(SWF)
    use.write_text("job_id,licence,amount\n1,matlab,2\n2,matlab,2\n")
    site.write_text(
        "mode: dry-run\nplugins: [easy]\nemulation:\n  licences: {matlab: 2}\n"
        "  faults: {licences: [{at: 4, licence: matlab, total: 4}]}\n"
    )
    run = headway("dry-run", "-c", site, "--trace", trace, "--licences", use,
                  "--out", tmp_path / "out", "--journal", tmp_path / "journal.db")  # fmt: skip
    assert run.code == 0, run.err
    with open(tmp_path / "out" / "jobs.csv", newline="") as stream:
        assert [row["start_time"] for row in csv.DictReader(stream)] == ["0", "4", "0"]
    assert headway("replay", tmp_path / "journal.db").code == 0


def test_a_wrong_file_is_refused_with_its_line(headway: Headway, tmp_path: Path) -> None:
    trace, use = tmp_path / "three.swf", tmp_path / "use.csv"
    trace.write_text(SWF)
    use.write_text("1,matlab,many\n")
    run = headway("dry-run", "--trace", trace, "--licences", use)
    assert run.code == 2
    assert "use.csv:1: expected a whole number above 0, found 'many'" in run.err
