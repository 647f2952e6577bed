"""How many commands headway runs in a minute: PBS rations connections.

Each of PBS's commands proves its identity by a privileged port, of which a machine has some hundred, and
which stays taken for a minute after the command has ended. When they have run out, *all users'* commands
on that machine wait for seconds. So looks and starts share a budget (``commands_per_minute``), each with a
:class:`Bucket` of its own:

* a third is the looks'. A look waits for its commands (:meth:`Budget.wait`), on its own thread;
* two thirds are the starts'. A start that finds none left is not run now (:meth:`Budget.starts_left`).

All else that an administrator or a policy asks for (ending, holding, signalling jobs) is run at once, and
counted with the starts.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

#: How long a port stays taken, seconds.
_TAKEN = 60.0
#: Commands of looks that may be run at once: the commands that confirm starts come in quick succession.
_LOOKS_AT_ONCE = 20
#: What differs by less is the same number of commands.
_EXACT = 1e-9


class Bucket:
    """Commands that may be run: some at once, the others as the bucket fills again.

    In no minute there are more than its share, unless more are taken than are there: these are paid for
    afterwards.
    """

    def __init__(self, share: int, at_once: int, now: float) -> None:
        """``share``: commands in any minute, of which ``at_once`` may be run together. ``now``: seconds."""
        self.at_once = at_once
        self._a_second = (share - at_once) / _TAKEN
        #: Below zero: so many were run beyond it.
        self._ready = float(at_once)
        self._then = now

    def ready(self, now: float) -> float:
        """How many commands may be run; below zero: how many too many were run."""
        self._ready = min(self._ready + (now - self._then) * self._a_second, float(self.at_once))
        self._then = now
        return self._ready

    def take(self, commands: int) -> None:
        """Count commands, whether they are there or not."""
        self._ready -= commands

    def until(self, commands: int, now: float) -> float:
        """Seconds until so many may be run; of more than fit into the bucket, until it is full."""
        missing = min(commands, self.at_once) - self.ready(now)
        return missing / self._a_second if missing > _EXACT else 0.0


class Budget:
    """Counts commands. On any thread."""

    def __init__(self, per_minute: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        """``per_minute``: None for any number. ``clock``: seconds, never set back."""
        self._limited = per_minute is not None
        for_looks = (per_minute or 0) // 3
        for_changes = (per_minute or 0) - for_looks
        self._clock = clock
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._looks = Bucket(for_looks, min(_LOOKS_AT_ONCE, for_looks // 2), clock())
        self._changes = Bucket(for_changes, for_changes // 2, clock())

    def spend(self, commands: int) -> None:
        """Count commands that change something."""
        with self._lock:
            self._changes.take(commands)

    def starts_left(self) -> int | None:
        """How many commands of starts may be run now; None: any number."""
        if not self._limited:
            return None
        with self._lock:
            return max(math.floor(self._changes.ready(self._clock()) + _EXACT), 0)

    def wait(self, commands: int) -> None:
        """Return when so many commands of a look may be run, and count them."""
        while self._limited and (pause := self._pause(commands)) > 0.0:
            if self._closed.wait(pause):
                return

    def _pause(self, commands: int) -> float:
        """Seconds until there is room for so many commands; if there is, they are counted."""
        with self._lock:
            pause = self._looks.until(commands, self._clock())
            if pause == 0.0:
                # Many at once (the ends of hundreds of jobs) are paid for afterwards.
                self._looks.take(commands)
            return pause

    def close(self) -> None:
        """No command waits any more."""
        self._closed.set()
