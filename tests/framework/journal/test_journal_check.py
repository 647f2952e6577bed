"""Each thing that is wrong with a journal is named with its place."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import pytest
from journals import DAY, execute, fill, written_to

from headway.journal.checking import Findings, check
from headway.journal.database import Database
from headway.journal.summary import summary


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "journal.db"
    fill(made, time.time())
    return made


def found(path: Path) -> Findings:
    with closing(Database(path, create=False, read_only=True)) as database:
        return check(database)


def test_a_journal_in_order_has_no_faults_and_its_records_are_counted(path: Path) -> None:
    assert found(path) == Findings(str(path), 4, 24, 12, [], ["run 3 was killed: it has no end"])


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("update events set payload = '{\"type\":' where run_id = 2 and seq = 1 and position = 1",
         "run 2, cycle 1, event 1: cannot be read"),
        ("update events set payload = cast(x'ff41' as text) where run_id = 2 and seq = 1 and position = 1",
         "run 2, cycle 1, event 1: cannot be read"),
        ("update events set payload = x'ff41' where run_id = 2 and seq = 1 and position = 0",
         "run 2, cycle 1, event 0: cannot be read: expected a text"),
        ("update decisions set payload = '[]' where run_id = 1 and seq = 2",
         "run 1, cycle 2, decision 0: cannot be read"),
        ("update decisions set kind = 'Hold' where run_id = 1 and seq = 2",
         "run 1, cycle 2, decision 0: expected the kind Start, found 'Hold'"),
        ("update checkpoints set state = '{' where run_id = 4 and plugin = 'share'",
         "run 4: the checkpoint of plugin 'share': cannot be read"),
        ("update runs set cluster = 'x' where id = 2", "run 2: the cluster's description: cannot be read"),
        ("update runs set seed = 'x' where id = 2", "run 2: expected a whole number as seed, found 'x'"),
        ("update runs set end_reason = '' where id = 2", "run 2: has an end but no reason of its end"),
        ("delete from events where run_id = 2 and seq = 1 and position = 0",
         "run 2, cycle 1: expected events numbered from 0 on, found 1 from 1 to 1"),
        ("delete from cycles where run_id = 2 and seq = 1",
         "run 2, cycle 1: has events, but the cycle itself is missing"),
        ("delete from decisions where run_id = 2 and seq = 1",
         "run 2, cycle 1: outcome 0 belongs to no decision"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_place(path: Path, statement: str, said: str) -> None:
    execute(path, statement)
    assert any(fault.startswith(said) for fault in found(path).faults), found(path).faults


def test_a_page_that_is_broken_is_damage_and_not_the_end_of_the_check(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[3 * 4096 : 5 * 4096] = b"\xff" * 8192
    path.write_bytes(data)
    assert found(path).faults


def test_the_check_and_the_summary_only_read_and_run_beside_a_daemon(path: Path) -> None:
    now = time.time()
    with written_to(path, now):
        assert found(path).faults == []
        with closing(Database(path, create=False, read_only=True)) as database:
            told = summary(database, 90 * DAY)
    assert told.being_written is True
    assert (told.kind, told.schema_version) == ("SQLite", 1)
    assert [run.mode for run in told.runs] == ["drive"] * 5
    assert [run.events for run in told.runs[:4]] == [6] * 4
    assert told.prunable == [1, 2]
    assert told.oldest is not None and told.newest is not None
    assert told.oldest == pytest.approx(now - 200 * DAY)
    assert told.newest == pytest.approx(now)


def test_the_summary_of_a_journal_without_runs(tmp_path: Path) -> None:
    with closing(Database(tmp_path / "new.db", create=True, read_only=False)) as database:
        told = summary(database, 90 * DAY)
    assert (told.runs, told.oldest, told.newest, told.prunable) == ([], None, None, [])
