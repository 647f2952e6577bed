"""What a reader of ``headway serve`` costs: that asks for what it has already, that sorts, and that reads the
past of a journal of a million decisions. Processor time of whole requests, in this process.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from building import described, plugged
from followed import Followed
from journals import begin
from sqlalchemy import insert
from starlette.testclient import TestClient
from web import ByHeader
from web import client as client_of

from headway.decisions import Start
from headway.events import JobEnded, JobStarted, JobSubmitted
from headway.inquiry.reports import JobReport
from headway.journal import Journal
from headway.journal.encoding import encode
from headway.journal.schema import cycles, decisions, events, outcomes
from headway.model import ClusterDescription
from headway.scheduler import Scheduler
from headway.serve.app import make_app
from headway.serve.history import History
from headway.serve.pictured import PictureSource
from headway.serve.source import DaemonSource
from headway_plugins.policies.easy import Easy

pytestmark = pytest.mark.benchmark

PENDING, RECORDED, A_CYCLE = 50_000, 1_000_000, 50
USERS = 500


def asking(source: PictureSource, journal: Path | None = None) -> TestClient:
    history = History(str(journal), lambda caller: caller.user == "root")
    return client_of(make_app(source, ByHeader("read", "operator"), history=history), {"test-user": "root"})


def milliseconds(what: Callable[[], object], rounds: int = 20) -> float:
    """Processor time of one, the least."""
    found = []
    for _ in range(rounds):
        began = time.process_time()
        what()
        found.append(time.process_time() - began)
    return 1000 * min(found)


@pytest.fixture(scope="module")
def source() -> PictureSource:
    followed = Followed(Scheduler(ClusterDescription.flat(4), plugged(Easy())), private=False)
    found = PictureSource(DaemonSource(Path("/none/headway.sock")))
    found._found(followed.picture)
    jobs = (
        described(str(at), 1 + at % 4, 60.0 + at % 977, -at * 7.0 % 1009, user=f"user{at % USERS}")
        for at in range(PENDING)
    )
    followed.cycle(*(JobSubmitted(0.0, job) for job in jobs))
    followed.settle()
    return found


def test_what_a_client_has_already_costs_little(source: PictureSource) -> None:
    asks = asking(source)
    nothing = milliseconds(lambda: asks.get("/v1/self"))
    for path in ("status", "jobs?count=100", "jobs?count=500", "jobs?sort=-waited"):
        first = asks.get(f"/v1/{path}")
        whole = milliseconds(lambda path=path: asks.get(f"/v1/{path}"))
        headers = {"if-none-match": first.headers["etag"]}
        again = milliseconds(lambda path=path, headers=headers: asks.get(f"/v1/{path}", headers=headers))
        print(f"/v1/{path}: {whole:.2f} ms of {len(first.content)} bytes, again {again:.2f} ms; "
              f"/v1/self {nothing:.2f} ms")  # fmt: skip
        assert again < whole


def test_sorting_is_done_once_until_something_changes(source: PictureSource) -> None:
    asks, picture = asking(source), source.picture
    assert picture is not None
    for by in ("submitted", "-start", "user", "processors", "-waited"):
        picture._made.clear()
        began = time.process_time()
        assert asks.get(f"/v1/jobs?sort={by}").status_code == 200
        first = 1000 * (time.process_time() - began)
        then = milliseconds(lambda by=by: asks.get(f"/v1/jobs?sort={by}"))
        print(f"sort={by}: {first:.0f} ms, then {then:.1f} ms")
        assert first < 1000
    assert isinstance(next(iter(picture.jobs.values())).report, JobReport)


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with so many decisions, and three events each."""
    place = tmp_path_factory.mktemp("past") / "journal.db"
    with Journal.open(place) as made:
        run = begin(made, 0.0)
        for first in range(0, RECORDED // A_CYCLE, 200):
            with made._database.writing() as connection:
                for table, rows in recorded(run, range(first, first + 200)):
                    connection.execute(insert(table), rows)
    return place


def recorded(run: int, numbers: range) -> list[tuple[object, list[dict[str, object]]]]:
    rows: dict[object, list[dict[str, object]]] = {cycles: [], events: [], decisions: [], outcomes: []}
    for seq in numbers:
        now = 1000.0 + 10 * seq
        rows[cycles].append({"run_id": run, "seq": seq, "now": now})
        for at in range(A_CYCLE):
            job = str(seq * A_CYCLE + at)
            description = described(job, 4, 3600.0, now - 5, user=f"user{(seq * A_CYCLE + at) % USERS}")
            happened = (JobSubmitted(now, description), JobStarted(now, job), JobEnded(now, job))
            start = Start(job, (("n1", 4),), f"fits before job {max(0, int(job) - 1)}")
            key = {"run_id": run, "seq": seq}
            about = {"time": now, "job_id": job, "other_job_id": None}
            rows[events] += (
                {**key, **about, "position": 3 * at + n, "kind": type(one).__name__, "payload": encode(one)}
                for n, one in enumerate(happened)
            )
            rows[decisions].append(
                {
                    **key,
                    **about,
                    "position": at,
                    "kind": "Start",
                    "reason": start.reason,
                    "payload": encode(start),
                }
            )
            rows[outcomes].append({**key, "position": at, "accepted": True, "message": ""})
    return list(rows.items())


def test_the_past_of_a_million_decisions(source: PictureSource, journal: Path) -> None:
    asks = asking(source, journal)
    last = RECORDED // A_CYCLE // 2
    for path in (
        "decisions", "decisions?oldest_first=true", f"decisions?after=1.{last}.7", "decisions?until=90000",
        "events", "events?job=4711", "work?count=500", "jobs/4711", "decisions?kind=Hold",
    ):  # fmt: skip
        used = milliseconds(lambda path=path: asks.get(f"/v1/history/{path}"), 7)
        print(f"/v1/history/{path}: {used:.1f} ms")
        # A page that finds nothing ends by the clock.
        assert used < 50 or "count=500" in path or "Hold" in path
    asks.headers["test-user"] = "user7"
    began = time.process_time()
    page = asks.get("/v1/history/decisions").json()["data"]
    print(f"of a user: {len(page['decisions'])} in {1000 * (time.process_time() - began):.0f} ms")
    assert page["decisions"]
