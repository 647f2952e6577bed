"""The time of a live run: the wall clock's, except that it never goes back.

Batch systems say with the wall clock when jobs began, when they may begin and when their limits are
over, so that is what a run's times follow. But a wall clock can be stepped: by an administrator, by a
time service after a long silence, by a machine that was suspended. :class:`RunClock` is what the
adapters of real batch systems tell the time by:

====================================  ======================================================
the wall clock steps forward          followed at once
it steps back by at most              the run's time goes on at half the speed until the wall
:data:`SLEW` seconds                  clock has caught up
it steps back by more                 the same, and :meth:`RunClock.when_lost` tells it:
                                      the daemon ends the run in good order and begins
                                      a new one, which has the wall clock's time and learns
                                      all jobs from the cluster
====================================  ======================================================

Each step of at least :data:`NOTICED` seconds is logged. How long something *takes* (pauses, time-outs)
is never measured by this clock but by ``time.monotonic``, so no step stalls or hurries anything.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import structlog

#: Steps of the wall clock that are worth a word, seconds. Time services correct less than that by slewing.
NOTICED = 1.0
#: How far the wall clock may step back, seconds, before a run cannot go on with its times.
SLEW = 60.0


class RunClock:
    """Absolute seconds that never go back; call it. May be called from any thread."""

    def __init__(
        self,
        *,
        wall: Callable[[], float] | None = None,
        monotonic: Callable[[], float] | None = None,
        log: Any = None,
    ) -> None:
        """``wall`` and ``monotonic``: the system's clocks."""
        self._wall = wall if wall is not None else time.time
        self._monotonic = monotonic if monotonic is not None else time.monotonic
        self._log = log if log is not None else structlog.get_logger("headway.daemon.clock")
        self._lock = threading.Lock()
        self._lost = False
        self._on_lost: Callable[[], None] | None = None
        self._last_monotonic = self._monotonic()
        self._last_wall = self._now = self._wall()

    def __call__(self) -> float:
        with self._lock:
            monotonic, wall = self._monotonic(), self._wall()
            elapsed = max(0.0, monotonic - self._last_monotonic)
            step = wall - self._last_wall - elapsed
            self._last_monotonic, self._last_wall = monotonic, wall
            self._now = now = max(wall, self._now + elapsed / 2)
            behind = now - wall
            newly_lost = behind > SLEW and not self._lost
            self._lost = self._lost or newly_lost
            on_lost = self._on_lost if newly_lost else None
        if abs(step) >= NOTICED:
            self._tell(step, behind)
        if on_lost is not None:
            on_lost()
        return now

    def when_lost(self, call: Callable[[], None]) -> None:
        """Have this called once the wall clock is more than :data:`SLEW` seconds behind, on the thread that
        notices; at once if it was so before."""
        with self._lock:
            self._on_lost = call
            already = self._lost
        if already:
            call()

    def _tell(self, step: float, behind: float) -> None:
        if behind > SLEW:
            then = "a new run begins with the new time"
        elif behind > 0:
            then = "the run's time passes at half the speed until the clock has caught up"
        else:
            then = "the run's time follows"
        if step > 0:
            self._log.warning("the system's clock was set forward", seconds=round(step, 1), then=then)
        else:
            self._log.warning("the system's clock was set back", seconds=round(-step, 1), then=then)
