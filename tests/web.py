"""What tests of the interface share: a source that says one thing, and clients of an application."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

from starlette.requests import Request
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Receive, Scope, Send
from waiting import HANG

from headway.errors import Failure
from headway.inquiry.reports import JobPage, JobReport
from headway.serve.addresses import Address, bound
from headway.serve.connections import PEER, Room
from headway.serve.running import Server, configured
from headway.serve.source import Caller
from headway.service import protocol as p

#: The name under which a client calls this machine.
HOST = "http://localhost"
JOBS = JobPage((JobReport("7", "main", "pending", 4, 60.0, 60.0, 1.0, name="<b>x</b>"),))
ACCEPTED = p.Reply("accepted", found=JOBS, as_of=5.0)


@dataclass
class Told:
    """A source that says one thing, and what it was asked."""

    reply: p.Reply | Failure = ACCEPTED
    asked: list[tuple[Any, Caller]] = field(default_factory=list)

    async def ask(self, request: p.AnyRequest, caller: Caller) -> p.Reply:
        self.asked.append((request, caller))
        if isinstance(self.reply, Failure):
            raise self.reply
        return self.reply


class ByHeader:
    """Believes what the client says."""

    def __init__(self, *scopes: str) -> None:
        self.scopes = frozenset(scopes or ("read",))

    async def caller(self, request: Request) -> Caller | None:
        user = request.headers.get("test-user")
        return Caller(user, self.scopes) if user else None


@dataclass(frozen=True)
class FromUid:
    """An application whose clients all connect through a Unix socket, as one user."""

    app: ASGIApp
    uid: int

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"] = {PEER: self.uid}
        await self.app(scope, receive, send)


@contextmanager
def served(app: ASGIApp, path: Path, room: Room | None = None) -> Iterator[Server]:
    """The application at a Unix socket, served by a thread."""
    listener = bound(Address(path=path), 0o600)
    server = Server(configured(app, room if room is not None else Room(), None))
    thread = Thread(target=lambda: asyncio.run(server.serve([listener])))
    thread.start()
    try:
        yield server
    finally:
        server.should_exit = True
        thread.join()
        path.unlink(missing_ok=True)


class Process:
    """A running ``headway serve``."""

    def __init__(self, config: str, *words: str) -> None:
        code = "from headway.cli import main; main()"
        command = [sys.executable, "-c", code, "serve", "-c", config, *words]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(how)
        _, said = self.process.communicate(timeout=HANG)
        return self.process.returncode, said


def asked(connection: http.client.HTTPConnection, path: str, **headers: str) -> tuple[int, Any, Any]:
    """Status, headers, body."""
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    text = answer.read()
    return answer.status, answer.headers, json.loads(text) if text.startswith(b"{") else text


def asked_of(port: int, path: str, **headers: str) -> tuple[int, Any]:
    """Status and JSON of what is read at a port of this machine."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=HANG)) as connection:
        status, _, told = asked(connection, path, **headers)
        return status, told


def client(app: ASGIApp, headers: Mapping[str, str] | None = None, host: str = HOST) -> TestClient:
    return TestClient(app, host, headers=dict(headers or {}), follow_redirects=False)
