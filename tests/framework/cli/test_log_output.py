"""The log: on a terminal, in a file, as JSON, and in systemd's journal, where an entry has fields."""

from __future__ import annotations

import json
import os
import re
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from headway.cli.log_output import set_up_log
from headway.config import LogConfig
from headway.inputs import journald
from headway.inputs.trail import Trail, following

STAMP = re.compile(r"20\d\d-\d\d-\d\d")


class Journald:
    """systemd's journal, as far as its native protocol goes."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.path)
        self._socket.setblocking(False)

    def entry(self) -> dict[str, list[str]]:
        """The fields of the next entry, read as systemd reads them."""
        data, found = self._socket.recv(1 << 20), dict[str, list[str]]()
        while data:
            line, _, rest = data.partition(b"\n")
            if b"=" in line:
                name, _, value = line.partition(b"=")
            else:
                (size,) = struct.unpack_from("<Q", rest)
                name, value, rest = line, rest[8 : 8 + size], rest[8 + size + 1 :]
            found.setdefault(name.decode(), []).append(value.decode())
            data = rest
        return found

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(autouse=True)
def structlog_as_before() -> Iterator[None]:
    before = structlog.get_config()
    yield
    structlog.configure(**before)


@pytest.fixture
def under_systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Journald]]:
    """Standard error is the journal's."""
    made: list[Journald] = []

    def start(**more: Any) -> Journald:
        found = os.fstat(2)
        monkeypatch.setenv("JOURNAL_STREAM", f"{found.st_dev}:{found.st_ino}")
        made.append(Journald(tmp_path / "journal"))
        set_up_log(LogConfig(**more), journal=made[-1].path)
        return made[-1]

    yield start
    for one in made:
        one.close()


def log() -> Any:
    return structlog.get_logger("headway")


def test_in_the_journal_an_entry_has_fields_and_no_stamp(under_systemd: Any) -> None:
    there = under_systemd()
    with following(Trail("7-12", ("7-12-0",))):
        log().warning("slurm refused", decision="Start", job="123", id="7-12-0", error="no, not now")
    found = there.entry()
    assert found["JOB"] == ["123"]
    assert (found["DECISION"], found["ID"], found["CYCLE"]) == (["Start"], ["7-12-0"], ["7-12"])
    assert (found["PRIORITY"], found["SYSLOG_IDENTIFIER"]) == (["4"], ["headway"])
    (message,) = found["MESSAGE"]
    assert message.startswith("slurm refused ")
    assert "job=123" in message
    assert not STAMP.search(str(found))


def test_each_of_several_jobs_is_found(under_systemd: Any) -> None:
    there = under_systemd(level="debug")
    log().debug("command", command="scontrol release 1,2", job=["1", "2"], id=None)
    found = there.entry()
    assert found["JOB"] == ["1", "2"]
    assert "ID" not in found
    assert found["PRIORITY"] == ["7"]


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("message", "HEADWAY_MESSAGE"), ("priority", "HEADWAY_PRIORITY"), ("code_file", "HEADWAY_CODE_FILE"),
        ("_pid", "HEADWAY__PID"), ("1st", "HEADWAY_1ST"), ("a key", "A_KEY"), ("Ä=\n", "HEADWAY____"),
    ],
)  # fmt: skip
def test_no_key_is_taken_for_what_the_journal_means_itself(key: str, name: str) -> None:
    assert journald.field(key) == name


def test_no_value_makes_fields_of_its_own(under_systemd: Any) -> None:
    there = under_systemd()
    entry = journald.entry("a\nPRIORITY=0", "info", {"reason": "x\n_SYSTEMD_UNIT=ssh.service\nJOB=9"})
    sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    with sender:
        sender.sendto(entry, there.path)
    found = there.entry()
    assert set(found) == {"MESSAGE", "PRIORITY", "SYSLOG_IDENTIFIER", "REASON"}
    assert found["PRIORITY"] == ["6"]
    assert found["REASON"] == ["x\n_SYSTEMD_UNIT=ssh.service\nJOB=9"]


def test_a_traceback_is_kept(under_systemd: Any) -> None:
    there = under_systemd()
    try:
        raise ValueError("wrong")
    except ValueError as error:
        log().error("a look could not be read", exc_info=error)
    found = there.entry()
    assert "ValueError: wrong" in found["EXCEPTION"][0]
    assert "ValueError: wrong" in found["MESSAGE"][0]


def test_a_very_long_value_is_cut(under_systemd: Any) -> None:
    there = under_systemd()
    log().info("notice", reason="x" * 500_000, job=[str(number) for number in range(5000)])
    found = there.entry()
    assert len(found["REASON"][0]) < 20_000
    assert len(found["JOB"]) == 200


def test_where_the_journal_takes_no_entries_its_stream_gets_priorities(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    found = os.fstat(2)
    monkeypatch.setenv("JOURNAL_STREAM", f"{found.st_dev}:{found.st_ino}")
    set_up_log(LogConfig(), journal=str(tmp_path / "none"))
    log().error("ended", reason="two\nlines")
    said = capfd.readouterr().err.splitlines()
    assert all(line.startswith("<3>") for line in said)
    assert said[0].startswith("<3>ended ")
    assert not STAMP.search(said[0])


def test_a_journal_that_goes_away_costs_no_line(
    under_systemd: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    there = under_systemd()
    there.close()
    os.unlink(there.path)
    log().info("started", mode="drive")
    assert capfd.readouterr().err.startswith("<6>started ")


def test_text_is_text_in_the_journal_too(under_systemd: Any, capfd: pytest.CaptureFixture[str]) -> None:
    there = under_systemd(format="text")
    log().info("started", mode="drive")
    assert capfd.readouterr().err == "<6>started mode=drive\n"
    with pytest.raises(BlockingIOError):
        there.entry()


def test_json_is_a_whole_record_everywhere(under_systemd: Any, capfd: pytest.CaptureFixture[str]) -> None:
    under_systemd(format="json")
    with following(Trail("7-12", ())):
        log().info("decided", job="1", id="7-12-0")
    (line,) = capfd.readouterr().err.splitlines()
    found = json.loads(line)
    assert STAMP.match(found.pop("timestamp"))
    assert found == {"event": "decided", "level": "info", "job": "1", "id": "7-12-0", "cycle": "7-12"}


@pytest.mark.parametrize("kind", ["console", "text"])
def test_elsewhere_a_line_has_its_time(
    kind: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JOURNAL_STREAM", "1:2")
    set_up_log(LogConfig(format=kind))  # type: ignore[arg-type]
    log().info("started", mode="drive")
    said = capfd.readouterr().err
    assert STAMP.match(said)
    assert "[info     ]" in said


@pytest.mark.parametrize("said", ["", "1:2", "nonsense"])
def test_another_stream_is_not_the_journals(said: str) -> None:
    assert not journald.is_stream({"JOURNAL_STREAM": said})
    assert not journald.is_stream({})
