"""The widget for Open OnDemand's dashboard, rendered by Ruby as Rails does it, without Rails."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from waiting import HANG

from headway.inquiry.reports import JobReport

WIDGET = Path(__file__).parents[2] / "etc" / "ondemand" / "_headway_jobs.html.erb"
RUBY = shutil.which("ruby")
RENDER = 'require "erb"; print ERB.new(File.read(ARGV[0], encoding: "UTF-8"), trim_mode: "-").result'
HOSTILE = "<script>alert(1)</script>\" onload='x' \u202e\x1b[2J"

pytestmark = pytest.mark.skipif(RUBY is None, reason="needs Debian's ruby")


def rendered(command: Sequence[str] | str, **environment: str) -> str:
    """The widget's HTML, with this command."""
    assert RUBY is not None
    told = command if isinstance(command, str) else json.dumps(command)
    env = {**os.environ, "OOD_HEADWAY_COMMAND": told, "TZ": "UTC", "LC_ALL": "C.UTF-8", **environment}
    ran = subprocess.run(
        [RUBY, "-e", RENDER, str(WIDGET)], capture_output=True, text=True, timeout=HANG, check=True, env=env
    )
    assert ran.stderr == ""
    return ran.stdout


def saying(answer: Any, code: int = 0, error: str = "") -> list[str]:
    """A command that prints this JSON."""
    program = (
        "import sys; sys.stdout.write(sys.argv[1]); sys.stderr.write(sys.argv[2]); sys.exit(int(sys.argv[3]))"
    )
    return [sys.executable, "-c", program, json.dumps(answer), error, str(code)]


def cells(page: str) -> list[list[str]]:
    """The texts of the table's rows."""
    rows = re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)[1:]
    return [[html.unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)] for row in rows]


JOBS = [
    {"id": "7", "name": "run", "pool": "batch", "status": "pending", "position": 3, "planned_start": 1.7e9,
     "why": "Processors are kept for it."},
    {"id": "8", "pool": "batch", "status": "running", "started": 1.7e9 + 60},
]  # fmt: skip


@pytest.mark.parametrize(
    "answer",
    [{"jobs": JOBS, "as_of": 1.7e9}, {"as_of": 1.7e9, "data": {"jobs": JOBS}}],
    ids=["command", "interface"],
)
def test_jobs_have_their_planned_starts_and_reasons(answer: Any) -> None:
    page = rendered(saying(answer))
    assert cells(page) == [
        ["7", "run", "batch", "pending", "3", "2023-11-14 22:13 (planned)", "Processors are kept for it."],
        ["8", "", "batch", "running", "", "2023-11-14 22:14", ""],
    ]
    assert "As the scheduler planned it at 2023-11-14 22:13" in page


def test_the_fields_are_those_of_headway_jobs() -> None:
    fields = set(re.findall(r'job\["(\w+)"\]', WIDGET.read_text(encoding="utf-8")))
    assert fields and fields <= set(JobReport.__struct_fields__)


def test_without_jobs_it_says_so() -> None:
    assert "No job of yours waits or runs." in rendered(saying({"jobs": [], "as_of": 1.0}))


def test_every_text_is_escaped() -> None:
    job = {name: HOSTILE for name in ("id", "name", "pool", "status", "why", "position")}
    page = rendered(saying({"jobs": [{**job, "planned_start": HOSTILE}], "as_of": 1.7e9}))
    assert "<script" not in page and "onload='" not in page
    assert "\x1b" not in page and "\u202e" not in page
    assert cells(page)[0][1].startswith("<script>alert(1)</script>")


def test_only_the_first_twenty_are_shown() -> None:
    assert len(cells(rendered(saying({"jobs": JOBS * 50, "as_of": 1.7e9})))) == 20


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (saying({}, 1, f"headway: no daemon answers at {HOSTILE}\nmore"), "headway: no daemon answers at"),
        (saying({}, 1), "The scheduler does not answer now."),
        (saying([1]), "The scheduler's answer is not the expected JSON."),
        (saying({"jobs": "many"}), "The scheduler's answer is not the expected JSON."),
        ([sys.executable, "-c", "print('no JSON')"], "The scheduler's answer is not the expected JSON."),
        ("headway jobs", "The scheduler's answer is not the expected JSON."),
        ('{"a": 1}', "OOD_HEADWAY_COMMAND: expected a JSON array of words"),
        ("[]", "OOD_HEADWAY_COMMAND: expected a JSON array of words"),
    ],
)
def test_a_problem_is_told_and_the_dashboard_goes_on(command: Sequence[str] | str, said: str) -> None:
    page = rendered(command)
    told = re.search(r'<p role="status">(.*?)</p>', page, re.DOTALL)
    assert told is not None
    assert said in html.unescape(told[1])
    assert "<script" not in page


def test_no_shell_reads_the_command(tmp_path: Path) -> None:
    rendered(["true", f"; touch {tmp_path / 'made'}", "$(id)"])
    rendered([f"true; touch {tmp_path / 'made'}"])
    assert list(tmp_path.iterdir()) == []


def test_a_command_that_hangs_is_ended() -> None:
    """Its seconds are those that a person waits for the dashboard."""
    assert "The scheduler does not answer now." in rendered(["sleep", "1000"])
