"""Ending a wait from outside: from another thread, or from a signal handler."""

from __future__ import annotations

import os
import select

_DAY = 86400.0


class Bell:
    """A sleep that others can end. A pipe, since that is what a signal handler may write to."""

    def __init__(self) -> None:
        #: :meth:`wake` was called; the caller that has seen it takes it back.
        self.woken = False
        self._ear, self._rope = os.pipe()
        os.set_blocking(self._ear, False)
        os.set_blocking(self._rope, False)

    def sleep(self, seconds: float) -> None:
        """Sleep for ``seconds``, a day at the most, or until the bell rings."""
        ready, _, _ = select.select([self._ear], [], [], max(0.0, min(seconds, _DAY)))
        if ready:
            try:
                said = os.read(self._ear, 4096)
            except BlockingIOError:
                return
            if b"w" in said:
                self.woken = True

    def stir(self) -> None:
        """End a sleep: there is something to look at."""
        self._ring(b"s")

    def wake(self) -> None:
        """End a sleep, and have that be remembered."""
        self._ring(b"w")

    def _ring(self, what: bytes) -> None:
        try:
            os.write(self._rope, what)
        except OSError:
            # A full pipe wakes as well; a closed pipe has no sleeper.
            return

    def close(self) -> None:
        """Give the pipe back."""
        os.close(self._ear)
        os.close(self._rope)
