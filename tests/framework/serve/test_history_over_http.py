"""The past over HTTP: of the own jobs alone, also without a daemon, and with a journal that is not there."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from journals import schema_of
from starlette.testclient import TestClient
from web import ByHeader, Told
from web import client as client_of

from headway.adapter import Outcome
from headway.decisions import Decision, Hold, Start, SwapTiers
from headway.errors import Failure
from headway.events import (
    DecisionFailed,
    Event,
    JobEnded,
    JobRequeued,
    JobStarted,
    JobSubmitted,
    NodeDown,
    PluginAsked,
)
from headway.inquiry.inquiry import HIDDEN
from headway.journal import Journal, RunInfo
from headway.model import ClusterDescription, JobDescription, Request
from headway.serve import past as asking
from headway.serve.app import make_app
from headway.serve.history import Busy, History
from headway.serve.source import Caller

OPERATOR = "root"
ON = (("n1", 4),)


def submitted(time: float, job_id: str, user: str, **more: Any) -> JobSubmitted:
    return JobSubmitted(time, JobDescription(job_id, time, Request(4, 3600.0), "main", "work", user, **more))


def run(place: str, *cycles: tuple[float, list[Event], list[Decision]], message: str = "") -> None:
    with Journal.open(place) as journal:
        journal.begin_run(RunInfo("drive", cycles[0][0], "1", "", 1, ClusterDescription.flat(16)))
        for seq, (now, happened, decided) in enumerate(cycles, 1):
            journal.record_events(seq, now, happened)
            journal.record_decisions(seq, decided)
            journal.record_outcomes(seq, [Outcome(not message, message)] * len(decided))
        journal.end_run("stopped", ended_at=cycles[-1][0])


def recorded(place: str) -> None:
    """Job 1 of ann runs twice, job 2 of ben waits for it; then 1 is an id of ben."""
    run(
        place,
        (100.0, [submitted(90.0, "1", "ann", account="physics"), submitted(95.0, "2", "ben")],
         [Start("1", ON, "fits before job 2"), Hold("2", "behind job 1")]),
        (110.0, [JobStarted(105.0, "1", ON), NodeDown(109.0, "n9", "dust"),
                 PluginAsked(110.0, "k", "metajobs", "cancel", "secret", "ben")],
         [SwapTiers("1", "2", "for job 2")]),
        (200.0, [JobRequeued(190.0, "1", "preempted by job 2")], []),
        (300.0, [JobStarted(290.0, "1", ON), DecisionFailed(299.0, Start("2"), "no node for job 2")], []),
        (400.0, [JobEnded(390.0, "1", "failed", "killed by job 2", 3), JobEnded(391.0, "2", "cancelled")],
         []),
    )  # fmt: skip
    run(place, (900.0, [submitted(890.0, "1", "ben"), JobStarted(899.0, "1", ON)], [Hold("1", "no")]))


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(tmp_path / "journal.db")
        return
    with schema_of(request.getfixturevalue("postgres")) as url:
        yield url


def history(place: str | None, **more: Any) -> History:
    return History(place, lambda caller: caller.user == OPERATOR, **more)


def client(place: str | None, user: str = OPERATOR, **more: Any) -> TestClient:
    app = make_app(Told(Failure("no daemon answers")), ByHeader(), history=history(place, **more))
    return client_of(app, {"test-user": user} if user else None)


def told(place: str, path: str, user: str = OPERATOR) -> Any:
    answer = client(place, user).get(f"/v1/history/{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


# ---------------------------------------------------------------------- what is told


def test_decisions_the_newest_first(place: str) -> None:
    recorded(place)
    answer = client(place, silent_since=lambda: 905.0).get("/v1/history/decisions?count=3").json()
    assert (answer["as_of"], answer["silent_since"]) == (900.0, 905.0) and "remark" not in answer
    hold, swap, other = answer["data"]["decisions"]
    assert hold == {
        "entry": "decision", "number": "2.1.0", "at": 900.0, "decision": "Hold", "job": "1", "user": "ben",
        "reason": "no", "accepted": True,
    }  # fmt: skip
    assert (swap["other_job"], other["job"], other["reason"]) == ("2", "2", "behind job 1")
    rest = told(place, f"decisions?after={answer['data']['next']}")
    assert [one["decision"] for one in rest["decisions"]] == ["Start"] and "next" not in rest
    assert rest["decisions"][0]["placement"] == [["n1", 4]]
    found = told(place, "decisions?oldest_first=true&kind=Hold&from=100&until=900")["decisions"]
    assert [one["number"] for one in found] == ["1.1.1"]


def test_events(place: str) -> None:
    recorded(place)
    found = told(place, "events?job=1&until=900&kind=JobEnded")["events"]
    assert found == [
        {"entry": "event", "number": "1.5.0", "kind": "JobEnded", "at": 390.0, "recorded": 400.0, "job": "1",
         "user": "ann", "detail": "failed: killed by job 2"}
    ]  # fmt: skip
    (down,) = told(place, "events?kind=NodeDown")["events"]
    assert (down["node"], down["detail"]) == ("n9", "dust")


def test_work_is_told_by_its_ends(place: str) -> None:
    recorded(place)
    last, first = told(place, "work")["jobs"]
    assert first == {
        "id": "1", "pool": "main", "processors": 4, "limit": 3600.0, "submitted": 90.0, "user": "ann",
        "account": "physics", "name": "work", "started": 105.0, "ended": 190.0, "placement": [["n1", 4]],
        "outcome": "requeued", "reason": "preempted by job 2", "number": "1.3.0",
    }  # fmt: skip
    assert (last["started"], last["ended"], last["outcome"], last["exit_code"]) == (290.0, 390.0, "failed", 3)
    assert told(place, "work?pool=other")["jobs"] == []
    assert len(told(place, "work?until=300")["jobs"]) == 1


def test_a_job_that_ended_long_ago(place: str) -> None:
    recorded(place)
    found = told(place, "jobs/1", "ann")
    assert [(one["started"], one["outcome"]) for one in found["jobs"]] == [
        (290.0, "failed"),
        (105.0, "requeued"),
    ]
    entries = [one.get("kind") or one["decision"] for one in found["entries"]]
    assert entries == [
        "JobSubmitted",
        "Start",
        "JobStarted",
        "SwapTiers",
        "JobRequeued",
        "JobStarted",
        "JobEnded",
    ]
    whole = told(place, "jobs/1")
    assert [one["user"] for one in whole["jobs"]] == ["ben", "ann", "ann"] and "ended" not in whole["jobs"][0]
    waited = told(place, "jobs/2")
    assert [(one["outcome"], one.get("started")) for one in waited["jobs"]] == [("cancelled", None)]


def test_a_start_that_failed_is_told(place: str) -> None:
    run(place, (1.0, [submitted(1.0, "1", "ann"), DecisionFailed(1.0, Start("1"), "no node")], []))
    assert told(place, "jobs/1", "ann")["last_failure"] == "no node"


def test_an_array_is_its_elements(place: str) -> None:
    come = [
        submitted(1.0, f"7_{at}", user, array_id="7", array_index=at)
        for at, user in enumerate(["ann", "ben", "ann"])
    ]
    run(place, (1.0, [*come, submitted(1.0, "71", "ann")], []))
    assert told(place, "jobs/7")["elements"] == ["7_0", "7_1", "7_2"]
    assert told(place, "jobs/7", "ann")["elements"] == ["7_0", "7_2"]
    assert client(place, "eve").get("/v1/history/jobs/7").status_code == 404


# ---------------------------------------------------------------------- what is told to whom


def test_a_user_is_told_of_the_own_jobs_alone(place: str) -> None:
    recorded(place)
    for path in ("decisions", "events", "work", "events?job=2", "decisions?job=2", "jobs/1"):
        answer = client(place, "ann").get(f"/v1/history/{path}")
        assert answer.status_code == 200
        assert answer.json()["remark"] == "only your own jobs are shown"
        for secret in ('"ben"', "job 2", '"2"', "secret"):
            assert secret not in answer.text, path
    assert told(place, "decisions?job=2", "ann") == {"decisions": []}
    assert told(place, "events?job=2", "ann") == {"events": []}
    reasons = [one["reason"] for one in told(place, "decisions", "ann")["decisions"]]
    assert reasons == [f"for {HIDDEN}", f"fits before {HIDDEN}"]
    assert told(place, "jobs/1", "ann")["jobs"][0]["reason"] == f"killed by {HIDDEN}"
    assert {one["kind"] for one in told(place, "events", "eve")["events"]} == {"NodeDown", "PluginAsked"}
    for path in ("jobs/2", "jobs/none"):
        answer = client(place, "ann").get(f"/v1/history/{path}")
        assert answer.status_code == 404 and "no job of yours" in answer.json()["detail"]
    assert told(place, "work", "eve")["jobs"] == []


def test_what_a_batch_system_said_names_no_other_job_either(place: str) -> None:
    come: list[Event] = [submitted(1.0, "1", "ann"), submitted(1.0, "2", "ben")]
    run(place, (1.0, come, [Start("1", ON, "see")]), message="job 2 has it, the job starts later")
    (start,) = told(place, "decisions", "ann")["decisions"]
    assert start["message"] == f"{HIDDEN} has it, the job starts later" and start["accepted"] is False


def test_nobody_and_a_way_without_reading(place: str) -> None:
    recorded(place)
    assert client(place, "").get("/v1/history/decisions").status_code == 401
    app = make_app(Told(), ByHeader("user"), history=history(place))
    assert client_of(app, {"test-user": "ann"}).get("/v1/history/work").status_code == 403


# ---------------------------------------------------------------------- what is wrong


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("decisions?from=5&until=4", "`from` <= `until`"),
        ("decisions?from=nan", "from"),
        ("decisions?from=1e999", "from"),
        ("decisions?from=x", "from"),
        ("decisions?count=0", "count"),
        ("decisions?count=501", "count"),
        (f"decisions?count={2**70}", "count"),
        (f"decisions?after={2**70}", "after"),
        (f"decisions?after=1.{2**70}.0", "after"),
        ("decisions?after=1.2", "after"),
        ("decisions?after=-1.2.3", "after"),
        ("decisions?after=1.2.3%00", "after"),
        ("decisions?kind=hold", "kind"),
        ("decisions?kind=Hold%27--", "kind"),
        ("decisions?colour=red", "colour"),
        ("decisions?request=past-work", "request"),
        ("events?since=3", "since"),
        ("events?oldest_first=maybe", "oldest_first"),
        ("work?job=1", "job"),
        ("jobs/1?job=2", "`job` once"),
        (f"jobs/{'9' * 257}", "job"),
    ],
)
def test_what_is_no_question_is_not_asked(tmp_path: Path, path: str, said: str) -> None:
    answer = client(str(tmp_path / "none.db")).get(f"/v1/history/{path}")
    assert answer.status_code == 400 and said in answer.json()["detail"], answer.text


@pytest.mark.parametrize(
    "name", ["..%2f..%2fetc%2fpasswd", "%2e%2e", "1%27%20or%201=1--", "%25", "_", "%ff", "\u0661"]
)
def test_a_name_is_a_name(place: str, name: str) -> None:
    recorded(place)
    answer = client(place).get(f"/v1/history/jobs/{name}")
    assert answer.status_code == 404, answer.text


def test_large_numbers_are_no_failure(place: str) -> None:
    recorded(place)
    nines = "9" * 17
    assert len(told(place, f"decisions?after={nines}.{nines}.{nines}")["decisions"]) == 4
    assert told(place, f"decisions?after={nines}.0.0&oldest_first=1")["decisions"] == []
    assert told(place, "decisions?from=-1e12&until=1e12&count=500")["decisions"]


def test_a_name_that_was_no_text(tmp_path: Path) -> None:
    place = str(tmp_path / "journal.db")
    run(place, (1.0, [submitted(1.0, "1\udc80", "ann")], []))
    assert told(place, "events")["events"][0]["job"] == "1?"


# ---------------------------------------------------------------------- a journal that is not as it should be


def test_no_journal_is_configured() -> None:
    answer = client(None).get("/v1/history/decisions")
    assert answer.status_code == 503 and "-c FILE" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("journal", "said"),
    [
        ("none.db", "no such file"),
        ("none/none.db", "directory"),
        ("postgresql://nobody@127.0.0.1:9/none", "refused"),
        ("mysql://x/y", "expected"),
    ],
)
def test_no_journal_is_there(tmp_path: Path, journal: str, said: str) -> None:
    where = journal if "://" in journal else str(tmp_path / journal)
    answer = client(where).get("/v1/history/decisions")
    assert answer.status_code == 503 and said in answer.json()["detail"], answer.text


def test_a_journal_of_another_user(tmp_path: Path) -> None:
    place = tmp_path / "journal.db"
    recorded(str(place))
    if os.geteuid() != 0:
        place.chmod(0)
        detail = client(str(place)).get("/v1/history/decisions").json()["detail"]
        assert "headway serve` runs as user" in detail
        return
    reader = os.fork()
    if not reader:
        # No other user's folders lie on the way to the file.
        os.chdir(tmp_path)
        os.setresuid(65534, 65534, 65534)
        answer = client("journal.db").get("/v1/history/decisions")
        os._exit(0 if answer.status_code == 503 and "runs as user nobody" in answer.text else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(reader, 0)[1]) == 0


def test_a_newer_journal(tmp_path: Path) -> None:
    place = tmp_path / "journal.db"
    recorded(str(place))
    with sqlite3.connect(place) as database:
        database.execute("update headway_journal set schema_version = 99")
    answer = client(str(place)).get("/v1/history/decisions")
    assert answer.status_code == 503 and "a newer headway" in answer.json()["detail"]


def test_a_journal_that_another_program_has_locked(tmp_path: Path) -> None:
    place = tmp_path / "journal.db"
    recorded(str(place))
    with sqlite3.connect(place, isolation_level=None) as shell:
        shell.execute("pragma journal_mode=delete")
        shell.execute("begin exclusive")
        answer = client(str(place), seconds=0.2).get("/v1/history/decisions")
    assert answer.status_code == 503 and "another program has locked it" in answer.json()["detail"]


def test_a_damaged_row(tmp_path: Path) -> None:
    place = tmp_path / "journal.db"
    recorded(str(place))
    with sqlite3.connect(place) as database:
        database.execute("update decisions set payload = '{' where kind = 'SwapTiers'")
    asks = client(str(place))
    assert asks.get("/v1/history/decisions?count=1").status_code == 200
    answer = asks.get("/v1/history/decisions")
    assert answer.status_code == 503 and "damaged" in answer.json()["detail"]


def test_a_journal_that_is_replaced_pruned_and_gone(tmp_path: Path) -> None:
    place, copy = tmp_path / "journal.db", tmp_path / "copy.db"
    asks = client(str(place))
    recorded(str(copy))
    for path in (f"{copy}-wal", f"{copy}-shm"):
        assert not Path(path).exists()
    place.write_bytes(copy.read_bytes())
    assert asks.get("/v1/history/decisions").json()["data"]["decisions"][0]["number"] == "2.1.0"
    run(str(place), (1000.0, [submitted(1000.0, "5", "ann")], [Start("5")]))
    assert asks.get("/v1/history/decisions").json()["data"]["decisions"][0]["number"] == "3.1.0"
    os.replace(copy, place)
    assert asks.get("/v1/history/decisions?after=3.1.0").json()["data"]["decisions"][0]["number"] == "2.1.0"
    with Journal.open(place) as journal:
        journal.prune(1e12)
    assert asks.get("/v1/history/decisions?after=1.9.9").json()["data"]["decisions"] == []
    place.unlink()
    assert asks.get("/v1/history/decisions").status_code == 503
    recorded(str(place))
    assert asks.get("/v1/history/decisions").status_code == 200


# ---------------------------------------------------------------------- many at once


def test_a_thousand_questions_at_once(tmp_path: Path) -> None:
    place = str(tmp_path / "journal.db")
    recorded(place)
    asked = history(place, waiting=50)
    answered: list[str] = []
    loop_thread = threading.get_ident()
    real = asked._answer

    def answer(question: asking.Question, user: str | None) -> Any:
        assert threading.get_ident() != loop_thread
        answered.append(user or OPERATOR)
        return real(question, user)

    asked._answer = answer  # type: ignore[method-assign]

    async def ask(number: int) -> str:
        try:
            await asked.ask(asking.Decisions(), Caller(f"user{number % 10}"))
        except Busy:
            return "busy"
        return "told"

    async def all_of_them() -> list[str]:
        return await asyncio.gather(*(ask(number) for number in range(1000)))

    found = asyncio.run(all_of_them())
    assert found.count("told") == len(answered) == 50 and found.count("busy") == 950
    assert asyncio.run(ask(1)) == "told"


def test_too_many_is_a_problem(place: str) -> None:
    recorded(place)
    assert client(place, waiting=0).get("/v1/history/decisions").status_code == 429


def test_a_journal_that_does_not_answer(tmp_path: Path) -> None:
    place = str(tmp_path / "journal.db")
    recorded(place)
    slow = history(place, timeout=0.05)
    over = threading.Event()
    slow._answer = lambda *_: over.wait(30)  # type: ignore[method-assign,assignment]
    app = make_app(Told(), ByHeader(), history=slow)
    answer = client_of(app, {"test-user": "ann"}).get("/v1/history/decisions")
    over.set()
    assert answer.status_code == 503 and "does not answer within" in answer.json()["detail"]
