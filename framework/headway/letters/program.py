"""Runs the site's command for one letter: no shell, bounded output, and an end that is certain."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence

from headway.errors import Failure

#: Bytes of its standard error that are kept, the first ones.
_KEPT = 300
#: Seconds between two looks whether it has ended, where a process that it left behind has its standard error.
_LOOK = 0.1


class Program:
    """One command at a time, on one thread, until another thread ends it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._over = False

    def run(self, argv: Sequence[str], given: bytes, timeout: float) -> None:
        """Run it with ``given`` on standard input, for at most ``timeout`` seconds.

        Its standard output is dropped. Raises :class:`Failure` if it cannot be started, does not end in time,
        or ends with another status than 0.
        """
        try:
            with tempfile.TemporaryFile() as source:
                source.write(given)
                source.seek(0)
                child = self._start(argv, source.fileno())
        except (OSError, ValueError) as error:
            raise Failure(f"{argv[0]} could not be started: {error}") from error
        try:
            said, in_time = _watch(child, time.monotonic() + timeout)
        finally:
            self._leave(child)
        if not in_time:
            raise Failure(f"{argv[0]} did not end within {timeout:g} s")
        if child.returncode != 0:
            status = (
                f"signal {-child.returncode}" if child.returncode < 0 else f"exit status {child.returncode}"
            )
            words = " ".join(said.decode("utf-8", "replace").split())
            raise Failure(f"{argv[0]}: {status}{': ' + words if words else ''}")

    def end(self) -> None:
        """End what runs, and start nothing more."""
        with self._lock:
            self._over = True
            if self._child is not None:
                _kill(self._child)

    def _start(self, argv: Sequence[str], source: int) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._over:
                raise Failure("the daemon ends")
            self._child = subprocess.Popen(
                argv, stdin=source, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
            )
            return self._child

    def _leave(self, child: subprocess.Popen[bytes]) -> None:
        """Nothing of it is left to be ended; what it did not do in time is not done."""
        if child.poll() is None:
            _kill(child)
        child.wait()
        assert child.stderr is not None
        child.stderr.close()
        with self._lock:
            self._child = None


def _watch(child: subprocess.Popen[bytes], deadline: float) -> tuple[bytes, bool]:
    """The beginning of what it says on standard error, and whether it ended before ``deadline`` (monotonic).

    What it says beyond that is read and dropped, so that it never waits for a reader. A process that it
    leaves behind may hold its standard error open: that is not waited for.
    """
    assert child.stderr is not None
    said, descriptor = b"", child.stderr.fileno()
    os.set_blocking(descriptor, False)
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while True:
            # Looked at before the last reading, so that nothing that it said is missed.
            ended = child.poll() is not None
            if selector.get_map():
                selector.select(0 if ended else _LOOK)
                chunk = _read(descriptor)
                said = (said + (chunk or b""))[:_KEPT]
                if chunk == b"":
                    selector.unregister(descriptor)
            else:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(max(0.0, deadline - time.monotonic()))
                ended = child.poll() is not None
            if ended or time.monotonic() >= deadline:
                return said, ended


def _read(descriptor: int) -> bytes | None:
    """What there is, b"" at the end; None: nothing now."""
    try:
        return os.read(descriptor, 1 << 16)
    except BlockingIOError:
        return None


def _kill(child: subprocess.Popen[bytes]) -> None:
    """End a child and what it started (it leads its own process group)."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
