"""Backups while the daemon writes, their return, and moves between kinds of databases: all or nothing."""

from __future__ import annotations

import hashlib
import os
import resource
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from journals import begin, cycles, execute, fill, schema_of, written_to

from headway.errors import Damaged, Failure, HeadwayError, Held, UserError
from headway.journal import Journal, copying
from headway.journal.backup import back_up, move, restore
from headway.journal.checking import check
from headway.journal.copying import digests
from headway.journal.database import Database


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "journal.db"
    fill(made, time.time())
    return made


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of an empty schema."""
    with schema_of(request.getfixturevalue("postgres")) as url:
        yield url


def save(place: str | Path, to: Path) -> None:
    with closing(Database(place, create=False, read_only=True)) as database:
        back_up(database, to)


def content(place: str | Path) -> object:
    with (
        closing(Database(place, create=False, read_only=True)) as database,
        database.snapshot() as connection,
    ):
        return digests(connection)


def names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir() if not entry.name.endswith(("-wal", "-shm"))}


def later(path: Path, by: float) -> None:
    """The journal goes on."""
    with Journal.open(path) as journal:
        begin(journal, time.time() + by)


# -- backup --------------------------------------------------------------------------------------------


def test_a_backup_has_what_the_journal_has_and_only_its_owner_reads_it(path: Path, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        save(path, tmp_path / "backup.db")
    finally:
        os.umask(before)
    assert content(tmp_path / "backup.db") == content(path)
    assert stat.S_IMODE((tmp_path / "backup.db").stat().st_mode) == 0o600
    assert names(tmp_path) == {"journal.db", "backup.db"}


def test_a_backup_beside_a_daemon_is_of_one_moment(path: Path, tmp_path: Path) -> None:
    with written_to(path, time.time()):
        for number in range(3):
            save(path, tmp_path / f"backup{number}.db")
    for number in range(3):
        with closing(Database(tmp_path / f"backup{number}.db", create=False, read_only=True)) as database:
            found = check(database)
        # Each cycle of the writer has three events.
        assert found.faults == [] and found.runs == 5
        assert (found.events - 24) % 3 == 0 and found.decisions - 12 in (
            (found.events - 24) // 3,
            (found.events - 24) // 3 - 1,
        )


def test_a_backup_of_a_servers_database_is_a_file(server: str, tmp_path: Path) -> None:
    fill(server, time.time())
    save(server, tmp_path / "backup.db")
    assert content(tmp_path / "backup.db") == content(server)


def to_a_file(folder: Path) -> Path:
    (folder / "there").write_text("something else")
    return folder / "there"


def to_a_dangling_link(folder: Path) -> Path:
    (folder / "there").symlink_to(folder / "nowhere")
    return folder / "there"


def to_a_directory(folder: Path) -> Path:
    (folder / "there").mkdir()
    return folder / "there"


@pytest.mark.parametrize("taken", [to_a_file, to_a_dangling_link, to_a_directory])
def test_a_backup_overwrites_nothing(path: Path, tmp_path: Path, taken: Callable[[Path], Path]) -> None:
    to = taken(tmp_path)
    before = names(tmp_path)
    with pytest.raises(UserError, match="expected no such file, found one; nothing is overwritten"):
        save(path, to)
    assert names(tmp_path) == before


@pytest.mark.parametrize("taken", [to_a_file, to_a_directory])
def test_a_move_overwrites_nothing(path: Path, tmp_path: Path, taken: Callable[[Path], Path]) -> None:
    with pytest.raises(UserError, match="expected no such file, found one; nothing is overwritten"):
        move(str(path), str(taken(tmp_path)))


def test_a_backup_into_no_directory_is_the_users_mistake(path: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"expected its directory .*/nowhere to exist"):
        save(path, tmp_path / "nowhere" / "backup.db")


@pytest.mark.parametrize("copy", ["backup", "move", "restore"])
def test_without_room_nothing_is_left_behind(path: Path, tmp_path: Path, copy: str) -> None:
    save(path, tmp_path / "saved.db")
    before, there = content(path), names(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, hard))
    try:
        with pytest.raises(Failure, match=r"cannot write: .*disk"):
            if copy == "backup":
                save(path, tmp_path / "new.db")
            elif copy == "move":
                move(str(path), str(tmp_path / "new.db"))
            else:
                restore(tmp_path / "saved.db", str(path), force=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (content(path), names(tmp_path)) == (before, there)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_without_permission_nothing_is_left_behind(path: Path, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(Failure, match="cannot be written: Permission denied"):
        save(path, tmp_path / "closed" / "backup.db")


# -- restore -------------------------------------------------------------------------------------------


def test_a_backup_comes_back_and_the_replaced_journal_is_kept(path: Path, tmp_path: Path) -> None:
    save(path, tmp_path / "backup.db")
    backed_up = content(path)
    later(path, 1000.0)
    went_on = content(path)
    with pytest.raises(UserError, match=r"found later entries, .* --force"):
        restore(tmp_path / "backup.db", str(path), force=False)
    assert content(path) == went_on
    kept = restore(tmp_path / "backup.db", str(path), force=True)
    assert kept is not None and kept.name.startswith("journal.db.replaced-")
    assert (content(path), content(kept)) == (backed_up, went_on)
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(kept.stat().st_mode) == 0o600
    # Twice in one second.
    assert restore(tmp_path / "backup.db", str(path), force=False) != kept
    later(path, 0.0)


def test_a_backup_comes_back_where_there_is_no_journal(path: Path, tmp_path: Path) -> None:
    save(path, tmp_path / "backup.db")
    # The log that another journal of that name left.
    (tmp_path / "other.db-wal").write_bytes(b"\xff" * 100)
    assert restore(tmp_path / "backup.db", str(tmp_path / "other.db"), force=False) is None
    assert content(tmp_path / "other.db") == content(path)


def test_a_killed_daemons_log_is_not_lost(path: Path, tmp_path: Path) -> None:
    save(path, tmp_path / "backup.db")
    with Journal.open(path) as journal:
        begin(journal, time.time())
        # What is in the log only, as a crash leaves it.
        for ending in ("", "-wal"):
            left = path.with_name(path.name + ending).read_bytes()
            (tmp_path / f"crashed.db{ending}").write_bytes(left)
    (tmp_path / "crashed.db").chmod(0o600)
    before = content(tmp_path / "crashed.db")
    kept = restore(tmp_path / "backup.db", str(tmp_path / "crashed.db"), force=True)
    assert kept is not None and content(kept) == before


def test_a_damaged_journal_is_replaced_and_kept(path: Path, tmp_path: Path) -> None:
    save(path, tmp_path / "backup.db")
    damaged = b"SQLite format 3\0" + b"\xff" * 5000
    path.write_bytes(damaged)
    kept = restore(tmp_path / "backup.db", str(path), force=False)
    assert kept is not None and kept.read_bytes() == damaged
    assert content(path) == content(tmp_path / "backup.db")


def test_a_log_that_a_reader_keeps_stays_with_its_journal_and_is_not_taken_for_the_backups(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(path, tmp_path / "backup.db")
    backed_up = content(path)
    monkeypatch.setattr("headway.journal.backup.BUSY_TIMEOUT", 0.1)
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)) as reader:
        reader.execute("begin")
        reader.execute("select count(*) from runs").fetchall()
        later(path, 1000.0)
        went_on = content(path)
        kept = restore(tmp_path / "backup.db", str(path), force=True)
        assert kept is not None and kept.with_name(kept.name + "-wal").stat().st_size
        assert (content(path), content(kept)) == (backed_up, went_on)


def test_nothing_is_restored_over_a_living_daemon(path: Path, tmp_path: Path) -> None:
    save(path, tmp_path / "backup.db")
    with written_to(path, time.time()), pytest.raises(Held, match="another headway writes to it: process"):
        restore(tmp_path / "backup.db", str(path), force=True)
    assert names(tmp_path) == {"journal.db", "backup.db"}


def cut(backup: Path) -> None:
    backup.write_bytes(backup.read_bytes()[: backup.stat().st_size // 2])


def of_another_program(backup: Path) -> None:
    backup.unlink()
    execute(backup, "create table recipes (name text)")


def of_a_newer_headway(backup: Path) -> None:
    execute(backup, "update headway_journal set schema_version = 99")


def gone(backup: Path) -> None:
    backup.unlink()


def a_directory(backup: Path) -> None:
    backup.unlink()
    backup.mkdir()


def the_journal_itself(backup: Path) -> None:
    backup.unlink()
    backup.symlink_to("journal.db")


@pytest.mark.parametrize(
    ("spoil", "kind", "said"),
    [
        (cut, Damaged, "damaged"),
        (of_another_program, UserError, "found a database with the tables recipes"),
        (of_a_newer_headway, UserError, "a newer headway than"),
        (gone, UserError, "found no such file"),
        (a_directory, UserError, "found a directory"),
        (the_journal_itself, UserError, "found the journal itself"),
    ],
)
def test_a_spoilt_backup_replaces_nothing(
    path: Path, tmp_path: Path, spoil: Callable[[Path], None], kind: type[HeadwayError], said: str
) -> None:
    save(path, tmp_path / "backup.db")
    spoil(tmp_path / "backup.db")
    before = content(path)
    with pytest.raises(kind, match=said):
        restore(tmp_path / "backup.db", str(path), force=True)
    assert content(path) == before
    assert not [name for name in names(tmp_path) if "replaced" in name or "tmp" in name]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
def test_what_root_restores_belongs_to_the_journals_owner(path: Path, tmp_path: Path) -> None:
    save(path, tmp_path / "backup.db")
    os.chown(path, 1234, 1235)
    restore(tmp_path / "backup.db", str(path), force=False)
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 1235)


# -- move ----------------------------------------------------------------------------------------------


def test_a_journal_goes_to_a_server_and_comes_back_the_same(path: Path, server: str, tmp_path: Path) -> None:
    before, image = content(path), hashlib.sha256(path.read_bytes()).digest()
    assert move(str(path), server) == before
    assert content(server) == before
    assert hashlib.sha256(path.read_bytes()).digest() == image
    move(server, str(tmp_path / "back.db"))
    assert content(tmp_path / "back.db") == before
    assert stat.S_IMODE((tmp_path / "back.db").stat().st_mode) == 0o600
    for place in (server, str(tmp_path / "back.db")):
        with Journal.open(place, create=False) as journal:
            assert begin(journal, time.time()) == 5
            cycles(journal, time.time())
            assert [run.id for run in journal.runs()] == [1, 2, 3, 4, 5]


def test_what_is_copied_is_of_one_moment_on_a_server_too(server: str) -> None:
    fill(server, time.time())
    with closing(Database(server, create=False, read_only=True)) as database, database.snapshot() as read:
        before = digests(read)
        with Journal.open(server) as journal:
            begin(journal, time.time())
        assert digests(read) == before
    assert content(server) != before


def test_the_number_of_a_pruned_run_is_not_given_again_after_a_move(path: Path, server: str) -> None:
    execute(path, *(f"delete from {table} where run_id = 4" for table in ("events", "decisions", "outcomes",
            "checkpoints", "cycles")), "delete from runs where id = 4")  # fmt: skip
    move(str(path), server)
    with Journal.open(server, create=False) as journal:
        assert begin(journal, time.time()) == 5


def test_neither_side_of_a_move_is_in_use(path: Path, server: str, tmp_path: Path) -> None:
    with written_to(path, time.time()), pytest.raises(Held):
        move(str(path), server)
    with Journal.open(server) as journal, pytest.raises(Held):
        begin(journal, 1.0)
        move(str(path), server)
    with pytest.raises(UserError, match="expected an empty database, found the tables checkpoints, cycles"):
        move(str(path), server)


def test_what_differs_on_the_other_side_is_not_kept(
    path: Path, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for to in (server, str(tmp_path / "new.db")):
        monkeypatch.setattr(copying, "_pages", changed(copying._pages))
        with pytest.raises(Failure, match=r"expected 12 rows in decisions with digest .* it was not kept"):
            move(str(path), to)
        monkeypatch.undo()
    assert names(tmp_path) == {"journal.db"}
    assert move(str(path), server)


def changed(pages: Callable[..., Iterator[list[dict[str, object]]]]) -> Callable[..., object]:
    """Reads one reason other than it is, the first time."""
    once: list[bool] = []

    def read(connection: object, table: copying.Table) -> Iterator[list[dict[str, object]]]:
        for rows in pages(connection, table):
            if table.name == "decisions" and not once:
                once.append(True)
                rows[0]["reason"] = "another"
            yield rows

    return read


def test_a_server_that_goes_away_in_the_middle_leaves_nothing(
    path: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    pages = copying._pages

    def read(connection: object, table: copying.Table) -> Iterator[list[dict[str, object]]]:
        if table.name == "decisions":
            with psycopg.connect(server, autocommit=True) as other:
                other.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity"
                    " where application_name like 'headway %' and pid <> pg_backend_pid()"
                )
        yield from pages(connection, table)

    monkeypatch.setattr(copying, "_pages", read)
    with pytest.raises(Failure, match="cannot write"):
        move(str(path), server)
    monkeypatch.undo()
    assert move(str(path), server) == content(path)


def test_a_server_that_does_not_answer_is_a_failure(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(Failure, match="cannot write"):
        move(str(path), f"postgresql://headway@/headway?host={tmp_path}")
