"""A dry run sends no letter and records which it would have sent."""

from __future__ import annotations

import csv
from pathlib import Path

from commandline import Headway

PLUGIN = """
from headway.decisions import Tell
from headway.events import JobStarted
from headway.hookspecs import hookimpl

class Writes:
    name = "writes"

    def __init__(self):
        self.begun = []

    @hookimpl
    def observe(self, event):
        if isinstance(event, JobStarted):
            self.begun.append(event.job_id)

    @hookimpl
    def react(self):
        begun, self.begun = self.begun, []
        return [Tell("ann", f"job {job} runs", "", "it began") for job in begun]
"""


def test_a_dry_run_says_what_it_would_write(headway: Headway, trace: Path, tmp_path: Path) -> None:
    mailer, box = tmp_path / "mail", tmp_path / "box"
    mailer.write_text(f"#!/bin/sh\necho sent >> {box}\n")
    mailer.chmod(0o755)
    (tmp_path / "writes.py").write_text(PLUGIN)
    (tmp_path / "site.yaml").write_text(
        "plugins: [writes, easy]\nemulation: {processors: 8}\n"
        f"letters: {{command: [{mailer}, '{{user}}']}}\n"
    )
    ran = headway(
        "dry-run", "-c", tmp_path / "site.yaml", "--trace", trace, "--plugin", tmp_path / "writes.py",
        "--out", tmp_path / "out",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    with (tmp_path / "out" / "decisions.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["decision"] == "Tell"]
    assert rows and {row["message"] for row in rows} == {"the letter would have been sent"}
    assert all('"user":"ann"' in row["details"].replace(" ", "") for row in rows)
    assert not box.exists()
