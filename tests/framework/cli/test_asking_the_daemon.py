"""Commands that ask the daemon (``headway elastic``, ``status``, ...): what they ask, say and return."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from scripted_daemon import Scripted, Start, headway, scripted

from headway.cli import status
from headway.cli.asking import DURATION, MOMENT
from headway.config import parse_config
from headway.errors import UserError
from headway.inquiry.reports import CopyReport, DatasetList, DatasetReport, ReplicaReport, StoreReport
from headway.service import Server
from headway.service.protocol import Datasets, Leadership, LetterCounts, PoolReport, Reply, Report


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Start]:
    with scripted(tmp_path) as start:
        yield start


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30m", 1800), ("1h30m", 5400), ("45", 45), ("45s", 45), ("2d", 172800), ("1D2H3M4S", 93784),
        ("90m", 5400),
    ],
)  # fmt: skip
def test_durations(text: str, seconds: float) -> None:
    assert DURATION.convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "0", "-5m", "1.5h", "30x", "m", "5m1h", "soon", "9999999d", "1h 30m"])
def test_what_is_no_duration_is_told_so(text: str) -> None:
    with pytest.raises(click.BadParameter, match="expected a time") as caught:
        DURATION.convert(text, None, None)
    assert repr(text) in str(caught.value)


def test_moments() -> None:
    before = time.time()
    now, later = MOMENT.convert("now", None, None), MOMENT.convert("+2h", None, None)
    assert before - 1 <= now <= later - 7200 + 1 <= time.time() + 2
    assert MOMENT.convert("2026-03-01T14:30", None, None) == datetime(2026, 3, 1, 14, 30).timestamp()
    assert MOMENT.convert("2026-03-01 14:30:05", None, None) == datetime(2026, 3, 1, 14, 30, 5).timestamp()
    assert MOMENT.convert("2026-03-01T14:30:00+00:00", None, None) == 1772375400
    past = datetime.now() - timedelta(minutes=2)
    found = MOMENT.convert(past.strftime("%H:%M"), None, None)
    assert time.time() < found <= time.time() + 25 * 3600
    assert datetime.fromtimestamp(found).strftime("%H:%M") == past.strftime("%H:%M")


@pytest.mark.parametrize("text", ["", "25:00", "noon", "+", "+soon", "2026-13-01", "12:60"])
def test_what_is_no_moment_is_told_so(text: str) -> None:
    with pytest.raises(click.BadParameter, match="expected a time"):
        MOMENT.convert(text, None, None)


@pytest.mark.parametrize(
    ("words", "command", "amount"),
    [
        (["--extend", "30m"], "ET", 1800), (["--reduce", "600"], "RT", 600), (["--grow", "4"], "EP", 4),
        (["--shrink", "4"], "RP", 4),
    ],
)  # fmt: skip
def test_elastic_asks_and_prints_the_answer(
    words: list[str], command: str, amount: float, site: Any, capsys: Any
) -> None:
    config, inbox = site(Reply("in part", "its time is 60 s now"))
    assert headway("elastic", "12_3", *words, "-c", config) == 0
    (asked,) = inbox.asked
    assert (asked.job, asked.command, asked.amount) == ("12_3", command, amount)
    assert capsys.readouterr().out == "in part: its time is 60 s now\n"


def test_a_refusal_is_an_exit_code_and_a_reason(site: Any, capsys: Any) -> None:
    config, _ = site(Reply("refused", "it would delay dedicated job 7"), Reply("failed", "no cycle"))
    assert headway("elastic", "1", "--extend", "5m", "-c", config) == 1
    assert capsys.readouterr().err == "headway: refused: it would delay dedicated job 7\n"
    assert headway("unreserve", "r1", "-c", config) == 1
    assert "no answer: no cycle" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["elastic", "1"], "expected exactly one of --extend"),
        (["elastic", "1", "--extend", "5m", "--grow", "2"], "found 2"),
        (["elastic", "1", "--extend", "soon"], "expected a time such as 30m"),
        (["elastic", "1", "--grow", "0"], "--grow"),
        (["reserve", "--at", "now", "--for", "1h"], "either --nodes or --processors"),
        (["reserve", "--at", "now", "--for", "1h", "--nodes", "1", "--processors", "1"], "either"),
        (["reserve", "--at", "later", "--for", "1h", "--nodes", "1"], "expected a time such as 14:30"),
    ],
)
def test_a_command_that_is_wrong_asks_nothing(words: list[str], said: str, site: Any, capsys: Any) -> None:
    config, inbox = site()
    assert headway(*words, "-c", config) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert inbox.asked == []


def test_reserve_and_unreserve_ask(site: Any, capsys: Any) -> None:
    config, inbox = site(Reply("accepted", "reservation r1: n1"), Reply("accepted"))
    words = ["--at", "2030-01-01T08:00", "--for", "1h30m", "--nodes", "2", "--user", "alice", "--pool", "b"]
    assert headway("reserve", *words, "-c", config) == 0
    assert headway("unreserve", "r1", "-c", config) == 0
    reserve, unreserve = inbox.asked
    assert reserve.start == datetime(2030, 1, 1, 8).timestamp()
    assert (reserve.duration, reserve.nodes, reserve.processors) == (5400, 2, 0)
    assert (reserve.user, reserve.pool, reserve.account) == ("alice", "b", "")
    assert unreserve.reservation == "r1"
    assert capsys.readouterr().out == "accepted: reservation r1: n1\naccepted\n"


def test_status_shows_run_queues_and_problems(site: Any, capsys: Any) -> None:
    config, _ = site()
    assert headway("status", "-c", config) == 0
    out = " ".join(capsys.readouterr().out.split())
    for part in ("tc: mode drive, run 3", "easy, elastic", "9 cycles", "5 jobs", "batch", "1 reservations",
                 "Power: 3 asleep, 1 waking, 250 W measured on 2 nodes"):  # fmt: skip
        assert part in out
    assert headway("status", "--json", "-c", config) == 0
    report = json.loads(capsys.readouterr().out)
    pool = {
        "name": "batch", "total": 16, "free": 4, "queued": 2, "running": 3, "head": 0, "ends": [],
        "background": 0, "open": True, "tier": 0, "shares_nodes_with": [],
    }  # fmt: skip
    assert report["pools"] == [pool]
    assert report["watts"] == {"n1": 200.4, "n2": 50.0} and report["power"] == {"asleep": 3, "waking": 1}


def test_status_counts_letters_where_there_were_some(capsys: Any) -> None:
    plain = Report("drive", "tc", 3, 0.0, ("easy",), last_cycle=0.0)
    status._show(plain)
    assert "Letters" not in capsys.readouterr().out
    status._show(msgspec.structs.replace(plain, letters=LetterCounts(4, 1, 0, 2)))
    assert "Letters to users: 4 delivered, 1 failed, 2 waiting\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (Leadership(), ()),
        (
            Leadership("leader", "process 1 on host a", 7, 0.0, trouble="the server is away"),
            ("process 1 on host a is the leader with epoch 7 since", "The lease: the server is away"),
        ),
        (
            Leadership("stand-by", "process 1 on host a", 7, 0.0, 1.25, 0.31),
            (
                "Stand-by since",
                "process 1 on host a leads with epoch 7, last heard of 1.2 s ago.",
                "What is known of the leader's journal is at most 0.3 s old.",
            ),
        ),
        (
            Leadership("stand-by", "", 0, 0.0, 1.25, None, "no route to host"),
            ("No leader is known.", "Nothing of the leader's journal is known.", "no route to host"),
        ),
        (Leadership("stand-by", "x", 7, 0.0, 1.25, 0.0), ("The journal is shared.",)),
    ],
)
def test_status_tells_which_of_two_daemons_it_is(
    known: Leadership, said: tuple[str, ...], capsys: Any
) -> None:
    status._show(Report("drive", "tc", 3, 0.0, ("easy",), last_cycle=0.0, leadership=known))
    out = capsys.readouterr().out
    assert all(part in out for part in said)
    assert ("mode drive" in out) is (known.role != "stand-by") and ("epoch" in out) is bool(known.leader)


def test_status_counts_jobs_in_the_background_where_there_are_some(capsys: Any) -> None:
    plain = Report("drive", "tc", 3, 0.0, ("easy",), last_cycle=0.0)
    for background, shown in ((0, False), (2, True)):
        pools = (PoolReport("batch", 16, 4, 1, 3, background=background),)
        status._show(msgspec.structs.replace(plain, pools=pools))
        out = capsys.readouterr().out
        assert ("background" in out) is shown
        assert (re.findall("[0-9]+", out.split("batch")[1])[:5] == ["16", "4", "1", "3", "2"]) is shown


def test_datasets_copies_and_stores_are_shown(site: Any, capsys: Any) -> None:
    found = DatasetList(
        (
            DatasetReport("era5", 2 * 10**12, (ReplicaReport("oslo"), ReplicaReport("graz", 5.0))),
            DatasetReport("grid", 0, (), (CopyReport("graz", "oslo", 5.0, 0),)),
            DatasetReport("half", 10**9, (), (CopyReport("graz", "oslo", 5.0, 5 * 10**8),)),
        ),
        (StoreReport("oslo", None, 2 * 10**12), StoreReport("graz", 4 * 10**12, 10**12)),
    )
    config, inbox = site(Reply("accepted", found=found), Reply("accepted", found=found),
                         Reply("unknown", "no sites are configured"))  # fmt: skip
    assert headway("datasets", "-c", config) == 0
    assert inbox.asked == [Datasets()]
    out = " ".join(capsys.readouterr().out.split())
    for part in ("era5 │ 2 TB │ oslo*, graz", "oslo to graz: 100%", "oslo to graz: 50%",
                 "oslo │ not bounded │ 2 TB │", "graz │ 4 TB │ 1 TB │ 3 TB"):  # fmt: skip
        assert part in out
    assert headway("datasets", "--json", "-c", config) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["datasets"][0]["at"] == [{"site": "oslo"}, {"site": "graz", "since": 5.0}]
    assert headway("datasets", "-c", config) == 1
    assert "the daemon knows no datasets: no sites are configured" in capsys.readouterr().err


def test_without_a_daemon_it_says_so(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("headway.service.client._PATIENCE", 0.1)
    config = tmp_path / "site.yaml"
    config.write_text(f"journal: {tmp_path / 'j.db'}\n")
    assert headway("status", "-c", str(config)) == 1
    assert "no daemon answers at" in capsys.readouterr().err


def test_a_daemon_that_reads_its_configuration_again_is_waited_for(tmp_path: Path, capsys: Any) -> None:
    config = tmp_path / "site.yaml"
    config.write_text(f"service: {{socket: {tmp_path / 's'}}}\n")
    servers: list[Server] = []
    later = threading.Timer(0.4, lambda: servers.append(Server(tmp_path / "s", Scripted())))
    later.start()
    try:
        assert headway("status", "-c", str(config)) == 0
    finally:
        later.join()
        servers[0].close()


def test_where_the_socket_is() -> None:
    def path(text: str) -> Path | None:
        return parse_config(text).socket_path()

    assert path("journal: a/b.db") == Path("a/b.db.sock")
    assert path("journal: postgresql://user@host/db") is None
    both = "{journal: 'postgresql://user@host/db', service: {socket: /run/hw.sock}}"
    assert path(both) == Path("/run/hw.sock")
    assert path("service: {enabled: false, socket: x}") is None
    with pytest.raises(UserError, match="service"):
        parse_config("service: {sockets: x}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("journal: postgresql://user@host/db", "the journal is no file"),
        ("service: {enabled: false}", "no socket"),
    ],
)
def test_without_a_socket_the_configuration_is_named(
    text: str, said: str, tmp_path: Path, capsys: Any
) -> None:
    config = tmp_path / "site.yaml"
    config.write_text(text)
    assert headway("status", "-c", str(config)) == 2
    assert said in capsys.readouterr().err
