"""How many commands headway runs in a minute: PBS rations connections.

Each of PBS's commands proves who it is by a privileged port, of which a machine has some hundred, and
which stays taken for a minute after the command has ended. When they have run out, *everybody's* commands
on that machine wait for seconds. So looks and starts share a budget (``commands_per_minute``):

* a third is the looks', which are spread evenly over the minute when there are many: they wait
  (:meth:`Budget.wait`), on their own thread;
* two thirds are the starts'. One that finds none left is not run now (:meth:`Budget.starts_left`).

All else that an administrator or a policy asks for (ending, holding, signalling jobs) is run at once, and
counted with the starts.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

#: How long a port stays taken, seconds.
_TAKEN = 60.0
#: Commands of looks that may be run at once: those that confirm starts come in quick succession.
_AT_ONCE = 20


class Budget:
    """Counts commands. On any thread."""

    def __init__(self, per_minute: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        """``per_minute``: None for any number. ``clock``: seconds, never set back."""
        self._limited = per_minute is not None
        self._for_looks = (per_minute or 0) // 3
        self._for_changes = (per_minute or 0) - self._for_looks
        self._clock = clock
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._changes: deque[float] = deque()
        self._at_once = min(_AT_ONCE, self._for_looks // 2)
        #: Commands of looks that may be run now, and when that was so.
        self._ready, self._then = float(self._at_once), clock()

    def spend(self, commands: int) -> None:
        """Count commands that change something."""
        if self._limited:
            with self._lock:
                self._changes.extend([self._clock()] * commands)

    def starts_left(self) -> int | None:
        """How many starts may be run now; None: any number."""
        if not self._limited:
            return None
        with self._lock:
            since = self._clock() - _TAKEN
            while self._changes and self._changes[0] <= since:
                self._changes.popleft()
            return max(self._for_changes - len(self._changes), 0)

    def wait(self, commands: int) -> None:
        """Return when so many commands of a look may be run, and count them."""
        while self._limited and (pause := self._pause(commands)) > 0.0:
            if self._closed.wait(pause):
                return

    def _pause(self, commands: int) -> float:
        """Seconds until there is room for so many commands; if there is, they are counted."""
        with self._lock:
            a_second = (self._for_looks - self._at_once) / _TAKEN
            now = self._clock()
            self._ready = min(self._ready + (now - self._then) * a_second, float(self._at_once))
            self._then = now
            # Many at once (the ends of hundreds of jobs) are paid for afterwards.
            missing = min(commands, self._at_once) - self._ready
            if missing > 1e-9:
                return missing / a_second
            self._ready -= commands
            return 0.0

    def close(self) -> None:
        """Nobody waits any more."""
        self._closed.set()
