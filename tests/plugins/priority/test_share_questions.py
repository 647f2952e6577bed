"""Shares and priorities as the daemon tells them: to each user what is theirs, and without an effect."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import msgspec
import pytest
from building import described, plugged

from headway import cli
from headway.cli import asking, common
from headway.errors import UserError
from headway.events import JobEnded, JobStarted, JobSubmitted
from headway.model import ClusterDescription
from headway.model.questions import Question
from headway.scheduler import Scheduler
from headway.service import Inbox, Peer, server
from headway.service.answers import Answers
from headway.service.protocol import Reply, Report
from headway_plugins.policies.easy import Easy
from headway_plugins.priority import reports
from headway_plugins.priority.classic import Classic, ClassicOptions
from headway_plugins.priority.fair_tree import FairTree, FairTreeOptions
from headway_plugins.priority.multifactor import Multifactor, MultifactorOptions
from headway_plugins.priority.reports import Priorities, Shares
from headway_plugins.priority.windows import Windows, WindowsOptions

ACCOUNTS = {
    "physics": {"users": {"ann": 1, "bob": 1}},
    "chemistry": {"users": {"eve": 2}},
}
KINDS = [(FairTree, FairTreeOptions), (Classic, ClassicOptions), (Windows, WindowsOptions)]
WEIGHTS = {"fairshare": 1000, "association": 10, "age": 100}


def running(kind: Any = FairTree, options: Any = FairTreeOptions) -> Scheduler:
    """Four processors: ann's job has run, bob's runs, and four jobs wait, one of a user that is new."""
    plugins = [
        kind(options(accounts=ACCOUNTS)),
        Multifactor(MultifactorOptions(weights=WEIGHTS, period=100.0)),
        Easy(),
    ]
    scheduler = Scheduler(ClusterDescription.flat(4), plugged(*plugins))
    first = described("1", 4, 100.0, user="ann", account="physics")
    scheduler.step(0.0, [JobSubmitted(0.0, first)])
    scheduler.step(0.0, [JobStarted(0.0, "1")])
    second = described("2", 4, 100.0, user="bob", account="physics", submit=5.0)
    scheduler.step(5.0, [JobSubmitted(5.0, second)])
    scheduler.step(50.0, [JobEnded(50.0, "1")])
    scheduler.step(50.0, [JobStarted(50.0, "2")])
    waits = [("3", "ann"), ("4", "eve"), ("5", "bob"), ("6", "zoe")]
    jobs = [described(name, 4, 100.0, user=user, submit=60.0) for name, user in waits]
    scheduler.step(60.0, [JobSubmitted(60.0, job) for job in jobs])
    return scheduler


def asked(scheduler: Scheduler, name: str, user: str = "", text: str = "") -> Any:
    """The answer as a client reads it; ``user``: all may be seen without one."""
    found = scheduler.inform.first(Question(name, text, user, not user), scheduler.state)
    return msgspec.json.decode(msgspec.json.encode(found), type=Shares if name == "shares" else Priorities)


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_an_operator_sees_all_shares_and_a_user_the_own_line_to_the_root(kind: Any, options: Any) -> None:
    scheduler = running(kind, options)
    rows = {(row.account, row.user): row for row in asked(scheduler, "shares").rows}
    assert {("root", ""), ("physics", "ann"), ("physics", "bob"), ("chemistry", "eve")} < rows.keys()
    assert rows["physics", "ann"].usage > rows["physics", "bob"].usage > 0
    # Bob's job has 90 s of 100 to go, on 4 processors.
    assert rows["physics", "bob"].minutes_running["cpu"] == rows["root", ""].minutes_running["cpu"] == 6
    own = asked(scheduler, "shares", "bob").rows
    assert [(row.account, row.user) for row in own] == [("root", ""), ("physics", ""), ("physics", "bob")]
    assert list(own) == [rows[row.account, row.user] for row in own]
    assert [row.account for row in asked(scheduler, "shares", "nobody").rows] == ["root"]


def test_priorities_are_the_sum_of_what_is_told_of_them() -> None:
    found = asked(running(), "priority")
    assert [job.id for job in found.jobs] == ["3", "4", "5", "6"] and found.weights == WEIGHTS
    for job in found.jobs:
        weighted = sum(WEIGHTS[name] * value for name, value in job.factors.items())
        assert job.priority == pytest.approx(weighted - job.nice) and job.factors["fairshare"] > 0
    assert found.jobs[1].priority > found.jobs[0].priority


def test_a_user_sees_the_own_jobs_and_a_foreign_job_is_as_one_that_is_not_there() -> None:
    scheduler = running()
    assert [job.id for job in asked(scheduler, "priority", "eve").jobs] == ["4"]
    assert [job.id for job in asked(scheduler, "priority", "eve", '{"job": "4"}').jobs] == ["4"]
    said = []
    for job in ("3", "99"):
        with pytest.raises(UserError) as refusal:
            asked(scheduler, "priority", "eve", f'{{"job": "{job}"}}')
        said.append(str(refusal.value).replace(job, "J"))
    assert said == ["no job of yours with the id 'J' waits"] * 2


@pytest.mark.parametrize("name", ["shares", "priority"])
def test_pages_follow_each_other(name: str) -> None:
    scheduler = running()
    pages = [asked(scheduler, name, "", '{"count": 3}')]
    while pages[-1].next is not None:
        pages.append(asked(scheduler, name, "", f'{{"count": 3, "first": {pages[-1].next}}}'))
    whole = asked(scheduler, name)
    field = "rows" if name == "shares" else "jobs"
    assert [one for page in pages for one in getattr(page, field)] == list(getattr(whole, field))
    assert len(pages) > 1


@pytest.mark.parametrize("text", ["{", '{"count": 0}', '{"count": 501}', '{"more": 1}', "[]"])
@pytest.mark.parametrize("name", ["shares", "priority"])
def test_a_text_that_says_something_else_is_refused(name: str, text: str) -> None:
    with pytest.raises(UserError, match=f"the question '{name}'"):
        asked(running(), name, "ann", text)


def test_a_question_of_another_name_is_nobodys() -> None:
    scheduler = running()
    assert scheduler.inform.first(Question("weather", "", "ann", True), scheduler.state) is None


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_asking_has_no_effect(kind: Any, options: Any) -> None:
    """What was asked is not in the journal: a run that was asked decides as one that was not."""
    quiet, asked_often = running(kind, options), running(kind, options)
    untold = len(asked_often.state.notices)

    def ask() -> None:
        for name in ("shares", "priority"):
            asked(asked_often, name)
            asked(asked_often, name, "zoe")

    before = copy.deepcopy(asked_often.checkpoint())
    ask()
    assert asked_often.checkpoint() == before and len(asked_often.state.notices) == untold
    later = 86400.0 * 9
    for now, event in (
        (155.0, JobEnded(150.0, "2")),
        (later, JobSubmitted(later, described("7", user="yann"))),
    ):
        told = [one.step(now, [event]) for one in (quiet, asked_often)]
        assert told[0] == told[1]
        ask()
        assert quiet.checkpoint() == asked_often.checkpoint()
        assert quiet.state.notices == asked_often.state.notices


class Daemon(Inbox):
    """Answers each question from a scheduler, as a daemon does between two steps."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__(lambda: None, Report("drive", "c", 1, 0.0), clock=time.time)
        self.scheduler, self.answers = scheduler, Answers(private=True)

    def ask(self, request: Any, peer: Peer) -> Future[Reply]:
        future: Future[Reply] = Future()
        future.set_result(self.answers.reply(request, peer, self.scheduler))
        return future


@pytest.fixture
def user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[str], None]]:
    """Asks as this user, who can read no configuration, at the socket of the daemon's unit."""
    names = {"uid": "eve"}
    monkeypatch.setattr(server, "user_name", lambda _: names["uid"])
    monkeypatch.setattr(common, "CONFIGS", (tmp_path / "none.yaml",))
    monkeypatch.delenv("HEADWAY_CONFIG", raising=False)
    monkeypatch.setattr(asking, "SOCKET", tmp_path / "s.sock")

    def be(name: str) -> None:
        names["uid"] = name

    with server.Server(tmp_path / "s.sock", Daemon(running()), credentials=lambda _: 65000):
        yield be


def test_a_user_without_a_configuration_is_told_what_is_theirs(user: Any, capsys: Any) -> None:
    cli.main(["shares", "--json"])
    said = capsys.readouterr()
    rows = msgspec.json.decode(said.out, type=Shares).rows
    assert [(row.account, row.user) for row in rows] == [
        ("root", ""),
        ("chemistry", ""),
        ("chemistry", "eve"),
    ]
    assert said.err == "only your own jobs are shown\n"
    cli.main(["priority", "-P"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Job|User|Priority|fairshare|association|age|nice"
    assert [line.split("|")[:2] for line in lines[1:]] == [["4", "eve"]]
    user("nobody")
    cli.main(["priority", "--json"])
    assert msgspec.json.decode(capsys.readouterr().out, type=Priorities).jobs == ()


def test_a_job_of_another_user_is_not_there(user: Any, capsys: Any) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["priority", "3", "--json"])
    said = capsys.readouterr()
    assert (end.value.code, said.out) == (2, "")
    assert said.err == "headway: no job of yours with the id '3' waits\n"


def test_what_is_long_is_asked_page_by_page(user: Any, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    short = reports.Wanted
    monkeypatch.setattr(reports, "Wanted", lambda first, **more: short(first, 1, **more))
    user("ann")
    cli.main(["shares", "--json"])
    rows = msgspec.json.decode(capsys.readouterr().out, type=Shares).rows
    assert [row.user for row in rows] == ["", "", "ann"]
