"""``headway jobs``: what it asks, fetches page by page, sorts and prints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from scripted_daemon import Start, headway, scripted

from headway.cli import asking, common
from headway.cli.as_json import schema_of
from headway.cli.common import wall_clock
from headway.cli.jobs import command
from headway.inquiry.pages import MOST
from headway.inquiry.reports import JobList, JobPage, JobReport
from headway.service import Server
from headway.service.protocol import Jobs, Reply

NOW = 1_700_000_000.0
FIRST = JobReport(
    "4711", "batch", "pending", 16, 7200.0, 7200.0, NOW - 3600, "ann", nodes=2, position=1, queue_length=2,
    planned_start=NOW + 600, waits_because="booking", waits_for=("4000", "4001"),
)  # fmt: skip
SECOND = JobReport("4712", "batch", "pending", 64, 60.0, 60.0, NOW - 60, "ben", position=2,
                   waits_because="processors")  # fmt: skip
RUNS = JobReport("4000", "gpu", "running", 1, None, 60.0, NOW - 99, "ann", started=NOW - 90)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Start]:
    with scripted(tmp_path) as start:
        yield start


def page(*jobs: JobReport, after: int | None = None, at: float = NOW, reason: str = "") -> Reply:
    return Reply("accepted", reason, found=JobPage(jobs, after), as_of=at)


def listed(capsys: Any) -> list[str]:
    """The ids in the lines that were printed."""
    return [line.split()[0] for line in capsys.readouterr().out.splitlines()[2:]]


def test_my_jobs_are_asked_for_and_shown_in_the_daemons_order(site: Any, capsys: Any) -> None:
    config, daemon = site(page(FIRST, SECOND, RUNS))
    assert headway("jobs", "-c", config) == 0
    assert daemon.asked == [Jobs(mine=True, count=MOST)]
    head, names, first, second, runs = capsys.readouterr().out.splitlines()
    assert head.startswith(f"As of the daemon's cycle at {wall_clock(NOW)}; times are ")
    assert names.split() == ["job", "pool", "status", "cpus", "limit", "waited", "place", "start", "reason"]
    assert first.split()[:6] == ["4711", "batch", "pending", "16/2n", "2h", "1h"]
    assert first.endswith("booking (4000 +1)") and first.split()[6] == "1"
    assert wall_clock(NOW + 600)[11:16] in first
    assert second.split()[-2:] == ["-", "processors"]
    assert runs.split()[:6] == ["4000", "gpu", "running", "1", "none", "9s"]


def test_a_line_has_no_more_than_80_columns(site: Any, capsys: Any) -> None:
    config, _ = site(
        page(FIRST, msgspec.structs.replace(FIRST, user="a" * 40, pool="p" * 40, id="12345678_1"))
    )
    headway("jobs", "--all", "-c", config)
    assert max(len(line.split("booking")[0]) for line in capsys.readouterr().out.splitlines()[1:]) <= 80


def test_filters_are_the_daemons(site: Any) -> None:
    config, daemon = site(page(), page(), page())
    headway("jobs", "-c", config, "--pool", "p", "--account", "x", "--qos", "q", "--status", "running",
            "--name", "n")  # fmt: skip
    headway("jobs", "-c", config, "--all")
    headway("jobs", "-c", config, "--user", "ben", "-n", "3")
    assert daemon.asked == [
        Jobs("p", "", "running", 0, MOST, "x", "q", "n", True), Jobs(count=MOST), Jobs(user="ben", count=3),
    ]  # fmt: skip


def test_all_and_a_user_exclude_each_other(site: Any, capsys: Any) -> None:
    config, _ = site()
    assert headway("jobs", "-c", config, "--all", "--user", "ben") == 2
    assert "expected --all or --user, found both" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("order", "ids"),
    [
        ("order", ["4711", "4712", "4000"]), ("start", ["4000", "4711", "4712"]),
        ("submitted", ["4711", "4000", "4712"]), ("size", ["4712", "4711", "4000"]),
        ("limit", ["4712", "4711", "4000"]), ("user", ["4711", "4000", "4712"]),
    ],
)  # fmt: skip
def test_jobs_are_sorted_and_then_in_the_daemons_order(
    site: Any, capsys: Any, order: str, ids: list[str]
) -> None:
    config, _ = site(page(FIRST, SECOND, RUNS))
    headway("jobs", "-c", config, "--sort", order)
    assert listed(capsys) == ids


def test_of_a_sorted_list_the_first_few_are_the_first_of_all(site: Any, capsys: Any) -> None:
    config, daemon = site(page(FIRST, after=500), page(SECOND))
    headway("jobs", "-c", config, "--sort", "size", "-n", "1")
    assert listed(capsys) == ["4712"] and len(daemon.asked) == 2


def test_pages_follow_each_other_and_json_has_all_jobs(site: Any, capsys: Any) -> None:
    config, daemon = site(page(FIRST, after=500), page(SECOND, RUNS))
    assert headway("jobs", "-c", config, "--json") == 0
    assert [one.first for one in daemon.asked] == [0, 500]
    printed = capsys.readouterr().out
    assert msgspec.json.decode(printed, type=JobList) == JobList((FIRST, SECOND, RUNS), NOW)
    assert schema_of(command) == msgspec.json.schema(JobList)


def test_pages_of_two_cycles_are_fetched_anew(site: Any, capsys: Any) -> None:
    config, daemon = site(page(FIRST, after=500), page(FIRST, RUNS, at=NOW + 1), page(SECOND, at=NOW + 1))
    headway("jobs", "-c", config, "--json")
    assert json.loads(capsys.readouterr().out)["jobs"][0]["id"] == "4712" and len(daemon.asked) == 3


def test_a_queue_that_does_not_stand_still_is_shown_with_a_remark(site: Any, capsys: Any) -> None:
    changing = [page(FIRST, after=500), page(FIRST, RUNS, at=NOW + 1)] * 3
    config, _ = site(*changing)
    headway("jobs", "-c", config, "--json")
    shown = json.loads(capsys.readouterr().out)
    assert [job["id"] for job in shown["jobs"]] == ["4711", "4000"], "no job twice"
    assert shown["remark"].startswith("The queue changed while it was read") and shown["as_of"] == NOW + 1


def test_a_daemon_that_has_enough_leaves_what_was_read(site: Any, capsys: Any) -> None:
    config, _ = site(page(FIRST, after=500), Reply("failed", "too many requests"))
    assert headway("jobs", "-c", config) == 0
    assert "Only the first 1 jobs are shown: no answer: too many requests." in capsys.readouterr().err


def test_what_the_site_hides_is_said(site: Any, capsys: Any) -> None:
    config, _ = site(page(RUNS, reason="only your own jobs are shown"))
    headway("jobs", "--all", "-c", config)
    assert capsys.readouterr().err == "Only your own jobs are shown.\n"


@pytest.mark.parametrize("words", [[], ["--all"]])
def test_where_there_is_no_job_that_is_said(site: Any, capsys: Any, words: list[str]) -> None:
    config, _ = site(page())
    headway("jobs", "-c", config, *words)
    said = "No such job." if words else "No job of yours is in the cluster's queue, and none runs."
    assert capsys.readouterr().out.splitlines()[1] == said


def test_what_users_wrote_is_shown_as_text_in_one_line(site: Any, capsys: Any) -> None:
    forged = msgspec.structs.replace(FIRST, user="\x1b[2Jx\ny", id="1\n99", pool="[red]p")
    config, _ = site(page(forged))
    headway("jobs", "--all", "-c", config)
    out = capsys.readouterr().out
    assert "\x1b" not in out and len(out.splitlines()) == 3 and "[red]p" in out


def test_the_socket_alone_is_enough(
    site: Any, capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, daemon = site(page(FIRST))
    server = Server(tmp_path / "alone.sock", daemon)
    monkeypatch.setattr(asking, "SOCKET", tmp_path / "alone.sock")
    monkeypatch.setattr(common, "CONFIGS", ())
    monkeypatch.delenv("HEADWAY_CONFIG", raising=False)
    try:
        assert headway("jobs") == 0
    finally:
        server.close()
    assert listed(capsys) == ["4711"]
