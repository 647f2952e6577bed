"""What a journal keeps, whom it lets in, and what it says when the world does not cooperate."""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from journals import schema_of
from waiting import limit

from headway.adapter import Outcome
from headway.decisions import Decision, Hold, PowerDown, Start, SubmitSubjob, SwapTiers
from headway.errors import Failure, Held, UserError
from headway.events import DecisionFailed, Event, JobEnded, JobStarted, JobSubmitted, NodeDown
from headway.journal import HistoryEntry, Journal, JournalWriter, NullJournal, RunInfo
from headway.model import ClusterDescription, JobDescription, Request


def info(mode: str = "drive", started_at: float = 1000.0, **more: Any) -> RunInfo:
    return RunInfo(
        mode=mode,
        started_at=started_at,
        version="0.1.0",
        config_text="policy: easy\n",
        seed=42,
        cluster=ClusterDescription.flat(16),
        **more,
    )


def submitted(job_id: str, time: float = 0.0) -> JobSubmitted:
    return JobSubmitted(time, JobDescription(job_id, time, Request(4, 3600.0)))


def record(
    journal: JournalWriter,
    seq: int,
    events: list[Event],
    decisions: list[Decision],
    outcomes: list[Outcome] | None = None,
) -> None:
    """One cycle at time 10 * seq; every decision accepted unless said otherwise."""
    journal.record_events(seq, 10.0 * seq, events)
    journal.record_decisions(seq, decisions)
    journal.record_outcomes(seq, [Outcome(True)] * len(decisions) if outcomes is None else outcomes)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, path: Path) -> Iterator[str]:
    """Where a new journal can be made: a file; an empty schema of a PostgreSQL database."""
    if request.param == "sqlite":
        yield str(path)
        return
    with schema_of(request.getfixturevalue("postgres")) as url:
        yield url


# -- what is kept --------------------------------------------------------------------------------


def test_a_run_is_read_back_by_another_process_s_reader_while_it_goes_on(place: str) -> None:
    start = Start("1", (("n1", 4),), "first in the queue")
    with Journal.open(place) as journal:
        run = journal.begin_run(info(plugin_states={"fair-share": {"anna": 3.5}}))
        record(journal, 1, [submitted("1")], [start, Hold("2")], [Outcome(True), Outcome(False, "unknown")])
        with Journal.open(place, read_only=True) as reader:
            (known,) = reader.runs()
            assert (known.id, known.ended_at, known.end_reason) == (run, None, "")
            assert known.info == info(plugin_states={"fair-share": {"anna": 3.5}})
            (cycle,) = reader.cycles(run)
            assert (cycle.seq, cycle.now) == (1, 10.0)
            assert cycle.events == (submitted("1"),)
            assert cycle.decisions == (start, Hold("2"))
            assert cycle.outcomes == (Outcome(True), Outcome(False, "unknown"))
            journal.record_events(2, 20.0, [])
            assert [(c.seq, c.now, c.events) for c in reader.cycles(run)][1:] == [(2, 20.0, ())]


@pytest.mark.parametrize(("array", "element"), [("9", "9_{}"), ("9%[].hw", "9%[{}].hw"), ("9é", "9é[{}]")])
def test_an_arrays_elements_are_found_by_its_id(place: str, array: str, element: str) -> None:
    def one(number: int, array_id: str) -> JobSubmitted:
        description = JobDescription(
            element.format(number), 5.0, Request(1, 50.0), array_id=array_id, array_index=number
        )
        return JobSubmitted(5.0, description)

    with Journal.open(place) as journal:
        journal.begin_run(info())
        record(
            journal, 1, [submitted("9"), submitted("99"), one(10, array), one(2, array), one(3, "other")], []
        )
        assert journal.elements(array) == [element.format(2), element.format(10)]
        assert journal.elements("nobody") == []


def test_cycles_come_in_order_also_when_there_are_more_than_are_read_at_once(path: Path) -> None:
    with Journal.open(path) as journal:
        run = journal.begin_run(info())
        for seq in range(0, 2400, 2):
            journal.record_events(seq, float(seq), [NodeDown(float(seq), "n1")])
        read = list(journal.cycles(run))
    assert [cycle.seq for cycle in read] == list(range(0, 2400, 2))
    assert all(cycle.events == (NodeDown(cycle.now, "n1"),) for cycle in read)


def test_decisions_without_an_outcome_are_unfinished(place: str) -> None:
    with Journal.open(place) as journal:
        run = journal.begin_run(info())
        record(journal, 1, [], [Start("1"), Start("2")])
        record(journal, 2, [], [Start("3"), Start("4")], [Outcome(False, "no")])
        journal.record_events(3, 30.0, [])
        journal.record_decisions(3, [Start("5")])
    with Journal.open(place) as journal:
        found = [(u.seq, u.position, u.time, u.decision) for u in journal.unfinished(run)]
    assert found == [(2, 1, 20.0, Start("4")), (3, 0, 30.0, Start("5"))]


def test_starts_are_the_start_decisions_in_order(place: str) -> None:
    with Journal.open(place) as journal:
        run = journal.begin_run(info())
        record(journal, 1, [], [Start("1", reason="fits"), Hold("2"), Start("3")])
        record(journal, 4, [], [Start("10")])
        assert journal.starts(run) == [
            (1, 10.0, Start("1", reason="fits")),
            (1, 10.0, Start("3")),
            (4, 40.0, Start("10")),
        ]


def test_a_job_s_history_goes_over_all_runs_and_names_all_that_concerned_it(place: str) -> None:
    child = JobDescription("child", 0.0, Request(1, 60.0))
    with Journal.open(place) as journal:
        first = journal.begin_run(info())
        record(journal, 1, [submitted("1"), submitted("2")], [Start("1"), Start("2")], [Outcome(True)])
        failed = DecisionFailed(20.0, Start("2"), "no")
        record(journal, 2, [JobStarted(20.0, "1"), failed], [SwapTiers("2", "1")])
        journal.end_run("restart")
        second = journal.begin_run(info())
        record(journal, 1, [JobEnded(7.0, "1")], [SubmitSubjob("1", child), PowerDown(("n1",))])

        assert journal.job_history("1") == [
            HistoryEntry(first, 1, 0.0, "event", submitted("1")),
            HistoryEntry(first, 1, 10.0, "decision", Start("1"), Outcome(True)),
            HistoryEntry(first, 2, 20.0, "event", JobStarted(20.0, "1")),
            HistoryEntry(first, 2, 20.0, "decision", SwapTiers("2", "1"), Outcome(True)),
            HistoryEntry(second, 1, 7.0, "event", JobEnded(7.0, "1")),
            HistoryEntry(second, 1, 10.0, "decision", SubmitSubjob("1", child), Outcome(True)),
        ]
        assert [entry.what for entry in journal.job_history("2", run_id=first)] == [
            submitted("2"), Start("2"), failed, SwapTiers("2", "1"),
        ]  # fmt: skip
        assert [entry.outcome for entry in journal.job_history("2")][1] is None
        assert journal.job_history("2", run_id=second) == []
        assert [entry.run_id for entry in journal.job_history("child")] == [second]
        assert journal.job_history("nobody") == []


def test_the_index_of_other_jobs_has_the_rows_that_name_one(place: str) -> None:
    with Journal.open(place) as journal:
        journal.begin_run(info())
    if place.startswith("postgresql"):
        psycopg = pytest.importorskip("psycopg")
        asked = "SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema()"
        with psycopg.connect(place) as connection:
            made = [line for (line,) in connection.execute(asked)]
    else:
        with sqlite3.connect(place) as connection:
            asked = "SELECT sql FROM sqlite_master WHERE type = 'index'"
            made = [line for (line,) in connection.execute(asked)]
    others = [line for line in made if line and "other_job_id" in line]
    assert len(others) == 2
    assert all(re.search(r"WHERE \(?other_job_id IS NOT NULL", line) for line in others)


def test_a_checkpoint_replaces_the_one_before_it(place: str) -> None:
    with Journal.open(place) as journal:
        run = journal.begin_run(info())
        assert journal.last_checkpoint(run) is None
        journal.checkpoint(1, {"a": [1, None, 2.5], "gone": 1})
        journal.checkpoint(9, {"a": {"x": "y"}, "b": None})
        found = journal.last_checkpoint(run)
    assert found is not None
    assert (found.seq, found.states) == (9, {"a": {"x": "y"}, "b": None})


def test_the_state_of_some_plugins_leaves_that_of_others(place: str) -> None:
    with Journal.open(place) as journal:
        run = journal.begin_run(info())
        journal.checkpoint(1, {"a": 1, "b": 2, "c": 3})
        journal.checkpoint(9, {"b": 4}, of=["b", "c"])
        found = journal.last_checkpoint(run)
    assert found is not None
    assert (found.seq, found.states) == (1, {"a": 1, "b": 4})


def test_the_last_run_of_a_mode(place: str) -> None:
    with Journal.open(place) as journal:
        assert journal.last_run() is None
        for mode in ("drive", "monitor"):
            journal.begin_run(info(mode))
            journal.end_run("done", ended_at=2000.0)
        last, drive = journal.last_run(), journal.last_run("drive")
        assert last is not None and drive is not None
        assert (last.info.mode, drive.info.mode, drive.ended_at) == ("monitor", "drive", 2000.0)
        assert journal.last_run("dry-run") is None


def test_pruning_removes_what_was_over_before_and_keeps_the_run_being_written(place: str) -> None:
    with Journal.open(place) as journal:
        ended = journal.begin_run(info(started_at=100.0))
        for seq in range(300):
            record(journal, seq, [submitted(str(seq))] * 10, [Start(str(seq))])
        journal.end_run("done", ended_at=200.0)
        journal.begin_run(info(started_at=300.0))
    with Journal.open(place) as journal:
        recent = journal.begin_run(info(started_at=400.0))
        record(journal, 1, [submitted("5")], [Start("5")])
        journal.end_run("done", ended_at=900.0)
        current = journal.begin_run(info(started_at=950.0))
        record(journal, 1, [], [Start("6")])
        before = journal.size()

        # The first ended at 200; the second was killed, so it was over at 400 at the latest.
        assert journal.prune(200.0) == 0
        assert journal.prune(401.0) == 2
        assert [run.id for run in journal.runs()] == [recent, current]
        assert journal.size() < before / 2
        assert {entry.run_id for entry in journal.job_history("5")} == {recent}
        with pytest.raises(UserError, match=f"found {ended}. Its runs: {recent}, {current}"):
            journal.cycles(ended)

        assert journal.prune(1e12) == 1
        record(journal, 2, [], [Start("7")])
        assert [start.job_id for _, _, start in journal.starts(current)] == ["6", "7"]


def test_the_last_run_is_never_pruned_when_it_was_killed(path: Path) -> None:
    with Journal.open(path) as journal:
        journal.begin_run(info(started_at=100.0))
    with Journal.open(path) as journal:
        assert journal.prune(1e12) == 0
        assert len(journal.runs()) == 1


def test_what_is_out_of_order_is_refused(path: Path) -> None:
    with Journal.open(path) as journal:
        with pytest.raises(ValueError, match="no run has begun"):
            journal.record_events(1, 0.0, [])
        journal.begin_run(info())
        with pytest.raises(ValueError, match="has not ended"):
            journal.begin_run(info())
        with pytest.raises(ValueError, match="do not follow its events"):
            journal.record_decisions(1, [])
        record(journal, 1, [], [Start("1")])
        with pytest.raises(ValueError, match="cycle 1 after cycle 1"):
            journal.record_events(1, 0.0, [])
        with pytest.raises(ValueError, match="do not follow its events"):
            journal.record_decisions(1, [])
        with pytest.raises(ValueError, match="do not follow its decisions"):
            journal.record_outcomes(1, [])
        journal.record_events(2, 0.0, [])
        with pytest.raises(ValueError, match="do not follow its decisions"):
            journal.record_outcomes(2, [])
        journal.record_decisions(2, [])
        with pytest.raises(ValueError, match="1 outcomes for 0 decisions"):
            journal.record_outcomes(2, [Outcome(True)])
    reader = Journal.open(path, read_only=True)
    with pytest.raises(ValueError, match="not open for writing"):
        reader.begin_run(info())
    reader.close()


def test_the_null_journal_takes_the_same_calls_and_keeps_nothing(path: Path) -> None:
    journal: JournalWriter
    for journal, enabled in ((NullJournal(), False), (Journal.open(path), True)):
        assert journal.enabled is enabled
        assert isinstance(journal.begin_run(info()), int)
        record(journal, 1, [submitted("1")], [Start("1")])
        journal.checkpoint(1, {"a": 1})
        journal.end_run("done")
        journal.close()


# -- whom it lets in -----------------------------------------------------------------------------


def test_a_second_writer_is_told_who_the_first_is(place: str) -> None:
    with Journal.open(place):
        with pytest.raises(Held, match=f"process {os.getpid()} on host {socket.gethostname()}"):
            Journal.open(place)
        Journal.open(place, read_only=True).close()
    Journal.open(place).close()


@pytest.mark.parametrize("content", [b"policy: easy\n", b"SQLite format 3\0 and then rubbish" * 100])
def test_a_file_of_another_kind_is_refused_and_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    for read_only in (False, True):
        with pytest.raises(UserError, match=f"{path}: expected a headway journal, found a file of another"):
            Journal.open(path, read_only=read_only)
    assert path.read_bytes() == content


def test_a_database_of_somebody_else_is_refused_and_left_alone(path: Path) -> None:
    with sqlite3.connect(path) as other:
        other.execute("create table recipes (name text)")
    other.close()
    content = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(UserError, match=r"expected a headway journal, found .* the tables recipes"):
            Journal.open(path, read_only=read_only)
    assert path.read_bytes() == content


@pytest.mark.parametrize(("version", "hint"), [("99", "newer headway"), ("0", "damaged"), ("'x'", "damaged")])
def test_another_schema_is_refused_with_both_versions(path: Path, version: str, hint: str) -> None:
    Journal.open(path).close()
    with sqlite3.connect(path) as database:
        database.execute(f"update headway_journal set schema_version = {version}")
    database.close()
    expected = f"{path}: expected schema version 1, found {version}: .*{hint}"
    for read_only in (False, True):
        with pytest.raises(UserError, match=expected):
            Journal.open(path, read_only=read_only)


def test_a_missing_directory_or_file_is_the_user_s_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"expected its directory .*/nowhere to exist"):
        Journal.open(tmp_path / "nowhere" / "journal.db")
    with pytest.raises(UserError, match="expected a file, found a directory"):
        Journal.open(tmp_path)
    for options in ({"create": False}, {"read_only": True}):
        with pytest.raises(UserError, match="found no such file"):
            Journal.open(tmp_path / "journal.db", **options)
    (tmp_path / "empty.db").touch()
    with pytest.raises(UserError, match="found an empty file"):
        Journal.open(tmp_path / "empty.db", create=False)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["empty.db"]
    Journal.open(tmp_path / "empty.db").close()


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("mysql://host/db", "mysql"),
        ("nosuch://host/db", "nosuch"),
        ("sqlite://", "found no file"),
        ("postgresql://host:port/db", "cannot be read"),
    ],
)
def test_an_address_of_another_kind_is_the_user_s_mistake(address: str, found: str) -> None:
    with pytest.raises(UserError, match=rf"expected a file's path.*{found}"):
        Journal.open(address)


def test_an_address_that_cannot_be_read_is_not_repeated() -> None:
    # Without its host the password stands where the port does.
    with pytest.raises(UserError, match="cannot be read") as error:
        Journal.open("postgresql://ann:secret")
    assert "secret" not in str(error.value)


def test_a_sqlite_address_names_a_file_also_with_awkward_characters(tmp_path: Path) -> None:
    for path in (tmp_path / "plain.db", tmp_path / "a b?c#d%20ü\udc80.db"):
        Journal.open(path).close()
        assert path.exists()
        with Journal.open(path, read_only=True) as journal:
            assert journal.runs() == []
    Journal.open(f"sqlite:///{tmp_path}/plain.db", create=False).close()


def test_a_server_that_does_not_answer_is_a_failure_and_the_password_stays_secret() -> None:
    pytest.importorskip("psycopg")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(Failure, match="cannot open") as caught:
            Journal.open(f"postgresql://anna:secret@127.0.0.1:{unused.getsockname()[1]}/x")
    assert "secret" not in str(caught.value)


# -- when the world does not cooperate -----------------------------------------------------------


def fill_until_failure(journal: Journal) -> tuple[int, Failure]:
    """Record until that fails; the first cycle that was not recorded, and what was said."""
    for seq in range(1, 100_000):
        try:
            record(journal, seq, [submitted(f"{seq}.{n}") for n in range(100)], [Start(str(seq))])
        except Failure as failure:
            return seq, failure
    raise AssertionError("never full")


def assert_consistent(path: Path, journal: Journal, run: int, failed: int) -> None:
    """All before the failed cycle is there, and the journal can be used again at once."""
    whole = [c.seq for c in journal.cycles(run) if len(c.events) == 100 and len(c.decisions) == 1]
    assert whole[: failed - 1] == list(range(1, failed))
    record(journal, failed + 1, [submitted("again")], [Start("again")])
    journal.end_run("done")
    journal.close()
    with Journal.open(path) as journal:
        assert [what.what for what in journal.job_history("again")] == [submitted("again"), Start("again")]
    database = sqlite3.connect(path)
    assert database.execute("pragma integrity_check").fetchall() == [("ok",)]
    database.close()


def test_a_file_that_may_not_grow_is_a_failure_that_loses_nothing(path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Journal.open(path) as journal:
        run = journal.begin_run(info())
        resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, hard))
        try:
            failed, failure = fill_until_failure(journal)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert str(failure).startswith(f"journal {path}: cannot write: the file cannot be read or written")
        assert_consistent(path, journal, run, failed)


def test_a_full_disk_is_a_failure_that_loses_nothing(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = os.geteuid() == 0 and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(disk)], capture_output=True
    ).returncode == 0  # fmt: skip
    if not mounted:
        pytest.skip("cannot mount a small file system here: needs root")
    try:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(300_000))
        with Journal.open(disk / "journal.db") as journal:
            run = journal.begin_run(info())
            failed, failure = fill_until_failure(journal)
            assert str(failure).startswith(f"journal {disk}/journal.db: cannot write: the disk is full")
            ballast.unlink()
            assert_consistent(disk / "journal.db", journal, run, failed)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.fixture
def bound_by_permissions() -> Iterator[Path]:
    """A directory of its own; the test is run by a user whom file permissions bind, not by root."""
    # Not below tmp_path: its parents belong to pytest, and to root alone.
    with tempfile.TemporaryDirectory(prefix="headway-test-") as directory:
        if os.geteuid() != 0:
            yield Path(directory)
            return
        os.chown(directory, 65534, -1)
        os.seteuid(65534)
        try:
            yield Path(directory)
        finally:
            os.seteuid(0)


def test_a_file_without_write_permission_can_be_read_only(bound_by_permissions: Path) -> None:
    path = bound_by_permissions / "journal.db"
    with Journal.open(path) as journal:
        run = journal.begin_run(info())
        record(journal, 1, [submitted("1")], [Start("1")])
    path.chmod(0o444)
    with pytest.raises(Failure, match="cannot open for writing: the file is read-only"):
        Journal.open(path)
    path.parent.chmod(0o555)
    try:
        with Journal.open(path, read_only=True) as journal:
            assert len(journal.starts(run)) == 1
    finally:
        path.parent.chmod(0o755)
    path.chmod(0)
    with pytest.raises(Failure, match="cannot be read: Permission denied"):
        Journal.open(path)


def test_a_journal_in_a_directory_without_write_permission_can_be_read(bound_by_permissions: Path) -> None:
    path = bound_by_permissions / "journal.db"
    with Journal.open(path) as journal:
        run = journal.begin_run(info())
        record(journal, 1, [submitted("1")], [Start("1")])
    path.parent.chmod(0o555)
    try:
        with Journal.open(path, read_only=True) as journal:
            assert len(journal.starts(run)) == 1
        assert sorted(file.name for file in path.parent.iterdir()) == ["journal.db"]
    finally:
        path.parent.chmod(0o755)


def test_a_file_that_another_program_has_locked_is_a_failure_until_it_is_free(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.journal.database.BUSY_TIMEOUT", 0.05)
    with Journal.open(path) as journal:
        run = journal.begin_run(info())
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("begin immediate")
        with pytest.raises(Failure, match="cannot write: another program has locked it"):
            journal.record_events(1, 0.0, [submitted("1")])
        other.execute("rollback")
        other.close()
        journal.record_events(1, 0.0, [submitted("1")])
        assert [cycle.events for cycle in journal.cycles(run)] == [(submitted("1"),)]


def test_a_server_that_hung_up_is_a_failure_and_the_lock_is_taken_again(
    place: str,
) -> None:
    if "://" not in place:
        pytest.skip("a file has no server")
    with Journal.open(place) as journal:
        run = journal.begin_run(info())
        record(journal, 1, [], [Start("1")])
        assert journal._database.connection is not None
        with journal._database.connection.begin():
            backend = journal._database.connection.exec_driver_sql("select pg_backend_pid()").scalar_one()
        with journal._database.reading() as other:
            other.exec_driver_sql(f"select pg_terminate_backend({backend}, 5000)")
        with pytest.raises(Failure, match="cannot write"):
            journal.record_events(2, 20.0, [submitted("2")])
        record(journal, 2, [submitted("2")], [Start("2")])
        assert [cycle.seq for cycle in journal.cycles(run)] == [1, 2]
        with pytest.raises(Held, match=f"process {os.getpid()}"):
            Journal.open(place)


def test_a_damaged_row_is_a_failure_that_shows_it(path: Path) -> None:
    with Journal.open(path) as journal:
        run = journal.begin_run(info())
        record(journal, 1, [submitted("1")], [])
        with sqlite3.connect(path) as other:
            other.execute("""update events set payload = '{"event":"Nonsense"}'""")
        other.close()
        with pytest.raises(Failure, match=r"damaged: .*Nonsense"):
            list(journal.cycles(run))


# -- crashes -------------------------------------------------------------------------------------

#: Records cycles and says after each step what has been recorded.
RECORDER = """
import sys
from headway.adapter import Outcome
from headway.decisions import Start
from headway.events import JobEnded
from headway.journal import Journal, RunInfo
from headway.model import ClusterDescription

def say(*what):
    sys.stdout.write(" ".join(map(str, what)) + "\\n")
    sys.stdout.flush()

journal = Journal.open(sys.argv[1])
say("run", journal.begin_run(RunInfo("drive", 1.0, "0", "", 0, ClusterDescription.flat(4))))
for seq in range(1, 1_000_000):
    journal.record_events(seq, float(seq), [JobEnded(float(seq), str(seq))] * (seq % 7))
    say("events", seq)
    journal.record_decisions(seq, [Start(str(seq)), Start("x")])
    say("decisions", seq)
    journal.record_outcomes(seq, [Outcome(True), Outcome(False)])
    say("outcomes", seq)
    if seq % 5 == 0:
        journal.checkpoint(seq, {"plugin": seq})
        say("checkpoint", seq)
"""


@pytest.mark.parametrize("delay", [0.0, 0.013, 0.05, 0.17, 0.4])
def test_what_was_recorded_before_sigkill_is_there_and_the_lock_is_free(place: str, delay: float) -> None:
    recorder = subprocess.Popen([sys.executable, "-c", RECORDER, place], stdout=subprocess.PIPE, text=True)
    assert recorder.stdout is not None
    said = [recorder.stdout.readline()]
    time.sleep(delay)
    recorder.send_signal(signal.SIGKILL)
    said += recorder.stdout.read().splitlines()
    recorder.wait()
    recorder.stdout.close()
    # The last line may have been cut.
    words = [line.split() for line in said if len(line.split()) == 2]
    run = int(words[0][1])
    last = {what: int(seq) for what, seq in words[1:-1]}

    with patiently_opened(place) as journal:
        cycles = list(journal.cycles(run))
        assert [cycle.seq for cycle in cycles] == list(range(1, len(cycles) + 1))
        assert len(cycles) - last.get("events", 0) in (0, 1, 2)
        for cycle in cycles:
            assert cycle.events == (JobEnded(cycle.now, str(cycle.seq)),) * (cycle.seq % 7)
            if cycle.seq <= last.get("decisions", 0):
                assert cycle.decisions == (Start(str(cycle.seq)), Start("x"))
            if cycle.seq <= last.get("outcomes", 0):
                assert cycle.outcomes == (Outcome(True), Outcome(False))
        checkpoint = journal.last_checkpoint(run)
        assert last.get("checkpoint", 0) <= (checkpoint.seq if checkpoint else 0)
        assert {u.seq for u in journal.unfinished(run)} <= {len(cycles)}
        second = journal.begin_run(info())
        record(journal, 1, [], [Start("1")])
        assert second > run


def patiently_opened(place: str) -> Journal:
    """The file's lock is free at once; a server notices within a moment that its client is dead."""
    deadline = time.monotonic() + (limit() if "://" in place else 0.0)
    while True:
        try:
            return Journal.open(place)
        except Held:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def test_a_creation_that_was_cut_short_is_made_good(path: Path) -> None:
    # What SIGKILL leaves between the file and its tables: an empty database in WAL mode.
    database = sqlite3.connect(path)
    database.execute("pragma journal_mode=wal")
    database.close()
    assert path.stat().st_size > 0
    with Journal.open(path) as journal:
        assert journal.runs() == []


def test_every_record_is_followed_by_an_fsync(path: Path) -> None:
    """Power loss cannot be had in a test; that SQLite was told to wait for the disk can be seen."""
    with Journal.open(path) as journal:
        connection = journal._database.connection
        assert connection is not None
        with connection.begin():
            assert connection.exec_driver_sql("pragma synchronous").scalar_one() == 2
            assert connection.exec_driver_sql("pragma journal_mode").scalar_one() == "wal"
