"""Starts that wait for the budget of commands: how the log and ``headway status`` tell of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from headway.adapter import StartsWait

#: Seconds without a start that waits until the wait is over: the budget is one of a minute.
_QUIET = 60.0


class Turns:
    """How many starts wait for the budget. Told by one thread, read by any."""

    def __init__(
        self, cluster: str, per_minute: int | None, *, log: Any, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """``per_minute``: the budget of commands. ``clock``: seconds, never set back."""
        #: What the starts wait for, for a person.
        self.what = f"the budget of commands, {per_minute} a minute"
        self._cluster = cluster
        self._log = log
        self._clock = clock
        self._waiting = 0
        self._last: float | None = None

    def wait(self, starts: int) -> None:
        """So many starts wait now. The log tells it once, however often some wait within a minute."""
        self._waiting = starts
        if not starts:
            return
        now = self._clock()
        if self._last is None or now - self._last > _QUIET:
            self._log.warning(f"starts wait for {self.what}", starts=starts, option="commands_per_minute")
        self._last = now

    def waiting(self) -> tuple[StartsWait, ...]:
        """What ``headway status`` shows."""
        starts = self._waiting
        return (StartsWait(self._cluster, starts, self.what),) if starts else ()
