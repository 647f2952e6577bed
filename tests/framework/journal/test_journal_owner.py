"""A journal has one writer, whatever it is called and whoever takes which file away."""

from __future__ import annotations

import fcntl
import os
import pwd
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headway.errors import Failure, Held
from headway.events import NodeDown
from headway.journal import Journal, RunInfo
from headway.journal import database as journal_database
from headway.model import ClusterDescription

INFO = RunInfo("drive", 1.0, "test", "", 0, ClusterDescription.flat(1))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def by_link(path: Path) -> Path:
    other = path.with_name("link.db")
    other.symlink_to(path)
    return other


def by_hard_link(path: Path) -> Path:
    other = path.with_name("second.db")
    other.hardlink_to(path)
    return other


def by_linked_directory(path: Path) -> Path:
    other = path.parent.with_name(path.parent.name + "-link")
    other.symlink_to(path.parent)
    return other / path.name


def by_url(path: Path) -> str:
    return f"sqlite:///{by_link(path)}"


@pytest.mark.parametrize("renamed", [by_link, by_hard_link, by_linked_directory, by_url])
def test_another_name_of_the_file_is_the_same_journal(path: Path, renamed: Callable[[Path], Any]) -> None:
    with Journal.open(path), pytest.raises(Held, match=f"process {os.getpid()} on host"):
        Journal.open(renamed(path))


def test_no_file_beside_the_journal_can_be_taken_away_to_let_a_second_writer_in(path: Path) -> None:
    with Journal.open(path) as journal:
        journal.begin_run(INFO)
        for other in path.parent.iterdir():
            if not other.name.startswith(path.name + "-") and other != path:
                other.unlink()
        with pytest.raises(Held):
            Journal.open(path)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o777])
def test_nobody_else_can_read_it_whatever_the_umask(path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        with Journal.open(path) as journal:
            journal.begin_run(INFO)
            modes = {one.name: oct(one.stat().st_mode & 0o777) for one in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert set(modes) == {"journal.db", "journal.db-wal", "journal.db-shm"}
    assert set(modes.values()) == {"0o600"}


def test_one_that_was_open_to_others_is_closed_to_them(path: Path) -> None:
    Journal.open(path).close()
    path.chmod(0o664)
    with Journal.open(path, read_only=True):
        assert path.stat().st_mode & 0o777 == 0o664, "a reader changes nothing"
    Journal.open(path).close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_message_names_who_holds_the_lock_although_it_is_no_headway(path: Path) -> None:
    Journal.open(path).close()
    program = (
        "import fcntl, sys, time; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); "
        "print('held', flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert other.stdout is not None and other.stdin is not None
    try:
        other.stdout.readline()
        me = pwd.getpwuid(os.getuid()).pw_name
        with pytest.raises(Held, match=f"process {other.pid} on host .* of user {me}") as held:
            Journal.open(path)
        # A unit that is started again by systemd gets in once it is free.
        assert held.value.exit_code == 1
    finally:
        other.stdin.close()
        other.wait()
        other.stdout.close()
    Journal.open(path).close()


class NoLock:
    """A file system on which locks do nothing."""

    def __init__(self, path: Path) -> None:
        path.touch()

    def still_there(self) -> None: ...

    def release(self) -> None: ...


def test_a_writer_that_lost_its_lock_writes_nothing_more(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_database, "FileLock", NoLock)
    with Journal.open(path) as first:
        run = first.begin_run(INFO)
        first.record_events(1, 1.0, [NodeDown(1.0, "n1")])
        with Journal.open(path) as second:
            with pytest.raises(Held, match=f"another headway writes to it: process {os.getpid()}"):
                first.record_events(2, 2.0, [NodeDown(2.0, "n1")])
            with pytest.raises(Held):
                first.end_run("stopped")
            newer = second.begin_run(INFO)
            second.record_events(1, 3.0, [])
    with Journal.open(path, read_only=True) as reader:
        assert [cycle.seq for cycle in reader.cycles(run)] == [1]
        assert [cycle.now for cycle in reader.cycles(newer)] == [3.0]


def test_a_journal_from_before_there_were_owners_gets_one(path: Path) -> None:
    with Journal.open(path) as journal:
        journal.begin_run(INFO)
    with sqlite3.connect(path) as older:
        older.execute("drop table headway_owner")
    older.close()
    Journal.open(path, read_only=True).close()
    with Journal.open(path) as journal:
        journal.begin_run(INFO)


def test_the_lock_is_on_the_database_itself(path: Path) -> None:
    with Journal.open(path), path.open() as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize("again", [False, True])
def test_a_writer_whose_file_lost_its_name_writes_nothing_more(path: Path, again: bool) -> None:
    """What goes into a file without a name is lost, and another daemon could take the name meanwhile."""
    with Journal.open(path) as first:
        first.begin_run(INFO)
        path.rename(path.with_name("moved-away.db"))
        found = "its file was removed"
        if again:
            with Journal.open(path) as second:
                second.begin_run(INFO)
            found = "another file was put into its place"
        with pytest.raises(Failure, match=found):
            first.record_events(1, 1.0, [NodeDown(1.0, "n1")])
