"""Resources over HTTP: each is a request of the local socket, in the asking user's name."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient
from web import JOBS, ByHeader, Told
from web import client as client_of

from headway.errors import Failure
from headway.serve.app import make_app
from headway.serve.resources import RESOURCES
from headway.serve.sorting import JobsInOrder
from headway.serve.source import Caller
from headway.service import protocol as p

ALICE = Caller("alice")


def client(source: Told, user: str = "alice") -> TestClient:
    return client_of(make_app(source, ByHeader()), {"test-user": user} if user else None)


def test_a_resource_is_a_request_in_the_users_name() -> None:
    source = Told(p.Reply("accepted", "only your own jobs are shown", found=JOBS, as_of=5.0))
    answer = client(source).get("/v1/jobs?pool=main&count=3")
    assert source.asked == [(JobsInOrder(pool="main", count=3), ALICE)]
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
        ("/v1/jobs?count=1&count=2", 400, "`count` once"),
        ("/v1/jobs/7?job=8", 400, "`job` once"),
        ("/v1/holes?gres_per_node=gpu", 400, "NAME:COUNT"),
        ("/v1/holes?gres_per_node=gpu:x", 400, "gres_per_node"),
        ("/v1/holes?seconds=nan", 400, "seconds"),
        ("/v1/holes?seconds=1e999", 400, "seconds"),
        ("/v1/jobs?request=status", 400, "request"),
    ],
)
def test_what_is_no_request_is_not_asked(path: str, code: int, said: str) -> None:
    source = Told(p.Reply("accepted", found=JOBS))
    answer = client(source).get(path)
    assert answer.status_code == code and said in answer.json()["detail"]
    assert not source.asked


def test_a_list_is_a_field_several_times() -> None:
    source = Told()
    client(source).get("/v1/holes?nodes=2&features=a&features=b&gres_per_node=gpu:a100:4&licences=x:1")
    wanted = p.Holes(nodes=2, features=("a", "b"), gres_per_node=(("gpu:a100", 4),), licences=(("x", 1),))
    assert source.asked == [(wanted, ALICE)]


def test_nobody_and_no_daemon() -> None:
    source = Told(Failure("no daemon answers at x"))
    assert client(source, "").get("/v1/status").status_code == 401
    assert not source.asked
    answer = client(source).get("/v1/status")
    assert (answer.status_code, answer.json()["detail"]) == (503, "no daemon answers at x")


def test_every_question_of_the_socket_is_a_resource() -> None:
    questions = {*p.AtOnce.__args__, *p.Question.__args__}
    named = {p.Jobs if one.request is JobsInOrder else one.request for one in RESOURCES}
    # What-if costs the daemon a process, so it is no GET.
    assert named == questions - {p.WhatIf}


def test_the_user_is_told_as_whom_it_is_known() -> None:
    assert client(Told()).get("/v1/self").json() == {"user": "alice", "scopes": ["read"]}


def test_a_way_that_allows_no_reading_reads_nothing() -> None:
    source = Told()
    asking = client_of(make_app(source, ByHeader("user")), {"test-user": "alice"})
    assert asking.get("/v1/jobs").status_code == 403
    assert not source.asked


@pytest.mark.parametrize("path", ["/v1/none", "/v1", "/v1/", "/none", "/v1/jobs/7/8"])
def test_what_is_not_there_is_a_problem_too(path: str) -> None:
    answer = client(Told()).get(path)
    assert answer.status_code == 404
    assert answer.json()["title"] == "Not there"
    assert client(Told()).post("/v1/jobs", json={}).status_code == 405
