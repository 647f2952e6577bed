"""The site's command for a letter: its input is whole, its output is bounded, and it ends."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest
from waiting import HANG, until

from headway.errors import Failure
from headway.letters.program import Program


def script(body: str) -> list[str]:
    return ["/bin/sh", "-c", body]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_it_gets_its_words_and_the_whole_text(tmp_path: Path) -> None:
    text = os.urandom(500_000)
    words = ["a b", "$(id)", "%s", "'\"", "é", ""]
    record = "import sys; sys.stdout.flush(); open(sys.argv[1], 'wb').write(sys.stdin.buffer.read()); " \
        "open(sys.argv[2], 'w').write(repr(sys.argv[3:]))"  # fmt: skip
    Program().run(
        [sys.executable, "-c", record, str(tmp_path / "text"), str(tmp_path / "argv"), *words], text, HANG
    )
    assert (tmp_path / "text").read_bytes() == text
    assert (tmp_path / "argv").read_text() == repr(words)


def test_it_need_not_read_and_may_print_without_end() -> None:
    Program().run(
        script("exec 0<&-; head -c 5000000 /dev/zero; head -c 5000000 /dev/zero >&2"), b"x" * 10**6, HANG
    )


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("exit 3", "/bin/sh: exit status 3$"),
        ("echo no such user >&2; echo really >&2; exit 67", "exit status 67: no such user really$"),
        ("kill -9 $$", "signal 9$"),
        ("head -c 5000000 /dev/zero | tr '\\0' x >&2; exit 1", "exit status 1: x{300}$"),
    ],
)
def test_what_it_fails_with_is_said(body: str, says: str) -> None:
    with pytest.raises(Failure, match=says):
        Program().run(script(body), b"", HANG)


@pytest.mark.parametrize("program", ["no-such-program-here", "/etc/passwd", "/no/such/place"])
def test_what_cannot_be_started_is_a_failure_that_names_it(program: str) -> None:
    with pytest.raises(Failure, match=f"{program} could not be started: "):
        Program().run([program, "ann"], b"", HANG)


@pytest.mark.parametrize(
    "body",
    [
        "sleep 1000", "trap '' TERM INT HUP; while :; do sleep 1000; done", "exec 2>&-; sleep 1000",
        "while :; do echo x >&2; done",
    ],
)  # fmt: skip
def test_what_hangs_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    pids = tmp_path / "pids"

    class Clock:
        """The time-out comes once the command hangs."""

        began = False

        def monotonic(self) -> float:
            if not self.began:
                self.began = True
                return 0.0
            return 1e6 if pids.exists() and pids.read_text().endswith("\n") else 0.0

    monkeypatch.setattr("headway.letters.program.time", Clock())
    with pytest.raises(Failure, match="/bin/sh did not end within 600 s"):
        Program().run(script(f"sleep 1000 2>/dev/null & echo $! $$ > {pids}; {body}"), b"", 600.0)
    for pid in map(int, pids.read_text().split()):
        until(lambda pid=pid: not alive(pid), f"{pid} is over")


def test_what_it_leaves_behind_is_not_waited_for(tmp_path: Path) -> None:
    left = tmp_path / "left"
    Program().run(script(f"sleep 1000 & echo $! > {left}"), b"", 600.0)
    pid = int(left.read_text())
    assert alive(pid), "a mailer may deliver in the background"
    os.kill(pid, 9)


def test_another_thread_can_end_it_and_nothing_is_started_after(tmp_path: Path) -> None:
    program, failures = Program(), []

    def run() -> None:
        try:
            program.run(script(f"echo > {tmp_path}/began; sleep 1000"), b"", 1000.0)
        except Failure as error:
            failures.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    until((tmp_path / "began").exists, "it began")
    program.end()
    thread.join(HANG)
    assert failures == ["/bin/sh: signal 9"]
    with pytest.raises(Failure, match="the daemon ends"):
        program.run(["/bin/true"], b"", HANG)


def test_no_descriptor_is_left() -> None:
    before = len(os.listdir("/proc/self/fd"))
    program = Program()
    for _ in range(20):
        program.run(["/bin/true"], b"", HANG)
        with pytest.raises(Failure):
            program.run(["/bin/false"], b"", HANG)
        with pytest.raises(Failure):
            program.run(["/no/such"], b"", HANG)
    assert len(os.listdir("/proc/self/fd")) == before
