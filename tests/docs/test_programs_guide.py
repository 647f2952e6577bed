"""docs/operators/programs.md: its program runs, and what it asks for is there."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from journals import begin
from starlette.requests import Request as Asked
from web import JOBS, Told, served

from headway.adapter import Outcome
from headway.client import Client
from headway.decisions import Start
from headway.events import JobEnded, JobStarted, JobSubmitted
from headway.inquiry.reports import HoleList, JobPage, TrialReport
from headway.journal import Journal
from headway.model import JobDescription, Request
from headway.serve.app import make_app
from headway.serve.callers import ALL
from headway.serve.history import History
from headway.serve.source import Caller
from headway.serve.stream import Item
from headway.service import protocol as p

PAGE = (Path(__file__).parents[2] / "docs" / "operators" / "programs.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
SOCKET = "/run/headway-web/web.sock"


class Somebody:
    async def caller(self, request: Asked) -> Caller | None:
        return Caller("alice", ALL)


class Cluster(Told):
    """Answers each question, and tells of one decision until its reader has gone."""

    async def ask(self, request: p.AnyRequest, caller: Caller) -> p.Reply:
        await super().ask(request, caller)
        match request:
            case p.Status():
                return p.Reply("accepted", status=p.Report("drive", "tc", 1, 0.0))
            case p.Jobs():
                return p.Reply("accepted", found=JOBS if request.first == 0 else JobPage(()))
            case p.When():
                return p.Reply("accepted", found=TrialReport("main", "now", 5.0))
            case p.Holes():
                return p.Reply("accepted", found=HoleList(()))
            case p.Explain():
                return p.Reply("accepted", found=p.Explained("4711", ("Job 4711 waits.",)))
        return p.Reply("refused", "no enabled plugin serves such requests")

    async def stream(self, caller: Caller, after: int | None = None) -> AsyncIterator[Item]:
        if after is None:
            yield Item(1, "decision", msgspec.Raw(b'{"kind":"Start"}'))


def past_of_a_job(place: Path) -> None:
    job = JobDescription("4711", 1.0, Request(1, 60.0), user="alice")
    with Journal.open(place) as journal:
        begin(journal, 1.0)
        journal.record_events(1, 2.0, [JobSubmitted(1.0, job)])
        journal.record_decisions(1, [Start("4711", (), "first in the queue")])
        journal.record_outcomes(1, [Outcome(True)])
        journal.record_events(2, 9.0, [JobStarted(3.0, "4711"), JobEnded(8.0, "4711")])


class Over(Exception):
    """The loop of the page has no end."""


@pytest.fixture
def said(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    def ends(_: float) -> None:
        raise Over

    source = Cluster()
    path, place = tmp_path / "web.sock", tmp_path / "journal.db"
    past_of_a_job(place)
    history = History(str(place), lambda _: True)
    with served(make_app(source, Somebody(), history=history), path):
        program = "\n".join(BLOCKS).replace(SOCKET, str(path))
        names: dict[str, Any] = {}
        usual = Client.__init__.__kwdefaults__
        monkeypatch.setattr(Client.__init__, "__kwdefaults__", {**usual, "sleep": ends})
        with pytest.raises(Over):
            exec(compile(program, "programs.md", "exec"), names)
    return capsys.readouterr().out


def test_the_program_of_the_page_runs(said: str) -> None:
    lines = said.splitlines()
    assert lines[0] == "tc drive"
    assert lines[1].startswith("7 <b>x</b>")
    assert "Job 4711 waits." in lines
    assert "now 5.0" in lines
    assert "1.1.0 Start first in the queue True" in lines
    assert "3.0 8.0 completed" in lines
    assert "1 jobs have ended since" in lines
    assert "no enabled plugin serves such requests" in lines
    assert lines[-1] == "1 {'kind': 'Start'}"


def test_addresses_of_the_page_are_resources() -> None:
    from headway.serve.openapi import document

    there = set(document("/v1")["paths"])
    named = set(re.findall(r"[t/](/v1/[a-z./]+)", PAGE)) - {"/v1/actions/elastic", "/v1/plugins/"}
    assert named and named <= there
