"""Processor time of the scheduler's thread for what is worked out beside its cycles: a share of all time."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter, thread_time

from headway.view.owed import Check, Enough

#: The thread's own time is looked at so often, seconds.
_STEP = 0.0002


class SpareTime:
    """A share of all time, saved up to a little: many questions take no more of it together than one."""

    def __init__(
        self, share: float = 0.01, most: float = 0.02, clock: Callable[[], float] = perf_counter
    ) -> None:
        """``share`` of the time that passes by the ``clock`` (seconds) may be spent, ``most`` seconds at
        once."""
        self._share = share
        self._most = self._left = most
        self._clock = clock
        self._at = clock()

    def check(self) -> Check:
        """What is called before each piece of such work of an answer; raises :class:`Enough` once no time is
        left."""
        now = self._clock()
        self._left = min(self._most, self._left + self._share * (now - self._at))
        self._at = now
        before: float | None = None
        look = 0.0

        def check() -> None:
            nonlocal before, look
            passed = perf_counter()
            # To ask for the thread's own time takes longer than many a booking.
            if passed >= look:
                here, look = thread_time(), passed + _STEP
                if before is not None:
                    self._left -= here - before
                before = here
            if self._left <= 0:
                raise Enough

        return check
