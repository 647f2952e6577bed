"""The client: typed answers, actions once, a stream that goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from journals import fill
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from web import JOBS, Told, served

from headway.client import Client, Event, Refused
from headway.client.connection import Way
from headway.client.events import events_of
from headway.errors import Failure, UserError
from headway.inquiry.reports import JobPage, PoolList
from headway.serve import past
from headway.serve.app import make_app
from headway.serve.callers import ALL
from headway.serve.history import History
from headway.serve.sorting import JobsInOrder
from headway.serve.source import Caller, NotAsked
from headway.service import protocol as p


class ByWord:
    """The token is the user's name."""

    async def caller(self, request: Request) -> Caller | None:
        word = request.headers.get("authorization", "").removeprefix("Bearer ")
        return Caller(word, ALL) if word else None


@dataclass
class Item:
    number: int
    kind: str
    data: Any


@dataclass
class Streaming(Told):
    """Each stream has the next items, and ends."""

    runs: list[list[int]] = field(default_factory=list)
    after: list[int | None] = field(default_factory=list)

    async def stream(self, caller: Caller, after: int | None) -> AsyncIterator[Item]:
        self.after.append(after)
        for number in self.runs.pop(0) if self.runs else []:
            yield Item(number, "cycle", {"now": float(number)})
        raise Failure("it was lost")


Connect = Callable[..., Client]


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[Connect]:
    """A client of an interface with this source."""
    with ExitStack() as stack:

        def begin(source: Any, token: str = "alice", **options: Any) -> Client:
            path = tmp_path / "web.sock"
            stack.enter_context(served(make_app(source, ByWord()), path))
            return Client(f"unix:{path}", token=token, sleep=lambda _: None, **options)

        yield begin


def test_answers_are_the_reports(connect: Connect) -> None:
    told = Told(p.Reply("accepted", "only your own jobs are shown", found=JOBS, as_of=5.0))
    cluster = connect(told)
    page = cluster.jobs(pool="main", mine=True, count=7)
    assert page == JOBS and isinstance(page, JobPage)
    assert told.asked == [(JobsInOrder(pool="main", mine=True, count=7), Caller("alice", ALL))]
    answer = cluster.ask(p.Jobs(), JobPage)
    assert (answer.as_of, answer.remark) == (5.0, "only your own jobs are shown")


def test_every_question_goes_through_as_it_is(connect: Connect) -> None:
    told = Told(p.Reply("accepted", found=PoolList(())))
    cluster = connect(told)
    questions = [
        p.Status(), p.Explain("7[1] y?#%2e"),
        JobsInOrder(name="<b>&=ä", mine=True, sort="-start"), p.Pools(),
        p.Nodes("p", 3, 5), p.Bookings("p"), p.Reservations(1), p.Cycle(), p.Datasets(), p.Starts(),
        p.PluginQuestion("shares", '{"a": "b&c"}'),
        p.Holes("p", 2, features=("a", "b"), gres_per_node=(("gpu:a100", 4),), exclusive=True, seconds=1.5),
        p.When(nodes=3, licences=(("x", 1), ("y", 2)), begin=5e9, smaller=False),
    ]  # fmt: skip
    for question in questions:
        cluster.ask(question, PoolList)
    assert [asked for asked, _ in told.asked] == questions


def test_pages_follow_each_other(connect: Connect, mocker: Any) -> None:
    told = Told(p.Reply("accepted", found=JOBS))
    cluster = connect(told)
    jobs = cluster.all_jobs(pool="main")
    assert [next(jobs).id, next(jobs).id] == ["7", "7"]
    told.reply = p.Reply("accepted", found=JobPage(()))
    assert list(jobs) == []
    assert [asked.first for asked, _ in told.asked] == [0, 1, 2]


def test_what_is_refused_is_told(connect: Connect) -> None:
    told = Told(p.Reply("unknown", "no job with the id '9'"))
    cluster = connect(told)
    with pytest.raises(Refused, match="no job with the id '9'") as refused:
        cluster.explain("9")
    assert refused.value.status == 404
    with pytest.raises(Refused) as refused:
        Client(cluster._way.url, token="").status()
    assert refused.value.status == 401


def test_no_interface_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="cannot be reached"):
        Client(f"unix:{tmp_path / 'none'}").status()


def test_actions(connect: Connect) -> None:
    told = Told(p.Reply("waiting", "for nodes"))
    cluster = connect(told)
    assert cluster.elastic("7", "ET", 60.0) == p.Outcome("waiting", "for nodes")
    cluster.reserve(5e9, 60.0, nodes=2, pool="main")
    cluster.unreserve("r1")
    cluster.act(p.Plugin("metajobs", "cancel", "m1"))
    assert [asked for asked, _ in told.asked] == [
        p.Elastic("7", "ET", 60), p.Reserve(5e9, 60, 2, pool="main"), p.Unreserve("r1"),
        p.Plugin("metajobs", "cancel", "m1"),
    ]  # fmt: skip
    told.reply = p.Reply("refused", "not yours")
    with pytest.raises(Refused, match="not yours"):
        cluster.unreserve("r2")


def test_an_action_without_an_answer_is_sent_again_and_done_once(connect: Connect, mocker: Any) -> None:
    told = Told(p.Reply("accepted", "done"))
    cluster = connect(told)
    real, lost = Way.send, []

    def loses_the_first(*asked: Any) -> Any:
        answer = real(*asked)
        if not lost:
            lost.append(answer.read())
            raise ConnectionResetError("lost")
        return answer

    mocker.patch.object(Way, "send", loses_the_first)
    assert cluster.elastic("7", "ET", 60.0).reason == "done"
    assert lost and len(told.asked) == 1


def test_a_daemon_that_was_away_is_asked_with_the_same_key(connect: Connect) -> None:
    told = Told(NotAsked("no daemon answers"))
    cluster = connect(told)
    request = p.Unreserve("r1")
    with pytest.raises(Refused):
        cluster.act(request, "k")
    told.reply = p.Reply("accepted")
    assert cluster.act(request, "k").outcome == "accepted"


def test_a_stream_goes_on_behind_the_last_event(connect: Connect) -> None:
    source = Streaming(runs=[[1, 2], [], [3]])
    events = connect(source).stream()
    assert [next(events) for _ in range(3)] == [Event(n, "cycle", {"now": float(n)}) for n in (1, 2, 3)]
    assert source.after == [None, 2, 2]
    events.close()  # type: ignore[attr-defined]


def test_a_stream_of_a_user_that_may_not_read_ends(connect: Connect) -> None:
    cluster = connect(Streaming(), token="")
    with pytest.raises(Refused):
        next(cluster.stream())


def test_events_come_whole_or_not_at_all() -> None:
    lines = [b": alive\n", b"\n", b"id: 3\n", b"event: a\n", b"data: {}\n", b"\n", b"id: 4\n", b"data: {}\n"]
    assert list(events_of(lines)) == [Event(3, "a", {})]
    for wrong in ([b"data: {\n", b"\n"], [b"id: x\n", b"data: 1\n", b"\n"]):
        with pytest.raises(Failure, match="expected an event"):
            list(events_of(wrong))


def test_an_answer_of_another_server_is_no_answer(tmp_path: Path) -> None:
    path = tmp_path / "other.sock"
    asking = Client(f"unix:{path}")
    with served(PlainTextResponse("<html>"), path), pytest.raises(Failure, match="an answer of version 1"):
        asking.status()
    with served(PlainTextResponse("<html>", 502), path), pytest.raises(Refused, match="no answer of"):
        asking.status()


@pytest.mark.parametrize(
    "url", ["", "localhost:8642", "ftp://x", "http://", "http://u:p@x", "http://x:y", "unix:x"]
)
def test_a_url_is_one(url: str) -> None:
    with pytest.raises(UserError, match="expected http://HOST:PORT"):
        Client(url)


def test_a_token_does_not_go_where_others_read_it() -> None:
    with pytest.raises(UserError, match="expected https"):
        Client("http://queue.example.org", token="headway_x")
    for url in ("http://127.0.0.1:8642", "https://queue.example.org"):
        Client(url, token="headway_x")
    Client("http://queue.example.org", token="headway_x", plain=True)
    Client("http://queue.example.org", token="")
    with pytest.raises(UserError, match="other characters"):
        Client("https://queue.example.org", token="a\r\nX-Remote-User: root")


def test_the_environment_has_a_token_or_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "token"
    path.write_text("headway_file\n")
    monkeypatch.setenv("HEADWAY_TOKEN_FILE", str(path))
    assert Client("https://x")._token == "headway_file"
    monkeypatch.setenv("HEADWAY_TOKEN", "headway_word")
    assert Client("https://x")._token == "headway_word"
    monkeypatch.delenv("HEADWAY_TOKEN")
    path.unlink()
    with pytest.raises(UserError, match="HEADWAY_TOKEN_FILE"):
        Client("https://x")


def test_certificates_are_checked() -> None:
    import ssl

    context = Way.to("https://queue.example.org").tls
    assert context is not None
    assert context.verify_mode is ssl.CERT_REQUIRED and context.check_hostname


def test_the_past(tmp_path: Path) -> None:
    place, path = tmp_path / "journal.db", tmp_path / "web.sock"
    fill(place, 1.8e9)
    app = make_app(Told(), ByWord(), history=History(str(place), lambda _: True))
    with served(app, path):
        cluster = Client(f"unix:{path}", token="alice", sleep=lambda _: None)
        page = cluster.past.decisions(count=2, oldest_first=True)
        assert [one.decision for one in page.decisions] == ["Start", "Start"] and page.next == "1.1.0"
        more = cluster.past.decisions(after=page.next, oldest_first=True, count=500)
        assert len(more.decisions) == 10 and more.next is None
        everything = list(cluster.past.all_of(past.Decisions(count=5)))
        assert len(everything) == len({one.number for one in everything}) == 12
        assert len(list(cluster.past.all_of(past.Events(count=500)))) == 24
        ended = cluster.past.events(kind="JobEnded", since=0.0, until=1e12, job="earlier0")
        assert [one.job for one in ended.events] == ["earlier0"] * 4
        assert cluster.past.work().jobs == () == tuple(cluster.past.all_of(past.Work()))
        assert [one.outcome for one in cluster.past.job("earlier0").jobs] == ["completed"]
        with pytest.raises(Refused, match="no job with the id 'none'"):
            cluster.past.job("none")
        with pytest.raises(ValueError, match="from"):
            cluster.past.work(since=2.0, until=1.0)
