"""The stream: numbered events, resumed by number, for as long as the user may read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from starlette.requests import Request
from web import ByHeader, Told
from web import client as client_of

from headway.errors import Failure
from headway.serve.app import make_app
from headway.serve.source import Caller
from headway.serve.streams import Seats, streamer


@dataclass
class Item:
    number: int
    kind: str
    data: Any


@dataclass
class Streaming(Told):
    """A source with a few items; it fails, or goes on without any, at their end."""

    items: Sequence[Item] = ()
    failure: Failure | None = None
    endless: bool = False
    after: list[tuple[Caller, int | None]] = field(default_factory=list)
    closed: int = 0

    async def stream(self, caller: Caller, after: int | None) -> AsyncIterator[Item]:
        self.after.append((caller, after))
        try:
            for item in self.items:
                if after is None or item.number > after:
                    yield item
            if self.failure is not None:
                raise self.failure
            if self.endless:
                await asyncio.Event().wait()
        finally:
            self.closed += 1


ITEMS = (Item(3, "cycle", {"now": 5.0}), Item(4, "decision", {"job": "a\nb\r\nid: 9", "why": "<script>"}))


def events(text: str) -> list[dict[str, str]]:
    found = []
    for block in text.split("\n\n"):
        lines = [line.partition(": ") for line in block.splitlines() if line and not line.startswith(":")]
        if lines:
            found.append({name: value for name, _, value in lines})
    return found


def test_events_have_numbers_kinds_and_one_line_of_json() -> None:
    source = Streaming(items=ITEMS)
    answer = client_of(make_app(source, ByHeader()), {"test-user": "alice"}).get("/v1/stream")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-store"
    found = events(answer.text)
    assert [(one["id"], one["event"]) for one in found] == [("3", "cycle"), ("4", "decision")]
    assert json.loads(found[1]["data"]) == ITEMS[1].data
    assert source.after == [(Caller("alice"), None)]
    assert source.closed == 1


@pytest.mark.parametrize(("headers", "query"), [({"last-event-id": "3"}, ""), ({}, "?after=3")])
def test_a_client_goes_on_where_it_was(headers: dict[str, str], query: str) -> None:
    source = Streaming(items=ITEMS)
    asking = client_of(make_app(source, ByHeader()), {"test-user": "alice", **headers})
    found = events(asking.get(f"/v1/stream{query}").text)
    assert [one["id"] for one in found] == ["4"]


@pytest.mark.parametrize("last", ["x", "-1", "1e3", "9" * 16, "٣", "3.0"])
def test_a_number_is_a_number(last: str) -> None:
    source = Streaming(items=ITEMS)
    answer = client_of(make_app(source, ByHeader()), {"test-user": "alice"}).get(
        "/v1/stream", params={"after": last}
    )
    assert answer.status_code == 400
    assert not source.after


def test_a_source_that_fails_says_so_at_the_end() -> None:
    source = Streaming(items=ITEMS, failure=Failure("no daemon answers"))
    answer = client_of(make_app(source, ByHeader()), {"test-user": "alice"}).get("/v1/stream")
    last = events(answer.text)[-1]
    assert last == {"event": "failed", "data": '{"detail":"no daemon answers"}'}


@pytest.mark.parametrize(("scopes", "user", "code"), [(("user",), "alice", 403), (("read",), "", 401)])
def test_who_may_not_read_gets_no_stream(scopes: tuple[str, ...], user: str, code: int) -> None:
    source = Streaming(items=ITEMS)
    asking = client_of(make_app(source, ByHeader(*scopes)), {"test-user": user} if user else None)
    assert asking.get("/v1/stream").status_code == code
    assert not source.after


def test_a_seat_is_given_back() -> None:
    source, seats = Streaming(items=ITEMS), Seats(1, 1)
    asking = client_of(make_app(source, ByHeader(), seats=seats), {"test-user": "alice"})
    for _ in range(3):
        assert asking.get("/v1/stream").status_code == 200
    assert seats.take("bob")
    assert asking.get("/v1/stream").status_code == 429


def test_seats_are_of_all_and_of_each() -> None:
    seats = Seats(3, 2)
    assert [seats.take(user) for user in ("a", "a", "a", "b", "c")] == [True, True, False, True, False]
    seats.leave("a")
    assert seats.take("c")


class Until:
    """Knows the user a few times."""

    def __init__(self, times: int) -> None:
        self.times = times

    async def caller(self, request: Request) -> Caller | None:
        self.times -= 1
        return Caller("alice") if self.times >= 0 else None


def test_a_stream_ends_when_the_user_may_read_no_more() -> None:
    """As when its token is revoked: at the next sign of life."""
    source, seats = Streaming(items=ITEMS, endless=True), Seats()
    sent: list[bytes] = []

    async def run() -> None:
        scope = {"type": "http", "method": "GET", "path": "/v1/stream", "headers": [], "query_string": b""}
        serve = streamer(source, Until(3), seats, alive=0.01)
        answer = await serve(Request(scope))  # type: ignore[arg-type]

        async def receive() -> Any:
            await asyncio.Event().wait()

        async def send(message: Any) -> None:
            sent.append(message.get("body", b""))

        await asyncio.wait_for(answer(scope, receive, send), 60)  # type: ignore[arg-type]

    asyncio.run(run())
    text = b"".join(sent).decode()
    assert [one["id"] for one in events(text)] == ["3", "4"]
    assert text.count(": alive") == 2
    assert source.closed == 1
    assert seats._taken.total() == 0
