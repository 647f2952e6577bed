"""``headway journal``: what it prints, its exit codes, and what it says of bad input."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from pathlib import Path

import pytest
import yaml
from commandline import Headway
from journals import execute, fill, written_to


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "journal.db"
    fill(made, time.time())
    return made


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "XYZ-3")
    monkeypatch.setenv("COLUMNS", "200")
    time.tzset()


@pytest.fixture(autouse=True)
def _zone_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADWAY_CONFIG", raising=False)


def test_info_of_the_configurations_journal(headway: Headway, path: Path, zone: None) -> None:
    try:
        Path("site.yaml").write_text(yaml.safe_dump({"mode": "dry-run", "journal": str(path)}))
        ran = headway("journal", "info", "-c", "site.yaml")
    finally:
        os.environ.pop("TZ")
        time.tzset()
    assert ran.code == 0
    for said in (f"journal {path}", "SQLite, schema version 1, made by headway", "no process writes to it",
                 "4 runs, 12 cycles, 24 events, 12 decisions", " XYZ",
                 "`headway journal prune` would remove 2 runs: 1, 2"):  # fmt: skip
        assert said in ran.out, ran.out


def test_info_as_json(headway: Headway, path: Path) -> None:
    told = json.loads(headway("journal", "info", "--journal", path, "--json").out)
    assert (told["kind"], told["events"], told["prunable"]) == ("SQLite", 24, [1, 2])
    assert [run["end_reason"] for run in told["runs"]] == ["stopped", "stopped", "", "stopped"]


def test_check_says_by_its_exit_code_whether_the_journal_is_in_order(headway: Headway, path: Path) -> None:
    ran = headway("journal", "check", "--journal", path)
    assert ran.code == 0
    assert ran.out.endswith("in order: 4 runs, 24 events, 12 decisions\n")
    execute(path, "update events set payload = '{' where run_id = 2 and seq = 1 and position = 1")
    ran = headway("journal", "check", "--journal", path)
    assert ran.code == 3
    assert "damaged: run 2, cycle 1, event 1: cannot be read" in ran.out
    ran = headway("journal", "check", "--journal", path, "--json")
    assert ran.code == 3
    assert len(json.loads(ran.out)["faults"]) == 1


def test_prune_tells_first_and_removes_then(headway: Headway, path: Path) -> None:
    before = path.read_bytes()
    ran = headway("journal", "prune", "--dry-run", "--journal", path)
    assert (ran.code, ran.out) == (0, "would remove 2 runs: 1, 2\n")
    assert path.read_bytes() == before
    ran = headway("journal", "prune", "--journal", path)
    assert ran.out.startswith("removed 2 runs: 1, 2\ngiven back: ")
    assert headway("journal", "prune", "--journal", path).out == "removed no run\n"


def test_prune_beside_a_daemon_as_json(headway: Headway, path: Path) -> None:
    with written_to(path, time.time()):
        ran = headway("journal", "prune", "--journal", path, "--json")
    assert json.loads(ran.out) == {"runs": [1, 2], "bytes": 0, "beside": True, "dry_run": False}


def test_what_a_restart_looks_at_cannot_be_pruned(headway: Headway, path: Path) -> None:
    for line in ("prune", "info"):
        ran = headway("journal", line, "--keep", "7d", "--journal", path)
        assert ran.code == 2
        assert "--keep: expected at least 30d" in ran.err


def test_backup_restore_and_move(headway: Headway, path: Path, tmp_path: Path) -> None:
    assert headway("journal", "backup", "saved.db", "--journal", path).code == 0
    again = headway("journal", "backup", "saved.db", "--journal", path)
    assert (again.code, "nothing is overwritten" in again.err) == (2, True)
    ran = headway("journal", "restore", "saved.db", "--journal", path)
    assert (ran.code, "journal.db.replaced-" in ran.out) == (0, True)
    ran = headway("journal", "move", "moved.db", "--journal", path)
    assert (ran.code, "events: 24 rows, the same on both sides" in ran.out) == (0, True)


@pytest.mark.parametrize(
    ("spoil", "code", "said"),
    [
        ("gone", 2, "found no such file"),
        ("directory", 2, "found a directory"),
        ("other", 2, "the tables recipes"),
        ("text", 2, "a file of another kind"),
        ("newer", 2, "use the newer headway"),
        ("locked", 1, "another program has locked it"),
    ],
)
@pytest.mark.parametrize("line", [["info"], ["check"], ["prune"], ["backup", "new.db"], ["move", "new.db"]])
def test_bad_input_is_named_and_left_alone(
    headway: Headway, path: Path, spoil: str, code: int, said: str, line: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("headway.journal.database.BUSY_TIMEOUT", 0.1)
    held = None
    if spoil == "newer":
        execute(path, "update headway_journal set schema_version = 99")
    elif spoil == "locked":
        held = sqlite3.connect(path, isolation_level=None)
        held.execute("pragma locking_mode = exclusive")
        held.execute("begin exclusive")
        held.execute("delete from outcomes where seq = 100")
    else:
        path.unlink()
        if spoil == "directory":
            path.mkdir()
        elif spoil == "other":
            execute(path, "create table recipes (name text)")
        elif spoil == "text":
            path.write_text("mode: drive\n")
    ran = headway("journal", *line, "--journal", path)
    if held is not None:
        held.close()
    assert (ran.code, said in ran.err) == (code, True), ran.err
    assert not Path("new.db").exists()
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("line", [["info"], ["check"], ["backup", "new.db"], ["move", "new.db"]])
def test_a_truncated_journal_is_damaged(headway: Headway, path: Path, line: list[str]) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    ran = headway("journal", *line, "--journal", path)
    assert (ran.code, "damaged" in ran.out + ran.err) == (3, True), ran
    assert not Path("new.db").exists()


def test_without_a_configuration_and_a_journal_it_says_what_is_missing(headway: Headway) -> None:
    ran = headway("journal", "info")
    assert ran.code == 2
    assert "Expected -c FILE" in ran.err
