"""``headway when`` and ``headway holes``: the words that they take, what they ask, and what they print."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from scripted_daemon import Start, headway, scripted

from headway.cli.common import wall_clock
from headway.cli.when import command as when
from headway.inquiry.reports import HoleList, HoleReport, PoolHoles, SmallerRequest, TrialReport
from headway.service.protocol import Holes, Reply, When

NOW = 1_700_000_000.0
G = 2**30
FOUND = TrialReport(
    "batch", "planned", NOW + 600, placement=(("n1", 4), ("n2", 4)), position=3, queue_length=9,
    waits_because="booking", why="Processors are kept for it.", account="physics",
    smaller=(SmallerRequest(2, 0, 3600.0, NOW + 60),),
)  # fmt: skip
HOLES = HoleList(
    (
        PoolHoles("batch", (HoleReport(24, 6, NOW + 9000, 9000.0), HoleReport(12, 3, None, None)), fits=True),
        PoolHoles("gpu", (HoleReport(1, 0, NOW + 60, 60.0),), known_until=NOW + 60),
        PoolHoles("big", why="no processor is free"),
    )
)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Start]:
    with scripted(tmp_path) as start:
        yield start


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("-N 4 -t 2h", When(nodes=4, seconds=7200.0)),
        ("-N 4 -t 2:00:00 --gres gpu:a100:2 -q high -A physics",
         When(nodes=4, seconds=7200.0, gres_per_node=(("gpu", 2), ("gpu:a100", 2)), qos="high",
              account="physics")),
        ("-p batch -n 64 --ntasks-per-node 8 --mem-per-cpu 2G -t 1-12",
         When(pool="batch", processors=64, processors_per_node=8, memory_per_processor=2 * G,
              seconds=129600.0)),
        ("-n 1 -t 30:00 --mem 512 -C new&ib -L matlab:2,fluent --exclusive --no-smaller",
         When(processors=1, seconds=1800.0, memory_per_node=G // 2, features=("new", "ib"),
              licences=(("fluent", 1), ("matlab", 2)), exclusive=True, smaller=False)),
    ],
)  # fmt: skip
def test_words_of_sbatch_are_taken(words: str, asked: When, site: Any) -> None:
    config, daemon = site(Reply("accepted", found=FOUND, as_of=NOW))
    assert headway("when", *words.split(), "-c", config) == 0
    assert daemon.asked == [asked]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("-n 1 -t 90", "expected a time such as 2h, 90m, 2:00:00 or 1-12:00:00; found '90'"),
        ("-n 1 -t 1:2:3:4", "expected a time such as"),
        ("-n 1 -t 0:00", "expected a time above 0"),
        ("-n 0 -t 1h", "0 is not in the range"),
        ("-n 1 -t 1h --mem 3X", "expected an amount such as 16G, 512M or 4000 (M); found '3X'"),
        ("-n 1 -t 1h --gres gpu:a100:x:2", "expected names and amounts such as gpu:2 or gpu:a100:2"),
        ("-n 1 -t 1h --gres gpu:-1", "expected names and amounts such as gpu:2 or gpu:a100:2"),
        ("-n 1 -t 1h --begin 9999-12-31", "expected a time in the next ten years, found"),
        ("-n 1 -t 1h --gres $(reboot)", "expected names and amounts"),
        ("-n 1 -t 1h -C a|b", "expected features that nodes must all have"),
        ("-n 1", "Missing option '-t'"),
    ],
)
def test_bad_words_are_named(words: str, said: str) -> None:
    result = CliRunner().invoke(when, words.split())
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


def test_what_was_found_is_said(site: Any, capsys: Any) -> None:
    config, _ = site(Reply("accepted", found=FOUND, as_of=NOW))
    assert headway("when", "-N", "4", "-t", "2h", "-c", config) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"It is planned to start at {wall_clock(NOW + 600)} in pool batch on n1, n2.",
        "It would be number 3 of 9 in the queue.",
        "Processors are kept for it.",
        "Tried with account physics.",
        "Smaller requests would start earlier:",
        f"  -N 2 -t 1:00:00: {wall_clock(NOW + 60)}",
        f"As of {wall_clock(NOW)}; other jobs that come or end early change it.",
    ]


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (TrialReport("batch", "never", why="it needs 9 nodes, and pool 'batch' has 8"),
         "It can never start: it needs 9 nodes, and pool 'batch' has 8."),
        (TrialReport("batch", "now", NOW, why="first in the queue"),
         "It would start now in pool batch: first in the queue."),
        (TrialReport("batch", "foreseen", NOW),
         f"It is expected to start at {wall_clock(NOW)} in pool batch."),
        (TrialReport("batch", "later", not_before=NOW),
         f"It would not start before {wall_clock(NOW)} in pool batch."),
    ],
)  # fmt: skip
def test_each_outcome_has_a_sentence(report: TrialReport, said: str, site: Any, capsys: Any) -> None:
    config, _ = site(Reply("accepted", found=report, as_of=NOW))
    assert headway("when", "-n", "1", "-t", "2h", "-c", config) == 0
    assert capsys.readouterr().out.splitlines()[0] == said


def test_words_that_name_no_job_are_an_error(site: Any, capsys: Any) -> None:
    config, _ = site(Reply("unknown", "expected one of the pools a, b (-p); found none"))
    assert headway("when", "-n", "1", "-t", "2h", "-c", config) == 2
    assert "expected one of the pools a, b (-p); found none" in capsys.readouterr().err


def test_holes_are_listed(site: Any, capsys: Any) -> None:
    config, daemon = site(Reply("accepted", found=HOLES, as_of=NOW))
    assert headway("holes", "-N", "4", "-t", "2h", "-c", config) == 0
    assert daemon.asked == [Holes(nodes=4, seconds=7200.0)]
    assert capsys.readouterr().out.splitlines() == [
        f"As of {wall_clock(NOW)}:",
        f"batch: 6 nodes, 24 processors for 2:30:00 (until {wall_clock(NOW + 9000)})",
        "batch: 3 nodes, 12 processors without limit",
        "batch: what you ask for fits now.",
        f"gpu: 1 processor for at least 0:01:00 (until {wall_clock(NOW + 60)})",
        "big: nothing; no processor is free.",
    ]


@pytest.mark.parametrize(("command", "found"), [("when -n 1 -t 1h", FOUND), ("holes", HOLES)])
def test_json_is_what_the_daemon_found(command: str, found: Any, site: Any, capsys: Any) -> None:
    config, _ = site(Reply("accepted", found=found, as_of=NOW))
    assert headway(*command.split(), "--json", "-c", config) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(msgspec.json.encode(found))
