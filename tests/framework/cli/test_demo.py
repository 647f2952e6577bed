"""``headway demo``."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
from pathlib import Path

import pytest
from commandline import Headway, command_of
from waiting import HANG

POLICIES = ("fcfs", "easy", "conservative")


def test_the_three_policies_are_compared_and_written(headway: Headway, tmp_path: Path) -> None:
    ran = headway("demo", "--days", 2, "--out", "out")
    assert (ran.code, ran.err) == (0, "")
    first, *_ = ran.out.splitlines()
    assert re.fullmatch(r"\d+ generated jobs, 2 days, 320 processors, seed 1", first)
    rows = [line for line in ran.out.splitlines() if line.split(" ")[0] in POLICIES]
    assert [row.split()[0] for row in rows] == list(POLICIES)
    assert "report: out/report.html" in ran.out
    assert (tmp_path / "out" / "report.html").read_text().startswith("<!DOCTYPE html>")
    for policy in POLICIES:
        there = {path.name for path in (tmp_path / "out" / policy).iterdir()}
        assert there == {"jobs.csv", "decisions.csv", "metrics_by_class.csv", "metrics.json", "schedule.swf"}
        metrics = json.loads((tmp_path / "out" / policy / "metrics.json").read_text())
        assert f"{metrics['counts']['jobs']} generated jobs" in first


def test_one_seed_gives_one_schedule_and_another_seed_another(
    headway: Headway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "headway.report.write_html", lambda *_, **__: None
    )  # takes longest and is not looked at
    for out, seed in (("a", 3), ("b", 3), ("c", 4)):
        assert headway("demo", "--days", 1, "--seed", seed, "--out", out).code == 0
    a, b, c = ((tmp_path / out / "easy" / "jobs.csv").read_bytes() for out in "abc")
    assert a == b != c


@pytest.mark.long
def test_the_comparison_of_a_whole_month_fits_80_columns(headway: Headway) -> None:
    ran = headway("demo")
    table = ran.out.split("\n\n")[1].splitlines()
    assert max(map(len, table)) <= 80
    assert len(table) == 3 + len(POLICIES) + 1, "no cell is folded"
    assert table[0].split() == ["mean", "median", "p95", "bounded", "utili-", "make-", "lost"]
    assert table[1].split() == [
        "policy",
        "jobs",
        "wait",
        "wait",
        "wait",
        "slowdown",
        "sation",
        "span",
        "capacity",
    ]
    assert "…" not in ran.out


def test_a_terminal_sees_progress_and_nothing_of_it_stays(tmp_path: Path) -> None:
    text = on_a_terminal("demo", "--days", "2", "--out", "out")
    assert "━" in text and "jobs" in text, "a progress bar"
    assert "\x1b[2K" in text, "which is erased"
    visible = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    assert "* best of its column" in visible
    assert max(map(len, visible.replace("\r", "\n").splitlines())) <= 80


def on_a_terminal(*arguments: str) -> str:
    """What ``headway`` prints to a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "LINES": "24", "TERM": "xterm"}
    child = subprocess.Popen(
        command_of(*arguments), stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    text = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            data = os.read(ours, 65536)
        except OSError:
            break  # how a terminal on Linux says that the other end is closed
        text += data
    os.close(ours)
    assert child.wait(HANG) == 0
    return text.decode()
