"""The heartbeat: what is written when, and what silence is."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs
from waiting import until

import headway_adapters.polling.heartbeat as module
from headway.errors import Failure, UserError
from headway_adapters.polling import validated
from headway_adapters.polling.heartbeat import (
    Heart,
    HeartbeatFile,
    LocalFile,
    RemoteFile,
    Word,
    check,
    is_silent,
    read_word,
)
from headway_adapters.slurm import SlurmOptions
from headway_adapters.transport import Result, Transport

DRIVES = Word(True, "a-boot", 5000, 1_000_000, 999_000)


class Kept(HeartbeatFile):
    """A file in memory, on a machine with a clock of its own."""

    def __init__(self, text: str = "", boot: str = "a-boot", uptime: float = 5000.0) -> None:
        super().__init__("/kept")
        self.text, self.now = text, (boot, uptime)
        self.fails = False
        self.written: list[Word | None] = []
        self.may_write = threading.Event()
        self.may_write.set()

    def read(self) -> str:
        return self.text

    def write(self, text: str) -> None:
        assert self.may_write.wait(60)
        if self.fails:
            raise Failure("no")
        self.text = text
        self.written.append(read_word(text))

    def clock(self) -> tuple[str, float]:
        return self.now


# ---------------------------------------------------------------------- the words


@pytest.mark.parametrize("word", [DRIVES, Word(False, "", 0, 1_000_000, 0)])
def test_what_is_written_is_read(word: Word) -> None:
    assert read_word(word.text()) == word and len(word.text()) < module._LONGEST


@given(st.text(max_size=60).map(lambda end: "headway drives boot=" + end))
def test_what_is_no_word_says_nothing(text: str) -> None:
    found = read_word(text)
    assert found is None or found.text().split() == text.split()


@pytest.mark.parametrize("text", ["", "headway", "headway rests", DRIVES.text() * 2, "\0" * 99])
def test_a_broken_file_says_nothing(text: str) -> None:
    assert read_word(text) is None


# ---------------------------------------------------------------------- the file


def test_the_file_is_replaced_as_a_whole_and_everybody_can_read_it(tmp_path: Path) -> None:
    file = LocalFile(str(tmp_path / "heartbeat"))
    assert file.read() == ""
    before = os.umask(0o077)
    try:
        # Left behind by a kill.
        Path(f"{file.path}.new").write_text("half")
        file.write("one\n")
        first = os.stat(file.path)
        file.write("two\n")
    finally:
        os.umask(before)
    assert file.read() == "two\n"
    assert first.st_mode & 0o777 == 0o644 and os.stat(file.path).st_ino != first.st_ino
    assert os.listdir(tmp_path) == ["heartbeat"]


def test_a_file_that_cannot_be_written_or_read_is_an_error_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(Failure, match=r"nowhere/heartbeat cannot be written: No such file"):
        LocalFile(str(tmp_path / "nowhere" / "heartbeat")).write("x")
    with pytest.raises(Failure, match="cannot be read: Is a directory"):
        LocalFile(str(tmp_path)).read()


def test_a_folder_that_others_can_write_into_is_no_place_for_it(tmp_path: Path) -> None:
    file = LocalFile(str(tmp_path / "heartbeat"))
    assert file.check() is None
    tmp_path.chmod(0o777)
    found = file.check()
    assert found is not None and not found.ok and "pretend that headway drives" in found.detail


def test_a_folder_that_is_not_there_is_said_with_who_makes_it(tmp_path: Path) -> None:
    """Nothing can be written there, so jobs would be left to the batch system while headway drives."""
    found = LocalFile(str(tmp_path / "nowhere" / "heartbeat")).check()
    assert found is not None and not found.ok and found.driving and found.helps
    assert f"{tmp_path / 'nowhere'} does not exist" in found.detail
    assert f"install -d {tmp_path / 'nowhere'}" in found.remedy and "headway.service" in found.remedy


def test_root_does_not_know_which_user_is_the_services(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = tmp_path.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(
        Path, "stat", lambda self: os.stat_result((0o40755, 0, 0, 0, owner + 7, 0, 0, 0, 0, 0))
    )
    assert LocalFile(str(tmp_path / "heartbeat")).check() is None
    monkeypatch.setattr(os, "geteuid", lambda: owner + 8)
    assert LocalFile(str(tmp_path / "heartbeat")).check() is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not written yet"),
        ("half a li", "holds nothing that headway wrote"),
        (Word(True, "b", 1, 10**11, 1).text(), "is of the future"),
    ],
)
def test_check_says_what_is_odd_about_the_word(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "heartbeat"
    path.write_text(text)
    assert said in check(SlurmOptions(partitions=("batch",), heartbeat=str(path))).detail


def test_over_ssh_it_is_written_there_by_plain_commands() -> None:
    ran: list[tuple[tuple[str, ...], bytes]] = []

    class Recorded(Transport):
        def run(self, argv: Sequence[str], timeout: float) -> Result:
            return self.feed(argv, b"", timeout)

        def feed(self, argv: Sequence[str], given: bytes, timeout: float) -> Result:
            ran.append((tuple(argv), given))
            out = {"cat": b"there\n77.5 1.0\n", "head": b"word"}.get(argv[0], b"")
            return Result(tuple(argv), 0, out, "", 0.0)

    file = RemoteFile("/run/headway/heartbeat", Recorded(), 5.0)
    assert file.clock() == ("there", 77.5) and file.read() == "word"
    file.write("text\n")
    assert ran[-1] == (("tee", "/run/headway/heartbeat"), b"text\n")


@pytest.mark.parametrize("path", ["heartbeat", "/heartbeat", '/run/"', "/run/a b/c", "/run/../x\n", ""])
def test_only_a_whole_plain_path_is_one(path: str) -> None:
    with pytest.raises(UserError, match="heartbeat"):
        validated(SlurmOptions, {"partitions": ["batch"], "heartbeat": path})


@pytest.mark.parametrize(
    ("patience", "seconds"), [("5m", 300), (0, 0), ("0", 0), (5, 5), (4, None), ("x", None), (True, None)]
)
def test_patience_is_a_time_that_is_long_enough(patience: object, seconds: int | None) -> None:
    if seconds is None:
        with pytest.raises(UserError, match="patience"):
            validated(SlurmOptions, {"partitions": ["batch"], "patience": patience})
    else:
        assert validated(SlurmOptions, {"partitions": ["batch"], "patience": patience}).patience == seconds


# ---------------------------------------------------------------------- beating


@pytest.fixture
def moment(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The monotonic clock."""
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def beat(heart: Heart) -> None:
    heart.beat()
    if heart._writing is not None:
        heart._writing.join()


def test_it_beats_ten_times_in_its_patience_and_says_since_when(moment: list[float]) -> None:
    file = Kept()
    heart = Heart(file, 50.0, None)
    for _ in range(12):
        beat(heart)
        moment[0] += 1.0
    assert len(file.written) == 3
    since = {word.since for word in file.written if word is not None}
    assert len(since) == 1
    moment[0] += 100.0
    time_before = time.time()
    beat(heart)
    last = file.written[-1]
    assert last is not None and last.since >= int(time_before), "it was away for longer than its patience"


def test_the_time_is_that_of_the_loop_however_long_the_writing_takes(moment: list[float]) -> None:
    class Slow(Kept):
        def clock(self) -> tuple[str, float]:
            moment[0] += 30.0
            return "a-boot", 5030.0

    file = Slow()
    beat(Heart(file, 300.0, None))
    assert file.written[0] is not None and file.written[0].up == 5000


def test_a_file_that_hangs_delays_nothing_and_is_not_piled_up(moment: list[float]) -> None:
    file = Kept()
    file.may_write.clear()
    heart, before = Heart(file, 50.0, None), threading.active_count()
    for _ in range(5):
        heart.beat()
        moment[0] += 100.0
    assert threading.active_count() == before + 1 and not file.written
    file.may_write.set()
    until(lambda: file.written, "the first is written")


def test_a_file_that_cannot_be_written_is_told_once_and_that_it_can_again(moment: list[float]) -> None:
    import structlog

    file = Kept()
    with capture_logs() as logs:
        heart = Heart(file, 50.0, structlog.get_logger())
        for fails in (True, True, False, False):
            file.fails = fails
            beat(heart)
            moment[0] += 10.0
    assert [log["event"] for log in logs] == [
        "the heartbeat cannot be written", "the heartbeat is written again",
    ]  # fmt: skip


def test_after_the_end_nothing_is_written(moment: list[float]) -> None:
    file = Kept()
    heart = Heart(file, 50.0, None)
    heart.close()
    beat(heart)
    assert not file.written


# ---------------------------------------------------------------------- silence


def never(seconds: float) -> None:
    raise AssertionError("nothing is to be waited for")


@pytest.mark.parametrize(
    ("age", "silent"), [(-1, False), (0, False), (300, False), (302, True), (-50, True), (10**6, True)]
)
def test_on_its_own_machine_uptime_counts(age: int, silent: bool) -> None:
    file = Kept(Word(True, "a-boot", 5000 - age, 1, 1).text())
    assert is_silent(file, 300.0, never) is silent


@pytest.mark.parametrize("text", ["", "garbage", "headway rests at=1\n"])
def test_a_file_that_says_nothing_is_silence(text: str) -> None:
    assert is_silent(Kept(text), 300.0, never)


@pytest.mark.parametrize("text", ["", "garbage", Word(True, "the boot before", 4000, 1, 1).text()])
def test_a_machine_that_was_just_booted_is_not_silent_yet(text: str) -> None:
    assert not is_silent(Kept(text, uptime=299.0), 300.0, never)
    assert is_silent(Kept(text, uptime=301.0), 300.0, lambda seconds: None)


def test_of_another_boot_the_clocks_count_and_what_they_do_not_say_is_watched() -> None:
    def word(age: float) -> str:
        return Word(True, "other", 1, int(time.time() - age), 1).text()

    assert not is_silent(Kept(word(10)), 300.0, never)
    for age in (400, -4000):
        file = Kept(word(age))
        assert is_silent(file, 300.0, lambda seconds: None)

        def changes(seconds: float, file: Kept = file, age: float = age) -> None:
            file.text = word(age + 1)

        assert not is_silent(file, 300.0, changes)


# ---------------------------------------------------------------------- which daemon it is


def test_the_word_names_the_daemon() -> None:
    led = Word(True, "a-boot", 5000, 1_000_000, 999_000, 7)
    assert led.text() == "headway drives boot=a-boot up=5000 at=1000000 since=999000 epoch=7\n"
    assert read_word(led.text()) == led and read_word(DRIVES.text()) == DRIVES
    assert read_word(led.text().replace("epoch=7", "epoch=x")) is None


def heart(file: HeartbeatFile, epoch: int = 7) -> tuple[Heart, list[int]]:
    found: list[int] = []
    made = Heart(file, 5.0, structlog.get_logger())
    made.lead(epoch, found.append)
    return made, found


def test_a_daemon_that_finds_a_higher_number_says_nothing_more() -> None:
    file = Kept()
    one, found = heart(file)
    one.beat()
    until(lambda: file.written)
    assert (word := file.written[0]) is not None and word.epoch == 7 and one.highest_epoch() == 7
    file.text = Word(True, "a-boot", 5001, 1_000_001, 999_000, 8).text()
    one._next = float("-inf")
    one.beat()
    until(lambda: found)
    assert found == [8] and len(file.written) == 1
    one.close()


def test_before_a_command_a_file_that_is_near_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    file = Kept(Word(True, "a-boot", 5001, 1_000_001, 999_000, 8).text())
    far, found = heart(file)
    far.watch()
    assert not found, "a file of another machine would cost a command"
    file.is_near = True
    far.watch()
    assert found == [8]
    far.watch()
    assert found == [8], "it was looked at a moment ago"
    monkeypatch.setattr(module, "_SURE", 0.0)
    file.text = "headway rests at=5\n"
    far.watch()
    assert found == [8]


@pytest.mark.parametrize("writes", [True, False])
def test_alive_is_who_writes_while_it_is_watched(writes: bool) -> None:
    file = Kept(Word(True, "a-boot", 5000, 1_000_000, 999_000, 8).text())
    one, _ = heart(file)
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if writes and len(pauses) == 3:
            file.text = Word(True, "a-boot", 5001, 1_000_001, 999_000, 8).text()

    assert one.is_alive(pause) is writes
    # Two of its pauses, which are a second with this patience, and a bit.
    assert sum(pauses) == (1.5 if writes else 3.0)


def test_who_gave_back_or_is_silent_is_not_alive() -> None:
    for text in ("", "headway rests at=5\n", Word(True, "a-boot", 4000, 1, 1, 8).text()):
        one, _ = heart(Kept(text))
        assert not one.is_alive(lambda seconds: pytest.fail("it need not be watched"))
