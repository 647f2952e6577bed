"""The lease in a file and in a database: of two that want it, one gets it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from journals import schema_of

from headway.errors import Failure
from headway.journal import Journal
from headway.standby.leadership import Word
from headway.standby.lease import Lease
from headway.standby.lease_file import LeaseFile, lease_path
from headway.standby.lease_row import LeaseRow

ONE, TWO = Word(7, "process 1 on host a"), Word(8, "process 2 on host b")


@pytest.fixture(params=["file", "row"])
def lease(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lease]:
    if request.param == "file":
        yield LeaseFile(tmp_path / "journal.db")
        return
    with schema_of(request.getfixturevalue("postgres")) as url:
        made = LeaseRow(url)
        yield made
        made.close()


def test_nothing_is_read_before_it_was_written(lease: Lease) -> None:
    assert lease.read() is None


def test_what_was_written_is_read(lease: Lease) -> None:
    assert lease.replace(None, ONE)
    assert lease.read() == ONE
    renewed = Word(7, "process 1 on host a", 1)
    assert lease.replace(ONE, renewed)
    released = Word(7, "process 1 on host a", 2, released=True)
    assert lease.replace(renewed, released)
    assert lease.read() == released


def test_of_two_that_saw_the_same_word_one_gets_it(lease: Lease) -> None:
    assert lease.replace(None, ONE)
    assert not lease.replace(None, TWO)
    assert lease.replace(ONE, TWO)
    assert not lease.replace(ONE, Word(9, "process 3 on host c"))
    assert lease.read() == TWO


def test_a_leader_that_was_replaced_cannot_renew(lease: Lease) -> None:
    lease.replace(None, ONE)
    lease.replace(ONE, TWO)
    assert not lease.replace(ONE, Word(7, "process 1 on host a", 1))


def test_a_shorter_word_leaves_nothing_of_a_longer_one(tmp_path: Path) -> None:
    lease = LeaseFile(tmp_path / "journal.db")
    lease.replace(None, Word(7, "x" * 200))
    lease.replace(Word(7, "x" * 200), ONE)
    assert lease.read() == ONE


def test_a_file_that_is_no_lease_is_told_with_its_place(tmp_path: Path) -> None:
    lease = LeaseFile(tmp_path / "journal.db")
    lease.path.write_text("something else")
    with pytest.raises(Failure, match="expected what headway wrote, found b'something else': remove"):
        lease.read()


def test_a_process_that_was_stopped_in_it_keeps_nobody_waiting_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.standby.lease_file.SECONDS", 0.05)
    lease = LeaseFile(tmp_path / "journal.db")
    lease.replace(None, ONE)
    opened = os.open(lease_path(tmp_path / "journal.db"), os.O_RDWR)
    fcntl.flock(opened, fcntl.LOCK_EX)
    with pytest.raises(Failure, match="another process keeps it locked"):
        lease.read()
    os.close(opened)
    assert lease.read() == ONE


def test_only_the_daemon_s_user_can_write_the_file(tmp_path: Path) -> None:
    lease = LeaseFile(tmp_path / "journal.db")
    lease.replace(None, ONE)
    assert lease.path.stat().st_mode & 0o777 == 0o600


def test_a_server_that_is_away_is_a_failure_soon() -> None:
    lease = LeaseRow("postgresql://nobody@/none?host=/nowhere")
    with pytest.raises(Failure, match="cannot read its lease"):
        lease.read()
    lease.close()


def test_the_connection_of_a_writer_that_is_named_is_broken_and_no_other(postgres: str) -> None:
    with schema_of(postgres) as url:
        journal, lease = Journal.open(url), LeaseRow(url)
        from headway.journal.lock import holder

        lease.end_writer("process 1 on host elsewhere")
        with pytest.raises(Failure, match="another headway writes to it"):
            Journal.open(url)
        lease.end_writer(holder())
        with Journal.open(url) as second:
            assert second.epoch > journal.epoch
        lease.close()


def test_the_epoch_of_a_writer_is_as_high_as_was_asked_and_grows(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with Journal.open(path, at_least=1000) as journal:
        assert journal.epoch == 1000
    with Journal.open(path, at_least=10) as journal:
        assert journal.epoch == 1001
    with Journal.open(path, read_only=True) as journal:
        assert journal.epoch == 0
