"""Journals of earlier headways are carried forward, and never called damaged; of later ones, refused."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from journals import begin, cycles, execute, fill
from sqlalchemy import Column, Connection, Integer, MetaData, Table, text

from headway.errors import Failure, UserError
from headway.journal import Journal, migrations, schema
from headway.journal.backup import back_up, move, restore
from headway.journal.checking import check
from headway.journal.database import Database
from headway.journal.pruning import prune


def of_the_first_headway(path: Path) -> None:
    """As version 0.1.0's first journals were: version 1, and no table of the owner."""
    fill(path, time.time())
    execute(path, "drop table headway_owner")


def of_this_headway(path: Path) -> None:
    fill(path, time.time())


MADE = [of_the_first_headway, of_this_headway]


def version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as database:
        found: int = database.execute("select schema_version from headway_journal").fetchone()[0]
        return found


def adds_a_table(connection: Connection) -> None:
    Table("notes", MetaData(), Column("number", Integer)).create(connection)
    connection.execute(text("insert into notes select id from runs"))


def fails(connection: Connection) -> None:
    adds_a_table(connection)
    connection.execute(text("insert into nowhere values (1)"))


@pytest.fixture
def next_version(monkeypatch: pytest.MonkeyPatch) -> Callable[[migrations.Step], None]:
    """A headway of version 2 of the schema, with this step to it."""

    def set_(step: migrations.Step) -> None:
        monkeypatch.setattr(schema, "SCHEMA_VERSION", 2)
        monkeypatch.setattr(migrations, "STEPS", {1: step})

    return set_


def test_each_version_below_ours_has_a_step() -> None:
    assert sorted(migrations.STEPS) == list(range(1, schema.SCHEMA_VERSION))


@pytest.mark.parametrize("made", MADE)
def test_all_that_was_ever_released_is_read_looked_after_and_written_on(
    made: Callable[[Path], None], tmp_path: Path
) -> None:
    path = tmp_path / "journal.db"
    made(path)
    with closing(Database(path, create=False, read_only=True)) as database:
        assert check(database).faults == []
        back_up(database, tmp_path / "backup.db")
    move(str(path), str(tmp_path / "moved.db"))
    restore(tmp_path / "backup.db", str(path), force=False)
    for place in (path, tmp_path / "moved.db"):
        assert prune(str(place), time.time()).runs == [1, 2]
        with Journal.open(place, create=False) as journal:
            assert begin(journal, time.time()) == 5
            cycles(journal, time.time())
            assert [run.id for run in journal.runs()] == [3, 4, 5]
        assert version(place) == schema.SCHEMA_VERSION


@pytest.mark.parametrize("made", MADE)
def test_a_writer_carries_an_older_journal_forward(
    made: Callable[[Path], None], tmp_path: Path, next_version: Callable[[migrations.Step], None]
) -> None:
    path = tmp_path / "journal.db"
    made(path)
    next_version(adds_a_table)
    with pytest.raises(UserError, match=r"expected schema version 2, found 1: an older headway .* in order"):
        Journal.open(path, read_only=True)
    assert version(path) == 1
    for _ in range(2):
        with Journal.open(path, create=False) as journal:
            assert [run.id for run in journal.runs()] == [1, 2, 3, 4]
        assert version(path) == 2
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("select count(*) from notes").fetchone() == (4,)


def test_a_step_that_fails_leaves_the_journal_as_it_was(
    tmp_path: Path, next_version: Callable[[migrations.Step], None]
) -> None:
    path = tmp_path / "journal.db"
    of_this_headway(path)
    next_version(fails)
    with pytest.raises(Failure, match="no such table: nowhere"):
        Journal.open(path, create=False)
    assert version(path) == 1
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("select count(*) from sqlite_master where name = 'notes'").fetchone() == (0,)


def test_a_new_journal_has_the_newest_version(tmp_path: Path) -> None:
    Journal.open(tmp_path / "journal.db").close()
    assert version(tmp_path / "journal.db") == schema.SCHEMA_VERSION
