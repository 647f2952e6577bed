"""What systemd is told of the daemon: the protocol of ``sd_notify``, which is a datagram a message.

Without a ``NOTIFY_SOCKET`` in the environment nobody is told. systemd.service(5), ``Type=notify`` and
``WatchdogSec``; sd_notify(3).
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping

#: Seconds between two pulses of the loop, at most; with a watchdog a third of its time, if that is less.
PULSE = 10.0


class Notifier:
    """Tells the service manager."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        """``environment``: by default that of the process."""
        found = os.environ if environment is None else environment
        #: Where it listens: a path, or an abstract name behind "@"; "": nobody does.
        self._address = found.get("NOTIFY_SOCKET", "")
        #: Seconds within which a watchdog wants a word; None: there is none, or it watches another process.
        self.watchdog = _watchdog(found) if self._address else None

    def tell(self, *words: str) -> None:
        """Send words such as ``READY=1``. What cannot be told is not: no daemon ends for that."""
        if self._address[:1] not in ("/", "@"):
            return
        address = self._address.encode()
        if address.startswith(b"@"):
            address = b"\0" + address[1:]
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
            # A manager that does not read must not stop the loop.
            to.setblocking(False)
            to.sendto("\n".join(words).encode(), address)


def _watchdog(environment: Mapping[str, str]) -> float | None:
    """The seconds of ``WATCHDOG_USEC``, where that is meant for this process."""
    said, whose = environment.get("WATCHDOG_USEC", ""), environment.get("WATCHDOG_PID", "")
    if not said.isdecimal() or int(said) == 0 or (whose and whose != str(os.getpid())):
        return None
    return int(said) / 1e6


class Life:
    """A daemon's signs of life, over all its runs: its loop is made to turn now and then; a turn is a sign.

    A pulse costs no cycle. It shows metrics, and a watchdog, that the loop goes on where nothing happens.
    """

    def __init__(self, notifier: Notifier | None = None, pause: float = PULSE) -> None:
        """``pause``: seconds between two pulses."""
        self._notifier = notifier if notifier is not None else Notifier()
        watchdog = self._notifier.watchdog
        self._pause = min(pause, watchdog / 3) if watchdog is not None else pause
        #: Makes the loop of the run in force turn; False: it is too early for that. None: there is no run.
        self._pulse: Callable[[], bool] | None = None
        self._status: Callable[[], str] = str
        self._told = -self._pause
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def runs(self, pulse: Callable[[], bool], status: Callable[[], str]) -> None:
        """A run is in force: ``pulse`` makes its loop turn, ``status`` says in a line how it is."""
        self._pulse, self._status = pulse, status
        self._notifier.tell("READY=1", f"STATUS={_line(status())}")
        if self._thread is None:
            self._thread = threading.Thread(target=self._beat, name="headway-pulse", daemon=True)
            self._thread.start()

    def stands_by(self, status: Callable[[], str]) -> None:
        """The daemon waits to lead: there is no run, and :meth:`turned` is what its own loop says."""
        self._status = status
        self._notifier.tell("READY=1", f"STATUS={_line(status())}")

    def reloads(self) -> None:
        """The configuration is read again."""
        self._notifier.tell("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stays(self) -> None:
        """The run that was in force stays so."""
        self._notifier.tell("READY=1")

    def stops(self) -> None:
        """The last run is over."""
        self._pulse = None
        self._over.set()
        self._notifier.tell("STOPPING=1")

    def turned(self) -> None:
        """The loop went on: the scheduler's, or the stand-by's. On its thread."""
        now = time.monotonic()
        if now >= self._told + self._pause / 2:
            self._told = now
            self._sign()

    def _beat(self) -> None:
        while not self._over.wait(self._pause):
            pulse = self._pulse
            # Before the first cycle the loop is left alone, and this is the sign.
            if pulse is not None and not pulse():
                self._sign()

    def _sign(self) -> None:
        words = ["WATCHDOG=1"] if self._notifier.watchdog is not None else []
        self._notifier.tell(*words, f"STATUS={_line(self._status())}")


def _line(text: str) -> str:
    return " ".join(text.split())
