"""``headway health`` and ``headway metrics``: what they print, and how they end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from full_metrics import FULL
from scripted_daemon import Start, headway, scripted

from headway.inquiry.reports import HealthCheck, HealthReport
from headway.measured.exposition import exposition
from headway.service.protocol import Health, Metrics, Reply

GOOD = HealthCheck("clusters answer", True, "all of them")
BAD = HealthCheck("journal", False, "3 MiB free", "make room")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Start]:
    with scripted(tmp_path) as start:
        yield start


def said(capfd: pytest.CaptureFixture[str]) -> list[str]:
    return capfd.readouterr().out.splitlines()


def test_all_is_well(site: Any, capfd: pytest.CaptureFixture[str]) -> None:
    config, daemon = site(Reply("accepted", found=HealthReport((GOOD,))))
    assert headway("health", "-c", config) == 0
    assert said(capfd) == ["WELL: 1 checks", "ok  clusters answer  all of them"]
    assert daemon.asked == [Health()]


def test_something_is_not(site: Any, capfd: pytest.CaptureFixture[str]) -> None:
    config, _ = site(Reply("accepted", found=HealthReport((GOOD, BAD))))
    assert headway("health", "-c", config) == 1
    assert said(capfd) == [
        "ILL: journal (1 of 2 checks)",
        "ok  clusters answer  all of them",
        "ILL journal          3 MiB free -> make room",
    ]


def test_the_same_as_json(site: Any, capfd: pytest.CaptureFixture[str]) -> None:
    config, _ = site(Reply("accepted", found=HealthReport((GOOD, BAD))))
    assert headway("health", "-c", config, "--json") == 1
    assert [one["name"] for one in json.loads(capfd.readouterr().out)["checks"]] == [GOOD.name, BAD.name]


def test_a_daemon_that_is_not_there_cannot_be_asked(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "site.yaml"
    config.write_text(f"journal: {tmp_path / 'j.db'}\n")
    assert headway("health", "-c", str(config)) == 2
    (line,) = said(capfd)
    assert line.startswith("UNKNOWN: no daemon answers at")
    assert headway("health", "-c", str(config), "--json") == 2
    assert said(capfd) == []


def test_a_loop_that_does_not_answer_is_ill(site: Any, capfd: pytest.CaptureFixture[str]) -> None:
    config, _ = site(Reply("failed", "no answer within 15 s"))
    assert headway("health", "-c", config) == 1
    found = said(capfd)
    assert found[0] == "ILL: loop (1 of 1 checks)"
    assert "the last cycle was at" in found[1]


def test_metrics_are_what_the_daemon_says(site: Any, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    config, daemon = site(Reply("accepted", metrics=FULL), Reply("accepted", metrics=FULL))
    assert headway("metrics", "-c", config) == 0
    assert capfdbinary.readouterr().out == exposition(FULL)
    assert headway("metrics", "-c", config, "--openmetrics") == 0
    assert capfdbinary.readouterr().out.endswith(b"# EOF\n")
    assert daemon.asked == [Metrics(), Metrics()]


def test_metrics_as_json(site: Any, capfd: pytest.CaptureFixture[str]) -> None:
    config, _ = site(Reply("accepted", metrics=FULL))
    assert headway("metrics", "-c", config, "--json") == 0
    assert json.loads(capfd.readouterr().out)["jobs"] == FULL.jobs


def test_metrics_without_a_daemon_fail(tmp_path: Path) -> None:
    config = tmp_path / "site.yaml"
    config.write_text(f"journal: {tmp_path / 'j.db'}\n")
    assert headway("metrics", "-c", str(config)) == 1
