"""A daemon of which a test writes the answers, for commands that ask one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

from headway import cli
from headway.service import Inbox, Server
from headway.service.protocol import PoolReport, Reply, Report, Status


class Scripted(Inbox):
    """Answers each request with the next reply and keeps what was asked. What a run does it tells itself."""

    def __init__(self, *replies: Reply) -> None:
        report = Report(
            "drive", "tc", 3, time.time() - 60, ("easy", "elastic"), 9, time.time() - 1, 5, 1,
            (PoolReport("batch", 16, 4, 2, 3),), ((time.time(), "easy: schedule: broken"),), 1,
            power={"asleep": 3, "waking": 1},
        )  # fmt: skip
        super().__init__(lambda: None, report, clock=time.time, watts=lambda: {"n1": 200.4, "n2": 50.0})
        self.replies = list(replies)
        self.asked: list[Any] = []

    def ask(self, request: Any, peer: Any) -> Any:
        if isinstance(request, Status):
            return super().ask(request, peer)
        self.asked.append(request)
        future: Future[Reply] = Future()
        future.set_result(self.replies.pop(0))
        return future


#: Starts one: its configuration file, and the daemon.
Start = Callable[..., tuple[str, Scripted]]


@contextmanager
def scripted(directory: Path) -> Iterator[Start]:
    """Daemons with these replies, at the socket of ``site.yaml`` in the directory."""
    servers = []

    def start(*replies: Reply) -> tuple[str, Scripted]:
        config = directory / "site.yaml"
        config.write_text(f"journal: {directory / 'j.db'}\n")
        inbox = Scripted(*replies)
        servers.append(Server(directory / "j.db.sock", inbox, log=MagicMock()))
        return str(config), inbox

    yield start
    for server in servers:
        server.close()


def headway(*words: str) -> int:
    """Run a command; its exit code."""
    try:
        cli.main(list(words))
    except SystemExit as done:
        return int(done.code or 0)
    return 0
