"""``headway what-if``: what it asks, and what it prints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted_daemon import Start, headway, scripted

from headway.cli.common import wall_clock
from headway.inquiry.reports import CourseReport, ForeseenJob, WhatIfReport
from headway.service.protocol import Reply, WhatIf

NOW = 1_700_000_000.0
FOUND = WhatIfReport(
    "easy", NOW, CourseReport(("fcfs", "first-fit"), 2, None, "", 7200.0, 3600.0, 0.5),
    CourseReport(("easy", "first-fit"), 1, NOW + 900, "plugin easy failed", 60.0, 60.0, 0.75),
    waiting=3, earlier=1, same=1, unknown=1, until=NOW + 900,
    jobs=(ForeseenJob("7", "batch", "ann", 16, NOW - 60, NOW + 7200, NOW + 60),
          ForeseenJob("8", "batch", "a\x1b[2Jb", 1, NOW, NOW + 60, NOW + 60)), left_out=1,
)  # fmt: skip


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Start]:
    with scripted(tmp_path) as start:
        yield start


def test_the_policy_is_asked_for_with_its_options(site: Any, capsys: Any) -> None:
    config, daemon = site(Reply("accepted", found=FOUND, as_of=NOW))
    words = ["--set", "bookings=3", "--set", "x=[a, 1]", "--jobs", "2", "-c", config]
    assert headway("what-if", "easy", *words) == 0
    assert daemon.asked == [WhatIf("easy", '{"bookings":3,"x":["a",1]}', 2)]
    said = capsys.readouterr().out
    assert "1 of them would start earlier, 0 later and 1 at the same time; of 1 that is not known" in said
    assert "mean wait 2h, median 1h" in said and "75.0 % of the processors" in said
    assert f"Known until {wall_clock(NOW + 900)}: plugin easy failed." in said
    lines = [line.split() for line in said.splitlines()]
    assert any(line[:1] == ["7"] and line[-1] == "-1h59" for line in lines)
    assert any(line[:1] == ["8"] and line[-1] == "same" for line in lines)
    assert "1 more jobs are not shown (--jobs)" in said and "\x1b" not in said


def test_as_json_it_is_the_report(site: Any, capsys: Any) -> None:
    config, _ = site(Reply("accepted", found=FOUND, as_of=NOW))
    assert headway("what-if", "easy", "--json", "-c", config) == 0
    assert json.loads(capsys.readouterr().out)["other"]["known_until"] == NOW + 900


@pytest.mark.parametrize(
    ("reply", "code", "said"),
    [
        (Reply("unknown", "what-if: policy: no plugin is called 'x'"), 2, "no plugin is called 'x'"),
        (Reply("refused", "a what-if is for operators"), 1, "refused: a what-if is for operators"),
        (Reply("failed", "another what-if is being worked out"), 1, "another what-if is being worked out"),
        (Reply("accepted"), 1, "answers without a comparison"),
    ],
)
def test_why_there_is_no_answer(reply: Reply, code: int, said: str, site: Any, capsys: Any) -> None:
    config, _ = site(reply)
    assert headway("what-if", "x", "-c", config) == code
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["x" * 65], "POLICY, --set: Expected `str` of length <= 64"),
        (["easy", "--set", "bookings"], "expected KEY=VALUE"),
        (["easy", "--set", "at=2026-01-01"], ""),
        (["easy", "--set", f"x={'y' * 13_000}"], "POLICY, --set:"),
    ],
)
def test_bad_words_are_named(words: list[str], said: str, site: Any, capsys: Any) -> None:
    config, daemon = site(Reply("accepted", found=FOUND))
    code = headway("what-if", *words, "-c", config)
    assert said in capsys.readouterr().err
    assert (code, daemon.asked) == (2, []) or not said
