"""Resources over HTTP: each is a request of the local socket, in the asking user's name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from starlette.requests import Request
from starlette.testclient import TestClient

from headway.errors import Failure
from headway.inquiry.reports import JobPage, JobReport
from headway.serve.app import make_app
from headway.serve.resources import RESOURCES
from headway.serve.source import Caller
from headway.service import protocol as p

ALICE = Caller("alice")


@dataclass
class Told:
    """A source that says one thing, and what it was asked."""

    reply: p.Reply | Failure
    asked: list[tuple[Any, Caller]] = field(default_factory=list)

    async def ask(self, request: p.AnyRequest, caller: Caller) -> p.Reply:
        self.asked.append((request, caller))
        if isinstance(self.reply, Failure):
            raise self.reply
        return self.reply


class ByHeader:
    async def caller(self, request: Request) -> Caller | None:
        user = request.headers.get("test-user")
        return Caller(user) if user else None


def client(source: Told, user: str = "alice") -> TestClient:
    return TestClient(make_app(source, ByHeader()), headers={"test-user": user} if user else {})


JOBS = JobPage((JobReport("7", "main", "pending", 4, 60.0, 60.0, 1.0, name="<b>x</b>"),))


def test_a_resource_is_a_request_in_the_users_name() -> None:
    source = Told(p.Reply("accepted", "only your own jobs are shown", found=JOBS, as_of=5.0))
    answer = client(source).get("/v1/jobs?pool=main&count=3")
    assert source.asked == [(p.Jobs(pool="main", count=3), ALICE)]
    assert answer.status_code == 200
    told = answer.json()
    assert (told["as_of"], told["remark"]) == (5.0, "only your own jobs are shown")
    assert told["data"]["jobs"][0]["name"] == "<b>x</b>"


def test_a_part_of_the_path_is_a_field() -> None:
    source = Told(p.Reply("unknown", "no job with the id '9'"))
    answer = client(source).get("/v1/jobs/9")
    assert source.asked == [(p.Explain("9"), ALICE)]
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json() == {"title": "Not there", "status": 404, "detail": "no job with the id '9'"}


@pytest.mark.parametrize(
    ("path", "code", "said"),
    [
        ("/v1/jobs?count=x", 400, "$.count"),
        ("/v1/jobs?colour=red", 400, "colour"),
        ("/v1/jobs?count=0", 400, ">= 1"),
    ],
)
def test_what_is_no_request_is_not_asked(path: str, code: int, said: str) -> None:
    source = Told(p.Reply("accepted", found=JOBS))
    answer = client(source).get(path)
    assert answer.status_code == code and said in answer.json()["detail"]
    assert not source.asked


def test_nobody_and_no_daemon() -> None:
    source = Told(Failure("no daemon answers at x"))
    assert client(source, "").get("/v1/status").status_code == 401
    assert not source.asked
    answer = client(source).get("/v1/status")
    assert (answer.status_code, answer.json()["detail"]) == (503, "no daemon answers at x")


def test_every_question_of_the_socket_is_a_resource() -> None:
    questions = {p.Status, *p.Question.__args__}
    assert {resource.request for resource in RESOURCES} == questions
