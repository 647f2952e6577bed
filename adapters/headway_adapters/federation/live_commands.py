"""The site's commands for datasets as processes: no shell, bounded output, and an end that is certain.

Each command runs under a small program of its own (:mod:`headway_adapters.federation.keeper`) which ends the
command's whole process group at the time-out and when the daemon is gone, be it by ``kill -9``.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headway.cli.printable import printable
from headway.errors import Failure
from headway_adapters.transport import LocalTransport

#: Bytes of standard output that a command may print, and of standard error that are kept of its end.
MOST_OUTPUT = 64 * 1024
_KEPT = 4096
#: Characters of a reason.
_LONGEST = 300
#: How long a command has from SIGTERM to SIGKILL, seconds.
GRACE = 5.0
_KEEPER = Path(__file__).with_name("keeper.py")


class Ended(Failure):
    """There are no commands any more: the daemon ends."""


@dataclass(frozen=True)
class Said:
    """What became of a command."""

    program: str
    rc: int
    out: bytes
    #: The end of its standard error.
    err: bytes
    timed_out: float | None = None
    #: It printed more than :data:`MOST_OUTPUT`.
    too_long: bool = False

    @property
    def wrong(self) -> str:
        """What is wrong with it, in one printable line; "" if nothing is."""
        if self.timed_out is not None:
            return f"{self.program} was ended after {self.timed_out:g} s"
        if self.rc:
            said = last_line(self.err)
            ended = f"signal {self.rc - 128}" if self.rc > 128 else f"exit code {self.rc}"
            return f"{self.program}: {said} ({ended})" if said else f"{self.program} ended with {ended}"
        return ""

    def text(self) -> str:
        """What it printed. Raises :class:`Failure` if it failed, or printed nothing or too much."""
        if self.wrong:
            raise Failure(self.wrong)
        if self.too_long:
            raise Failure(f"{self.program} printed more than {MOST_OUTPUT} bytes")
        text = self.out.decode("utf-8", "backslashreplace").strip()
        if not text:
            raise Failure(f"{self.program} printed nothing")
        return text


def last_line(data: bytes) -> str:
    """The last line that says something, printable and bounded."""
    lines = data.decode("utf-8", "replace").replace("\r", "\n").split("\n")
    said = next((line for line in reversed(lines) if line.strip()), "")
    return shown(said)


def shown(text: str) -> str:
    """A text of a command in one printable line of bounded length."""
    line = printable(" ".join(text.split()))
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."


class Commands:
    """Runs commands, from any thread, until it is closed."""

    def __init__(self) -> None:
        # It knows where administration commands are which a service's PATH lacks.
        self._places = LocalTransport()
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._closed = False

    def find(self, program: str) -> str:
        """Where a program is; :class:`Failure` if it is nowhere."""
        return self._places.find(program)

    def run(self, argv: Sequence[str], timeout: float, *, quiet: bool = False) -> Said:
        """Run a command to its end, at most ``timeout`` seconds and :data:`GRACE`.

        ``quiet``: what it prints on standard output does not count. Raises :class:`Failure` if it cannot be
        started, and :class:`Ended` if there are no commands any more.
        """
        program = self.find(argv[0])
        with self._lock:
            if self._closed:
                raise Ended("the daemon ends")
            try:
                child = subprocess.Popen(
                    [sys.executable, "-I", "-S", str(_KEEPER), str(GRACE), program, *argv[1:]],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL if quiet else subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env={**os.environ, "LC_ALL": "C"},
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                raise Failure(f"{argv[0]} could not be started: {error}") from error
            self._running.add(child)
        try:
            said = _followed(child, argv[0], timeout)
        finally:
            with self._lock:
                self._running.discard(child)
        if self._closed:
            raise Ended("the daemon ends")
        return said

    def close(self) -> None:
        """End all commands, and wait until they are gone."""
        with self._lock:
            self._closed = True
            running = list(self._running)
        for child in running:
            _let_go(child)
        until = time.monotonic() + GRACE + 1.0
        for child in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(max(0.0, until - time.monotonic()))


def _let_go(child: subprocess.Popen[bytes]) -> None:
    """The keeper ends its command when its standard input closes."""
    assert child.stdin is not None
    with contextlib.suppress(OSError):
        child.stdin.close()


class _Output:
    """What a command prints, as far as it is kept."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self.out, self.err = bytearray(), bytearray()
        self.too_long = False
        self._selector = selectors.DefaultSelector()
        self._streams = [stream for stream in (child.stdout, child.stderr) if stream is not None]
        for stream in self._streams:
            os.set_blocking(stream.fileno(), False)
            self._selector.register(stream, selectors.EVENT_READ, stream is child.stdout)

    def read(self, seconds: float) -> bool:
        """Wait so long for more, and take it; False if there will be no more."""
        for key, _ in self._selector.select(seconds):
            # More than a pipe holds, and no more than a moment's work.
            for _ in range(16):
                chunk = _read(key.fd)
                if not chunk:
                    break
                if key.data:
                    self.too_long = self.too_long or len(self.out) + len(chunk) > MOST_OUTPUT
                    self.out += chunk[: MOST_OUTPUT - len(self.out)]
                else:
                    self.err = (self.err + chunk)[-_KEPT:]
            if chunk == b"":
                self._selector.unregister(key.fileobj)
        return bool(self._selector.get_map())

    def close(self) -> None:
        self._selector.close()
        for stream in self._streams:
            stream.close()


def _followed(child: subprocess.Popen[bytes], program: str, timeout: float) -> Said:
    """Read what a command prints until it is over, or ended."""
    output = _Output(child)
    timed_out = over = False
    until = time.monotonic() + timeout
    while not over:
        # What a command leaves in the background may hold the pipes: its own end counts.
        over = child.poll() is not None
        if not output.read(0.0 if over else 0.1) and not over:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(0.1)
        if not (over or timed_out) and time.monotonic() > until:
            timed_out = True
            _let_go(child)
    _let_go(child)
    output.close()
    ended_after = timeout if timed_out else None
    return Said(program, child.returncode, bytes(output.out), bytes(output.err), ended_after, output.too_long)


def _read(fd: int) -> bytes | None:
    """What can be read now; b"": the end, None: nothing now."""
    try:
        return os.read(fd, 1 << 16)
    except BlockingIOError:
        return None
