"""One user cannot fill the journal, the log and the scheduler's time with requests."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headway.service import Inbox, Server, protocol
from headway.service import client as service_client
from headway.service.inbox import Peer
from headway.service.limits import Allowance, Limits
from headway.service.protocol import Report, Unreserve

REPORT = Report("drive", "cluster", 1, 0.0)


def test_a_burst_then_a_rate() -> None:
    now = [0.0]
    limits = Limits(Allowance(3, 0.5), Allowance(100, 100), clock=lambda: now[0])
    assert [limits.take(7, False) for _ in range(5)] == [True, True, True, False, False]
    assert limits.take(8, False), "another user has an allowance of his own"
    now[0] = 2.0
    assert [limits.take(7, False) for _ in range(2)] == [True, False]
    now[0] = 1e6
    assert [limits.take(7, False) for _ in range(4)] == [True, True, True, False]


def test_who_is_refused_does_not_wait_the_longer_for_asking_on() -> None:
    now = [0.0]
    limits = Limits(Allowance(1, 1.0), clock=lambda: now[0])
    assert limits.take(7, False)
    for _ in range(100):
        now[0] += 0.009
        assert not limits.take(7, False)
    now[0] += 0.2
    assert limits.take(7, False)


def test_a_crowd_of_users_is_forgotten_first_come_first() -> None:
    limits = Limits(Allowance(1, 0.001), clock=lambda: 0.0)
    for uid in range(5000):
        assert limits.take(uid, False)
    assert len(limits._left) == 1000
    assert not limits.take(4999, False)


class Log:
    def __init__(self) -> None:
        self.said: list[str] = []

    def info(self, what: str, **more: Any) -> None:
        self.said.append(what)

    warning = error = exception = info


@contextlib.contextmanager
def served(path: Path, limits: Limits, uid: int, log: Log) -> Iterator[Inbox]:
    """A server whose clients are all this user, and whose requests are all refused by nobody's plugin."""
    inbox = Inbox(lambda: None, REPORT, watching=True, clock=lambda: 0.0)
    with Server(path, inbox, limits=limits, credentials=lambda _: uid, log=log):
        yield inbox


def test_beyond_his_allowance_a_user_is_refused_without_a_request_and_it_is_counted(tmp_path: Path) -> None:
    log = Log()
    limits = Limits(Allowance(5, 1e-9), Allowance(50, 1e-9))
    with served(tmp_path / "socket", limits, 54321, log) as inbox:
        asked: list[Any] = []
        ask = inbox.ask
        inbox.ask = lambda request, peer: (asked.append(request), ask(request, peer))[1]  # type: ignore[method-assign]
        replies = [service_client.ask(tmp_path / "socket", Unreserve("r"), timeout=60.0) for _ in range(40)]
        report = ask(protocol.Status(), Peer("root", True)).result(60).status
    assert [reply.outcome for reply in replies] == ["refused"] * 5 + ["failed"] * 35
    assert "at most 5 at once" in replies[-1].reason
    assert len(asked) == 5, "only so many reach the scheduler, and so the journal"
    assert report is not None and report.limited == {"uid:54321": 35}
    # The log is not filled either.
    assert log.said.count("request") == 5
    assert log.said.count("a user asks too often and is refused") == 1


def test_operators_have_more(tmp_path: Path) -> None:
    limits = Limits(Allowance(1, 1e-9), Allowance(10, 1e-9))
    with served(tmp_path / "socket", limits, os.geteuid(), Log()):
        replies = [service_client.ask(tmp_path / "socket", Unreserve("r"), timeout=60.0) for _ in range(11)]
    assert [reply.outcome for reply in replies] == ["refused"] * 10 + ["failed"]


def test_one_user_s_flood_leaves_the_others_theirs(tmp_path: Path) -> None:
    who = [1]
    inbox = Inbox(lambda: None, REPORT, watching=True, clock=lambda: 0.0)
    limits = Limits(Allowance(3, 1e-9))
    with Server(tmp_path / "socket", inbox, limits=limits, credentials=lambda _: who[0], log=Log()):
        flood = [service_client.ask(tmp_path / "socket", Unreserve("r"), timeout=60.0) for _ in range(10)]
        who[0] = 2
        other = service_client.ask(tmp_path / "socket", Unreserve("r"), timeout=60.0)
    assert flood[-1].outcome == "failed" and other.outcome == "refused"
    assert threading.active_count() < 50


@pytest.mark.parametrize("line", [b"nonsense\n", b"{}\n"])
def test_nonsense_counts_as_well(tmp_path: Path, line: bytes) -> None:
    import socket

    limits = Limits(Allowance(2, 1e-9))
    with served(tmp_path / "socket", limits, 54321, Log()) as inbox:
        for _ in range(5):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(60)
                connection.connect(str(tmp_path / "socket"))
                connection.sendall(line)
                assert connection.recv(4096)
        report = inbox.ask(protocol.Status(), Peer("root", True)).result(60).status
    assert report is not None and report.limited == {"uid:54321": 3}
