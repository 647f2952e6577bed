"""What-if over HTTP: for operators, with the options as an object, and it ends when its client goes away."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.testclient import TestClient
from waiting import HANG, until
from web import ByHeader, Told, served
from web import client as client_of

from headway.client import Client, Refused
from headway.inquiry.reports import CourseReport, WhatIfReport
from headway.serve.app import make_app
from headway.serve.callers import ALL
from headway.serve.source import Caller, DaemonSource
from headway.service import protocol as p

FOUND = WhatIfReport("easy", 5.0, CourseReport(("fcfs",), 1), CourseReport(("easy",), 1), 1, same=1)
ANSWER = p.Reply("accepted", found=FOUND, as_of=4.0)
PATH = "/v1/what-if"


def client(told: Any, *scopes: str) -> TestClient:
    return client_of(make_app(told, ByHeader(*(scopes or ALL))), {"test-user": "root"})


def test_it_is_the_sockets_request() -> None:
    told = Told(ANSWER)
    answer = client(told).post(PATH, json={"policy": "easy", "options": {"bookings": 3}, "most": 7})
    assert told.asked == [(p.WhatIf("easy", '{"bookings":3}', 7), Caller("root", ALL))]
    assert answer.status_code == 200
    assert answer.json()["as_of"] == 4.0 and answer.json()["data"]["same"] == 1
    client(told).post(PATH, json={"policy": "easy"})
    assert told.asked[-1][0] == p.WhatIf("easy")


@pytest.mark.parametrize("scopes", [("read",), ("read", "user")])
def test_a_way_without_the_scope_of_operators_is_refused(scopes: tuple[str, ...]) -> None:
    told = Told(ANSWER)
    answer = client(told, *scopes).post(PATH, json={"policy": "easy"})
    assert answer.status_code == 403 and "'operator'" in answer.text
    assert not told.asked


@pytest.mark.parametrize(("outcome", "code"), [("unknown", 400), ("refused", 403), ("failed", 503)])
def test_why_there_is_none_is_the_status_code(outcome: str, code: int) -> None:
    answer = client(Told(p.Reply(outcome, "why <script>"))).post(PATH, json={"policy": "easy"})
    assert (answer.status_code, answer.json()["detail"]) == (code, "why <script>")


@pytest.mark.parametrize(
    "body",
    ["", "{", "[]", "null", '{"policy": ""}', '{"policy": 7}', '{"policy": "easy", "options": []}',
     '{"policy": "easy", "most": -1}', '{"policy": "easy", "most": 5001}', '{"policy": "easy", "user": "x"}',
     '{"policy": "' + "x" * 65 + '"}', '{"policy": "easy", "options": {"a": ' + "[" * 10_000, "\xff",
     '{"policy": "easy", "options": {"a": "' + "x" * 13_000 + '"}}'],
)  # fmt: skip
def test_what_is_no_request_is_not_asked(body: str) -> None:
    told = Told(ANSWER)
    headers = {"content-type": "application/json"}
    answer = client(told).post(PATH, content=body.encode("latin-1"), headers=headers)
    assert answer.status_code == 400
    assert not told.asked


def test_a_body_is_not_large_and_no_form_of_another_site() -> None:
    told = Told(ANSWER)
    headers = {"content-type": "application/json"}
    assert client(told).post(PATH, content=b" " * 16_385, headers=headers).status_code == 413
    assert client(told).post(PATH, content=b"{}", headers={"content-type": "text/plain"}).status_code == 415
    assert client(told).get(PATH).status_code == 405
    assert not told.asked


class Endless:
    """Never answers; says whether it was given up."""

    def __init__(self) -> None:
        self.asked, self.given_up = 0, 0

    async def ask(self, request: Any, caller: Caller) -> p.Reply:
        self.asked += 1
        try:
            await asyncio.sleep(10 * HANG)
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        return ANSWER


@pytest.mark.waits
def test_it_is_given_up_when_its_client_goes_away(tmp_path: Path) -> None:
    source = Endless()

    class Root:
        async def caller(self, request: Request) -> Caller:
            return Caller("root", ALL)

    path = tmp_path / "web.sock"
    with served(make_app(source, Root()), path):
        transport = httpx.HTTPTransport(uds=str(path))
        patience = httpx.Timeout(HANG, read=0.5)
        asking = httpx.Client(transport=transport, base_url="http://localhost", timeout=patience)
        with asking, pytest.raises(httpx.ReadTimeout):
            asking.post(PATH, json={"policy": "easy"})
        until(lambda: source.asked == source.given_up == 1, "it was given up")


@pytest.mark.waits
def test_the_daemon_is_hung_up_on(tmp_path: Path) -> None:
    """A source that is given up closes its connection, by which the daemon knows."""

    async def run() -> bytes:
        heard = asyncio.get_running_loop().create_future()

        async def daemon(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readline()
            asked.set()
            heard.set_result(await reader.read())
            writer.close()

        asked = asyncio.Event()
        server = await asyncio.start_unix_server(daemon, tmp_path / "d.sock")
        async with server:
            task = asyncio.ensure_future(
                DaemonSource(tmp_path / "d.sock").ask(p.WhatIf("easy"), Caller("root", ALL))
            )
            await asked.wait()
            task.cancel()
            return await asyncio.wait_for(heard, HANG)  # type: ignore[no-any-return]

    assert asyncio.run(run()) == b""


def test_the_client_has_a_method_for_it(tmp_path: Path) -> None:
    class Root:
        async def caller(self, request: Request) -> Caller:
            return Caller("root", ALL)

    told = Told(ANSWER)
    with served(make_app(told, Root()), tmp_path / "web.sock"):
        cluster = Client(f"unix:{tmp_path / 'web.sock'}", token="x")
        assert cluster.what_if("easy", {"bookings": 3}, most=7) == FOUND
        assert told.asked[0][0] == p.WhatIf("easy", '{"bookings":3}', 7)
        told.reply = p.Reply("unknown", "what-if: policy: no plugin is called 'x'")
        with pytest.raises(Refused, match="no plugin is called 'x'"):
            cluster.what_if("x")
