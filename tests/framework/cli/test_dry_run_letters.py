"""A dry run sends no letter and records which it would have sent."""

from __future__ import annotations

import csv
import json
import sqlite3
from pathlib import Path

import pytest
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


@pytest.fixture
def ran(headway: Headway, trace: Path, tmp_path: Path) -> Path:
    """A folder with a dry run in which letters are written: `out`, `runs.db`, and `box`, if any was sent."""
    mailer = tmp_path / "mail"
    mailer.write_text(f"#!/bin/sh\necho sent >> {tmp_path}/box\n")
    mailer.chmod(0o755)
    (tmp_path / "writes.py").write_text(PLUGIN)
    (tmp_path / "site.yaml").write_text(
        "plugins: [writes, easy]\nemulation: {processors: 8}\n"
        f"letters: {{command: [{mailer}, '{{user}}']}}\n"
    )
    done = headway(
        "dry-run", "-c", tmp_path / "site.yaml", "--trace", trace, "--plugin", tmp_path / "writes.py",
        "--out", tmp_path / "out", "--journal", tmp_path / "runs.db",
    )  # fmt: skip
    assert done.code == 0, done.err
    return tmp_path


def test_a_dry_run_says_what_it_would_write(ran: Path) -> None:
    with (ran / "out" / "decisions.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["decision"] == "Tell"]
    assert rows and {row["message"] for row in rows} == {"the letter would have been sent"}
    assert all('"user":"ann"' in row["details"].replace(" ", "") for row in rows)
    assert not (ran / "box").exists()


@pytest.mark.parametrize(("changed", "code"), [({"subject": "x", "text": "at 7"}, 0), ({"user": "ben"}, 1)])
def test_a_replay_sends_nothing_and_compares_to_whom_but_no_words(
    headway: Headway, ran: Path, changed: dict[str, str], code: int
) -> None:
    with sqlite3.connect(ran / "runs.db") as database:
        first = "select seq, position, payload from decisions where kind = 'Tell' order by seq limit 1"
        seq, position, text = database.execute(first).fetchone()
        payload = json.dumps({**json.loads(text), **changed})
        change = "update decisions set payload = ? where seq = ? and position = ?"
        database.execute(change, (payload, seq, position))
    assert headway("replay", ran / "runs.db", "--plugin", ran / "writes.py").code == code
    assert not (ran / "box").exists()
