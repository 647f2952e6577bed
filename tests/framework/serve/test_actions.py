"""Actions over HTTP: the socket's requests, once each, in the user's name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from starlette.responses import Response
from starlette.testclient import TestClient
from web import ByHeader, Told
from web import client as client_of

from headway.errors import Failure
from headway.serve.actions import KEY_HEADER, Replays
from headway.serve.app import make_app
from headway.serve.problems import problem
from headway.serve.source import Caller, NotAsked
from headway.service import protocol as p

DONE = p.Reply("accepted", "until 14:30")
ELASTIC = {"job": "7", "command": "ET", "amount": 60}
PATH = "/v1/actions/elastic"


def client(told: Told, *scopes: str, user: str = "alice") -> TestClient:
    return client_of(make_app(told, ByHeader(*(scopes or ("user",)))), {"test-user": user})


@pytest.mark.parametrize(
    ("name", "body", "asked"),
    [
        ("elastic", ELASTIC, p.Elastic("7", "ET", 60)),
        ("elastic", {"request": "elastic", **ELASTIC}, p.Elastic("7", "ET", 60)),
        ("reserve", {"start": 5e9, "duration": 60, "nodes": 2}, p.Reserve(5e9, 60, 2)),
        ("unreserve", {"reservation": "r1"}, p.Unreserve("r1")),
        ("plugin", {"plugin": "metajobs", "verb": "cancel"}, p.Plugin("metajobs", "cancel")),
    ],
    ids=str,
)  # fmt: skip
def test_an_action_is_the_sockets_request(name: str, body: dict[str, Any], asked: Any) -> None:
    told = Told(DONE)
    answer = client(told, "user", "operator").post(f"/v1/actions/{name}", json=body)
    assert told.asked == [(asked, Caller("alice", frozenset({"user", "operator"})))]
    assert (answer.status_code, answer.json()) == (200, {"outcome": "accepted", "reason": "until 14:30"})


@pytest.mark.parametrize(
    ("outcome", "code"), [("in part", 200), ("waiting", 202), ("refused", 403), ("failed", 503)]
)
def test_what_became_of_it_is_the_status_code(outcome: str, code: int) -> None:
    answer = client(Told(p.Reply(outcome, "why"))).post(PATH, json=ELASTIC)
    assert answer.status_code == code
    assert "why" in answer.text


@pytest.mark.parametrize(
    "body",
    ["", "{", "[]", "7", "null", '"x"', '{"job": "7"}', '{"job": 7, "command": "ET", "amount": 60}', "\xff",
     '{"job": "7", "command": "XX", "amount": 60}', '{"job": "7", "command": "ET", "amount": -1}',
     '{"job": "7", "command": "ET", "amount": 1e400}',
     '{"job": "7", "command": "ET", "amount": 60, "user": "root"}',
     '{"request": "status"}', "[" * 10_000, '{"job": "", "command": "ET", "amount": 60}'],
)  # fmt: skip
def test_what_is_no_request_is_not_asked(body: str) -> None:
    told = Told(DONE)
    headers = {"content-type": "application/json"}
    answer = client(told).post(PATH, content=body.encode("latin-1"), headers=headers)
    assert answer.status_code == 400
    assert not told.asked


def test_a_body_is_not_large() -> None:
    told = Told(DONE)
    headers = {"content-type": "application/json"}
    asking = client(told)
    assert asking.post(PATH, content=b" " * 16_385, headers=headers).status_code == 413
    pieces = (b" " * 1000 for _ in range(17))
    assert asking.post(PATH, content=pieces, headers=headers).status_code == 413
    lied = {**headers, "content-length": "-1"}
    assert asking.post(PATH, content=b"{}", headers=lied).status_code == 413
    assert not told.asked


@pytest.mark.parametrize(("scopes", "user", "code"), [(("read",), "alice", 403), (("user",), "", 401)])
def test_who_may_not_act_does_not(scopes: tuple[str, ...], user: str, code: int) -> None:
    told = Told(DONE)
    assert client(told, *scopes, user=user).post(PATH, json=ELASTIC).status_code == code
    assert not told.asked


def test_the_same_request_again_is_not_done_again() -> None:
    told = Told(DONE)
    asking = client(told)
    answers = [asking.post(PATH, json=ELASTIC, headers={KEY_HEADER: "k1"}) for _ in range(3)]
    assert len(told.asked) == 1
    assert {answer.text for answer in answers} == {answers[0].text}
    asking.post(PATH, json=ELASTIC, headers={KEY_HEADER: "k2"})
    asking.post(PATH, json=ELASTIC)
    asking.post(PATH, json=ELASTIC)
    assert len(told.asked) == 4


def test_a_key_is_one_users_and_one_requests() -> None:
    told = Told(DONE)
    app = make_app(told, ByHeader("user"))
    for user in ("alice", "bob"):
        client_of(app, {"test-user": user}).post(PATH, json=ELASTIC, headers={KEY_HEADER: "k"})
    assert [caller.user for _, caller in told.asked] == ["alice", "bob"]
    asking = client_of(app, {"test-user": "alice"})
    other = asking.post(PATH, json={**ELASTIC, "amount": 61}, headers={KEY_HEADER: "k"})
    assert other.status_code == 409
    elsewhere = asking.post("/v1/actions/unreserve", json={"reservation": "r"}, headers={KEY_HEADER: "k"})
    assert elsewhere.status_code == 409
    assert len(told.asked) == 2
    assert asking.post(PATH, json=ELASTIC, headers={KEY_HEADER: "k" * 129}).status_code == 400


def test_a_daemon_that_was_not_reached_may_be_asked_again() -> None:
    told = Told(NotAsked("no daemon answers"))
    asking = client(told)
    assert asking.post(PATH, json=ELASTIC, headers={KEY_HEADER: "k"}).status_code == 503
    told.reply = DONE
    assert asking.post(PATH, json=ELASTIC, headers={KEY_HEADER: "k"}).status_code == 200


def test_a_daemon_that_went_away_meanwhile_is_not_asked_again() -> None:
    """It may have done it."""
    told = Told(Failure("the daemon ended before it answered"))
    asking = client(told)
    first = asking.post(PATH, json=ELASTIC, headers={KEY_HEADER: "k"})
    assert first.status_code == 503 and "not known whether" in first.json()["detail"]
    told.reply = DONE
    assert asking.post(PATH, json=ELASTIC, headers={KEY_HEADER: "k"}).status_code == 503
    assert len(told.asked) == 1


@dataclass
class Slow:
    """Work that ends when it is told to."""

    done: asyncio.Event = field(default_factory=asyncio.Event)
    begun: int = 0

    async def __call__(self) -> Response:
        self.begun += 1
        await self.done.wait()
        return problem(400, "done")


def run(what: Callable[[Replays, Slow], Any], **given: Any) -> None:
    async def all_of() -> None:
        await what(Replays(**given), Slow())

    asyncio.run(all_of())


def test_a_replay_waits_for_the_first() -> None:
    async def both(replays: Replays, slow: Slow) -> None:
        asked = [asyncio.ensure_future(replays.once("alice", "k", b"x", slow)) for _ in range(2)]
        await asyncio.sleep(0)
        slow.done.set()
        assert [(await one).body for one in asked] == [(await asked[0]).body] * 2
        assert slow.begun == 1

    run(both)


def test_what_a_client_began_is_ended_without_it() -> None:
    async def goes_away(replays: Replays, slow: Slow) -> None:
        asked = asyncio.ensure_future(replays.once("alice", "k", b"x", slow))
        while not slow.begun:
            await asyncio.sleep(0)
        asked.cancel()
        slow.done.set()
        assert (await replays.once("alice", "k", b"x", slow)).status_code == 400
        assert slow.begun == 1

    run(goes_away)


def test_keys_are_forgotten_after_a_while_and_beyond_a_number() -> None:
    now = [0.0]

    async def many(replays: Replays, slow: Slow) -> None:
        slow.done.set()
        for key in ("a", "b", "c", "a"):
            await replays.once("alice", key, b"x", slow)
        assert slow.begun == 4
        now[0] = 61.0
        await replays.once("alice", "a", b"x", slow)
        assert slow.begun == 5

    run(many, most=2, lasts=60.0, clock=lambda: now[0])


def test_a_user_pushes_out_none_but_the_own_keys() -> None:
    async def many(replays: Replays, slow: Slow) -> None:
        slow.done.set()
        await replays.once("alice", "a", b"x", slow)
        for number in range(7):
            await replays.once("mallory", f"{number}", b"x", slow)
        assert slow.begun == 8
        await replays.once("alice", "a", b"x", slow)
        await replays.once("mallory", "6", b"x", slow)
        assert slow.begun == 8
        await replays.once("mallory", "0", b"x", slow)
        assert slow.begun == 9

    run(many, most_each=3)


def test_where_there_are_too_many_keys_the_user_with_most_of_them_gives_one_up() -> None:
    async def many(replays: Replays, slow: Slow) -> None:
        slow.done.set()
        for user, key in (("alice", "a"), ("mallory", "b"), ("mallory", "c"), ("bob", "d")):
            await replays.once(user, key, b"x", slow)
        assert slow.begun == 4
        for user, key in (("alice", "a"), ("mallory", "c"), ("bob", "d")):
            await replays.once(user, key, b"x", slow)
        assert slow.begun == 4
        await replays.once("mallory", "b", b"x", slow)
        assert slow.begun == 5

    run(many, most=3)


def test_nothing_is_kept_of_a_user_whose_keys_are_forgotten() -> None:
    now = [0.0]

    async def many(replays: Replays, slow: Slow) -> None:
        slow.done.set()
        for number in range(20):
            await replays.once(f"user{number}", "a", b"x", slow)
        now[0] = 61.0
        await replays.once("alice", "a", b"x", slow)
        assert replays.known == 1

    run(many, lasts=60.0, clock=lambda: now[0])
