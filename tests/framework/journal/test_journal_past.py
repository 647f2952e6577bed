"""Pages of the past: each entry once, in order, from any place on, as far as its user may know."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from journals import schema_of

from headway.adapter import Outcome
from headway.decisions import Decision, Hold, PowerDown, Start, SwapTiers
from headway.errors import Damaged, Failure, UserError
from headway.events import (
    Event,
    JobChanged,
    JobEnded,
    JobMigrated,
    JobRequeued,
    JobStarted,
    JobSubmitted,
    NodeDown,
)
from headway.journal import Journal, RunInfo
from headway.journal import past as of_past
from headway.journal.past import Asked, Entry, Found, Past, Place
from headway.model import ClusterDescription, JobDescription, Request


def described(job_id: str, user: str, **more: Any) -> JobDescription:
    return JobDescription(job_id, 0.0, Request(4, 3600.0), "main", user=user, **more)


def submitted(time: float, job_id: str, user: str) -> JobSubmitted:
    return JobSubmitted(time, described(job_id, user))


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where a new journal can be made."""
    if request.param == "sqlite":
        yield str(tmp_path / "journal.db")
        return
    with schema_of(request.getfixturevalue("postgres")) as url:
        yield url


def run(place: str, *cycles: tuple[float, list[Event], list[Decision]]) -> int:
    """A run with these cycles, numbered from 1 on."""
    with Journal.open(place) as journal:
        number = journal.begin_run(RunInfo("drive", cycles[0][0], "1", "", 1, ClusterDescription.flat(16)))
        for seq, (now, happened, decided) in enumerate(cycles, 1):
            journal.record_events(seq, now, happened)
            journal.record_decisions(seq, decided)
            journal.record_outcomes(seq, [Outcome(at % 2 == 0, "no") for at in range(len(decided))])
        journal.end_run("stopped", ended_at=cycles[-1][0])
    return number


def two_runs(place: str) -> None:
    """Run 1 of ten cycles from 100 on, run 2 of ten from 300 on: a job of ann and one of ben in each."""
    for begin in (100.0, 300.0):
        cycles = []
        for seq in range(10):
            now = begin + 10 * seq
            ann, ben = f"a{seq}", f"b{seq}"
            happened = [submitted(now, ann, "ann"), submitted(now, ben, "ben"), NodeDown(now, "n1", "dust")]
            cycles.append((now, happened, [Start(ann), Hold(ben, "no"), PowerDown(("n1",))]))
        run(place, *cycles)


def opened(place: str) -> Past:
    return Past.open(place, 10.0)


def read(past: Past, of: str, **asked: Any) -> list[Entry]:
    """All pages."""
    entries, after = list[Entry](), asked.pop("after", None)
    for _ in range(1000):
        found: Found = getattr(past, of)(Asked(after=after, **asked))
        entries += found.entries
        if found.then is None:
            return entries
        assert found.then != after
        after = found.then
    raise AssertionError("the pages have no end")


def in_order(entries: list[Entry], *, oldest_first: bool) -> bool:
    places = [entry.place for entry in entries]
    return places == sorted(set(places), reverse=not oldest_first)


@pytest.mark.parametrize("oldest_first", [True, False], ids=["oldest", "newest"])
@pytest.mark.parametrize("count", [1, 7, 60, 500])
def test_each_entry_stands_on_one_page(place: str, count: int, oldest_first: bool) -> None:
    two_runs(place)
    with opened(place) as past:
        for of in ("decisions", "events"):
            entries = read(past, of, count=count, oldest_first=oldest_first)
            assert len(entries) == 60 and in_order(entries, oldest_first=oldest_first)


def test_a_decision_has_its_time_its_outcome_and_its_user(place: str) -> None:
    two_runs(place)
    with opened(place) as past:
        power, hold, start = past.decisions(Asked(count=3)).entries
    assert start == Entry(Place(2, 10, 0), 390.0, Start("a9"), Outcome(True, "no"), "ann")
    assert hold.outcome == Outcome(False, "no") and hold.user == "ben"
    assert power.user is None and isinstance(power.what, PowerDown)


@pytest.mark.parametrize(
    ("since", "until", "cycles"),
    [(130.0, 150.0, 2), (131.0, 150.1, 2), (0.0, 100.0, 0), (150.0, 320.0, 7), (391.0, 1e9, 0),
     (390.0, 390.0, 0), (-1e12, 1e12, 20)],
)  # fmt: skip
def test_times_are_those_of_cycles_and_the_end_is_outside(
    place: str, since: float, until: float, cycles: int
) -> None:
    two_runs(place)
    with opened(place) as past:
        for oldest_first in (True, False):
            asked = {"since": since, "until": until, "oldest_first": oldest_first, "count": 4}
            found = read(past, "events", **asked)
            assert len(found) == 3 * cycles and in_order(found, oldest_first=oldest_first)
            assert all(since <= entry.at < until for entry in found)


def test_kinds_and_jobs(place: str) -> None:
    two_runs(place)
    with opened(place) as past:
        assert len(read(past, "decisions", kinds=("Hold",), count=3)) == 20
        assert [entry.place.run for entry in read(past, "events", job="a3")] == [2, 1]
        assert len(read(past, "events", job="a3", until=200.0)) == 1
        assert read(past, "events", job="a3", kinds=("NodeDown",)) == []
        assert read(past, "decisions", kinds=("Nothing",)) == []


@pytest.mark.parametrize("step", [2, 5000])
def test_a_user_is_told_of_the_own_jobs_and_of_events_about_none(
    place: str, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_past, "STEP", step)
    two_runs(place)
    with opened(place) as past:
        decided = read(past, "decisions", user="ann", count=2)
        assert len(decided) == 20 and {entry.user for entry in decided} == {"ann"}
        happened = read(past, "events", user="ben", count=2)
        assert len(happened) == 40 and {entry.user for entry in happened} == {"ben", None}
        assert read(past, "decisions", user="an", count=2) == []
        assert read(past, "decisions", user='n","user":"ann', count=2) == []


@pytest.mark.parametrize("user", ["ännchen", 'a"b\\', "\u2028", "日本"])
def test_any_name_of_a_user_is_found(place: str, user: str) -> None:
    run(place, (1.0, [submitted(1.0, "1", user)], [Start("1")]))
    with opened(place) as past:
        assert len(past.decisions(Asked(user=user)).entries) == 1


def test_an_id_that_was_given_again_is_of_the_user_of_its_time(place: str) -> None:
    changed = JobChanged(3.0, described("7", "ben"))
    run(place, (1.0, [submitted(1.0, "7", "ann")], [Start("7")]), (3.0, [changed], [Hold("7")]))
    run(place, (9.0, [submitted(9.0, "7", "eve")], [Start("7")]))
    with opened(place) as past:
        users = [(entry.place.run, entry.user) for entry in read(past, "decisions", oldest_first=True)]
        assert users == [(1, "ann"), (1, "ben"), (2, "eve")]
        for user, run_ in (("ann", 1), ("ben", 1), ("eve", 2)):
            assert [entry.place.run for entry in read(past, "decisions", user=user)] == [run_]
        assert past.users(1, ["7", "8"]) == {"7": {"ann", "ben"}}


def test_a_page_that_takes_too_long_ends_and_says_where(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_past, "STEP", 2)
    two_runs(place)
    with opened(place) as past:
        past.patience = 0.0
        page = past.decisions(Asked(kinds=("Nothing",)))
        assert page.entries == [] and page.then == Place(2, 10, 1)
        assert read(past, "decisions", kinds=("Nothing",)) == []
        assert len(read(past, "decisions", kinds=("Hold",), oldest_first=True)) == 20


def test_a_reader_goes_on_after_the_journal_has_grown_and_lost_its_oldest_run(place: str) -> None:
    two_runs(place)
    with opened(place) as past:
        page = past.decisions(Asked(count=40))
        last = past.decisions(Asked(oldest_first=True, count=60)).entries[-1].place
    run(place, (500.0, [submitted(500.0, "c", "ann")], [Start("c")]))
    with Journal.open(place) as journal:
        assert journal.prune(250.0) == 1
    with opened(place) as past:
        assert past.decisions(Asked(after=page.then, count=60)) == Found([])
        newer = past.decisions(Asked(after=last, oldest_first=True)).entries
        assert [entry.what for entry in newer] == [Start("c")]


@pytest.mark.parametrize("after", ["99999999999999999.9.9", "0.0.0", "1.99999999999999999.99999999999999999"])
def test_a_place_that_is_none(place: str, after: str) -> None:
    two_runs(place)
    with opened(place) as past:
        for oldest_first in (True, False):
            found = read(past, "decisions", after=Place.of(after), oldest_first=oldest_first, count=500)
            assert len(found) in (0, 30, 60)


def test_places_are_written_and_read() -> None:
    assert Place.of(str(Place(1, 2, 3))) == Place(1, 2, 3)
    for wrong in ("1.2", "1.2.x", ""):
        with pytest.raises(ValueError):
            Place.of(wrong)


# ---------------------------------------------------------------------- where jobs ran


def test_ends_come_with_the_way_to_them(place: str) -> None:
    run(
        place,
        (1.0, [submitted(0.0, "1", "ann"), JobStarted(1.0, "1", (("n1", 4),))], []),
        (5.0, [JobMigrated(4.0, "1", (("n2", 4),)), submitted(5.0, "2", "ben")], []),
        (9.0, [JobEnded(8.0, "1"), JobRequeued(9.0, "2")], []),
    )
    with opened(place) as past:
        found, led = past.ends(Asked(oldest_first=True))
        assert [type(end.what).__name__ for end in found.entries] == [
            "JobMigrated",
            "JobEnded",
            "JobRequeued",
        ]
        ways = [[type(one.what).__name__ for one in led[end.place]] for end in found.entries]
        begun = ["JobSubmitted", "JobStarted", "JobMigrated"]
        assert ways == [begun, [*begun, "JobEnded"], ["JobSubmitted", "JobRequeued"]]
        assert [end.user for end in past.ends(Asked(user="ben"))[0].entries] == ["ben"]


def test_an_end_that_a_later_run_finds_is_told_once(place: str) -> None:
    run(place, (1.0, [submitted(0.0, "1", "ann"), JobStarted(1.0, "1")], []), (9.0, [JobEnded(8.0, "1")], []))
    again = [submitted(0.0, "1", "ann"), JobStarted(1.0, "1"), JobEnded(8.0, "1"), submitted(0.0, "2", "ann"),
             JobEnded(15.0, "2")]  # fmt: skip
    run(place, (20.0, again, []))
    with opened(place) as past:
        found = past.ends(Asked())[0].entries
    assert [(end.place.run, end.what) for end in found] == [(2, JobEnded(15.0, "2")), (1, JobEnded(8.0, "1"))]


def test_all_of_a_job(place: str) -> None:
    two_runs(place)
    run(place, (500.0, [submitted(500.0, "x", "ann")], [SwapTiers("x", "a1")]))
    with opened(place) as past:
        found = past.of_job("a1", 1000)
        assert [entry.place.run for entry in found] == [1, 1, 2, 2, 3]
        assert [isinstance(entry.what, Decision) for entry in found] == [False, True, False, True, True]
        assert len(past.of_job("a1", 1)) == 2
        assert past.of_job("none", 10) == []
        assert past.newest() == 500.0


# ---------------------------------------------------------------------- what can go wrong


def test_a_journal_without_a_cycle(place: str) -> None:
    with Journal.open(place):
        pass
    with opened(place) as past:
        assert past.newest() is None
        assert past.decisions(Asked(since=1.0)) == Found([])
        assert past.ends(Asked()) == (Found([]), {})


def test_what_takes_too_long_is_given_up(place: str) -> None:
    two_runs(place)
    slow = Past.open(place, 0.3)
    forever = (
        "with recursive n(x) as (select 1 union all select x + 1 from n) select count(*) from n"
        if slow._database.path is not None
        else "select pg_sleep(60)"
    )
    with slow, pytest.raises(Failure, match=r"too long|timeout"), slow._database.reading() as connection:
        connection.exec_driver_sql(forever)


def test_nothing_can_be_written(place: str) -> None:
    two_runs(place)
    with (
        opened(place) as past,
        pytest.raises(Failure, match=r"read.only"),
        past._database.reading() as connection,
    ):
        connection.exec_driver_sql("delete from cycles")


def test_reading_takes_no_lock_and_keeps_no_writer_waiting(place: str) -> None:
    two_runs(place)
    with opened(place) as past, past._database.snapshot() as connection:
        assert connection.exec_driver_sql("select count(*) from cycles").scalar_one() == 20
        # Another process' writer, as far as the database can tell.
        run(place, (500.0, [submitted(500.0, "c", "ann")], [Start("c")]))
        assert connection.exec_driver_sql("select count(*) from cycles").scalar_one() == 20
        assert past.newest() == 500.0


def test_no_journal_and_a_damaged_one(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        opened(str(tmp_path / "none.db"))
    path = tmp_path / "journal.db"
    two_runs(str(path))
    path.write_bytes(path.read_bytes()[:8000] + b"\xff" * 60_000)
    with pytest.raises((Damaged, Failure, UserError)), opened(str(path)) as past:
        read(past, "decisions")


def test_a_time_that_is_no_number(tmp_path: Path) -> None:
    place = str(tmp_path / "journal.db")
    run(place, (1.0, [JobEnded(math.nan, "1")], []))
    with opened(place) as past:
        assert math.isnan(past.events(Asked()).entries[0].time)
        assert len(past.ends(Asked())[0].entries) == 1
