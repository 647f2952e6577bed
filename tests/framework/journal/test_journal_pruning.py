"""Old runs are removed, with the daemon running or not, and nothing that a restart needs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from journals import DAY, begin, cycles, execute, fill, schema_of, written_to

from headway.journal import Journal
from headway.journal.checking import check
from headway.journal.database import Database
from headway.journal.pruning import leftovers, prune


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(tmp_path / "journal.db")
        return
    with schema_of(request.getfixturevalue("postgres")) as url:
        yield url


def ids(place: str) -> list[int]:
    with Journal.open(place, create=False, read_only=True) as journal:
        return [run.id for run in journal.runs()]


def test_runs_that_were_over_long_ago_go_and_the_others_stay(place: str) -> None:
    now = time.time()
    first, second, killed, last = fill(place, now)
    done = prune(place, now - 150 * DAY)
    assert (done.runs, done.beside) == ([first], False)
    assert ids(place) == [second, killed, last]
    # The killed run was over when the next began, two days ago: that is within what a restart looks at.
    assert prune(place, now).runs == [second]
    assert ids(place) == [killed, last]


def test_the_newest_run_of_each_mode_stays_however_old_it_is(place: str) -> None:
    with Journal.open(place) as journal:
        runs = []
        for started, mode in ((1000.0, "drive"), (2000.0, "drive"), (3000.0, "monitor")):
            runs.append(begin(journal, started, mode))
            cycles(journal, started)
            journal.end_run("stopped", ended_at=started + 60.0)
    assert prune(place, 1e12).runs == runs[:1]
    with Journal.open(place, create=False, read_only=True) as journal:
        assert journal.last_run("drive").id == runs[1]  # type: ignore[union-attr]
        assert journal.last_checkpoint(runs[2]) is not None


def test_beside_a_daemon_the_old_runs_go_and_the_daemon_goes_on(place: str) -> None:
    now = time.time()
    first, second, killed, last = fill(place, now)
    with written_to(place, now) as writer:
        done = prune(place, now - 60 * DAY)
        assert (done.runs, done.beside) == ([first, second], True)
    assert ids(place) == [killed, last, last + 1]
    with Journal.open(place, create=False, read_only=True) as journal:
        assert sum(1 for _ in journal.cycles(last + 1)) == writer.cycles
    with closing(Database(place, create=False, read_only=True)) as database:
        found = check(database)
        assert (found.faults, found.remarks) == ([], [f"run {killed} was killed: it has no end"])


def test_what_an_interrupted_removal_left_is_named_and_removed_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    first, *others = fill(path, time.time())
    execute(
        path, f"delete from runs where id = {first}", f"delete from events where run_id = {first} and seq = 0"
    )
    with closing(Database(path, create=False, read_only=True)) as database:
        found = check(database)
        assert found.faults == []
        assert any(
            "a removal was interrupted" in remark and f"({first})" in remark for remark in found.remarks
        )
    with written_to(path, time.time()):
        assert prune(str(path), 0.0).runs == []
    with closing(Database(path, create=False, read_only=True)) as database, database.reading() as connection:
        assert leftovers(connection) == []
    assert ids(str(path))[:3] == others
