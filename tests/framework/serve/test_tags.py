"""What a client has already is neither made nor sent again, and is nothing for another user."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from building import described, plugged
from followed import OPERATOR, Followed
from starlette.testclient import TestClient
from web import ByHeader
from web import client as client_of

from headway.events import JobEnded, JobSubmitted
from headway.model import ClusterDescription
from headway.scheduler import Scheduler
from headway.serve.app import make_app
from headway.serve.pictured import PictureSource
from headway.serve.source import DaemonSource
from headway_plugins.policies.easy import Easy

KEPT = ["status", "jobs", "jobs?sort=-waited", "nodes", "pools", "bookings", "cycle"]


NO_DAEMON = DaemonSource(Path("/none/headway.sock"))


@dataclass
class Served:
    followed: Followed
    source: PictureSource

    def client(self, user: str, *scopes: str) -> TestClient:
        return client_of(make_app(self.source, ByHeader(*scopes)), {"test-user": user})

    def cycle(self, *events: Any) -> None:
        self.followed.cycle(*events)
        self.followed.settle()


@pytest.fixture
def served_picture() -> Served:
    followed = Followed(Scheduler(ClusterDescription.flat(4), plugged(Easy())))
    source = PictureSource(NO_DAEMON)
    source._found(followed.picture)
    found = Served(followed, source)
    found.cycle(
        JobSubmitted(0.0, described("1", 4, 10.0, user="ann")), JobSubmitted(0.0, described("2", 4, 10.0))
    )
    return found


@pytest.mark.parametrize("path", KEPT)
def test_the_same_is_not_sent_again_until_something_changes(served_picture: Served, path: str) -> None:
    asking = served_picture.client("ann")
    first = asking.get(f"/v1/{path}")
    assert first.status_code == 200
    assert first.headers["cache-control"] == "private, no-cache"
    assert first.headers["vary"] == "Authorization, Cookie"
    tag = first.headers["etag"]
    again = asking.get(f"/v1/{path}", headers={"if-none-match": tag})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert again.headers["cache-control"] == "private, no-cache"
    several = asking.get(f"/v1/{path}", headers={"if-none-match": f'"x", {tag.removeprefix("W/")}'})
    assert several.status_code == 304
    for other in ("*", '"x"', "", "W/", tag[:-2]):
        assert asking.get(f"/v1/{path}", headers={"if-none-match": other}).status_code == 200
    served_picture.cycle(JobEnded(1.0, "2"))
    new = asking.get(f"/v1/{path}", headers={"if-none-match": tag})
    assert new.status_code == 200 and new.headers["etag"] != tag


def test_a_tag_is_of_one_user_one_way_and_one_question(served_picture: Served) -> None:
    tags = [
        served_picture.client(user, *scopes).get(f"/v1/jobs{query}").headers["etag"]
        for user in ("ann", "ben", OPERATOR)
        for scopes in (("read",), ("read", "operator"))
        for query in ("", "?count=3", "?sort=start", "?mine=true")
    ]
    assert len(set(tags)) == len(tags)
    mine = served_picture.client("ann").get("/v1/jobs").headers["etag"]
    answer = served_picture.client("ben").get("/v1/jobs", headers={"if-none-match": mine})
    assert answer.status_code == 200 and answer.json()["data"]["jobs"] == []


def test_a_problem_and_what_the_daemon_answers_have_none(served_picture: Served) -> None:
    asking = served_picture.client("ann")
    for path in ("jobs?pool=none", "jobs/1", "holes", "self", "openapi.json"):
        answer = asking.get(f"/v1/{path}", headers={"if-none-match": "*"})
        assert "etag" not in answer.headers and answer.headers["cache-control"] == "no-store"
        assert answer.status_code != 304


def test_another_picture_has_other_tags(served_picture: Served) -> None:
    asking, source = served_picture.client("ann"), served_picture.source
    tags = [asking.get("/v1/jobs").headers["etag"]]
    source.silent_since = 5.0
    tags.append(asking.get("/v1/jobs").headers["etag"])
    source.silent_since = None
    source._found(served_picture.followed.picture)
    tags.append(asking.get("/v1/jobs").headers["etag"])
    other = PictureSource(NO_DAEMON)
    other._found(served_picture.followed.picture)
    tags.append(client_of(make_app(other, ByHeader()), {"test-user": "ann"}).get("/v1/jobs").headers["etag"])
    assert len(set(tags)) == 4
    source.is_current = False
    assert asking.get("/v1/jobs", headers={"if-none-match": tags[2]}).status_code == 503


def test_who_may_not_read_is_not_told_that_nothing_changed(served_picture: Served) -> None:
    tag = served_picture.client("ann").get("/v1/jobs").headers["etag"]
    app = make_app(served_picture.source, ByHeader())
    assert client_of(app).get("/v1/jobs", headers={"if-none-match": tag}).status_code == 401
    refused = served_picture.client("ann", "user").get("/v1/jobs", headers={"if-none-match": tag})
    assert refused.status_code == 403


def test_files_of_the_page_are_asked_for_again_and_not_sent_again(served_picture: Served) -> None:
    asking = served_picture.client("ann")
    for path in ("/", "/js/app.js", "/page.css"):
        first = asking.get(path)
        assert first.headers["cache-control"] == "private, no-cache"
        again = asking.get(path, headers={"if-none-match": first.headers["etag"]})
        assert again.status_code == 304 and again.headers["cache-control"] == "private, no-cache"


def test_sorting_waits_for_the_picture(served_picture: Served) -> None:
    served_picture.source.is_current = False
    asking = client_of(make_app(served_picture.source, ByHeader()), {"test-user": "ann"})
    assert asking.get("/v1/jobs?sort=waited").status_code == 503
    for wrong in (
        "sort=colour",
        "sort=--user",
        "sort=user,name",
        "sort=-",
        "sort=user%00",
        "sort=user&sort=name",
    ):
        assert asking.get(f"/v1/jobs?{wrong}").status_code == 400
