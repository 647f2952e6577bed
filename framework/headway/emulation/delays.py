"""How long the emulated cluster takes to do what it is asked to, and to tell what happened.

By default it takes no time for either. A real batch system takes some for each start, and is looked at
from time to time: what happened between two looks, arrivals as well, is told together, so that a policy
decides on all of it at once. And starts are stated in whole seconds, so that jobs which began in the same
second are expected to end together. Where jobs are short, this decides which of them starts next.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import msgspec
import numpy as np

from headway.decisions import Start
from headway.events import Event, JobEnded, JobStarted
from headway.journal.latencies import Latencies

#: Two looks are at least so far apart, seconds: samples of zero must not stop the clock.
_SHORTEST = 1e-3


class Delays(Protocol):
    """What the emulated cluster asks. All times are seconds of the run's clock."""

    def begin(self, now: float, starts: Sequence[Start]) -> Sequence[float]:
        """When each start that a cycle asks for begins; not before ``now``."""

    def told(self, now: float, event: Event) -> float:
        """When it is known what happens ``now``; not before ``now``."""

    def stated(self, event: Event) -> Event:
        """The event as it is told."""


class MeasuredDelays:
    """What the daemon measured of a real cluster, drawn at random.

    The starts of a cycle take one draw together, as they are asked for together. Each look follows the look
    before after a measured time. Where no looks were measured each end is told after a draw of its own,
    everything else at once.
    """

    def __init__(self, latencies: Latencies, rng: np.random.Generator) -> None:
        self._latencies = latencies
        self._rng = rng
        self._lag = latencies.lag()
        self._longest = max(latencies.look, default=0.0)
        #: The last look that was drawn.
        self._look = -math.inf

    def begin(self, now: float, starts: Sequence[Start]) -> Sequence[float]:
        return [now + self._latencies.draw_start(self._rng)] * len(starts)

    def told(self, now: float, event: Event) -> float:
        if not self._latencies.look:
            return now + (self._latencies.draw_end(self._rng) if isinstance(event, JobEnded) else 0.0)
        shown = now + self._lag
        if shown - self._look > self._longest:
            # No event depended on the looks since then: this is any moment between two.
            self._look = shown + self._rng.random() * self._latencies.draw_look(self._rng)
        while self._look < shown:
            self._look += max(_SHORTEST, self._latencies.draw_look(self._rng))
        return self._look

    def stated(self, event: Event) -> Event:
        if isinstance(event, JobStarted) and self._latencies.whole_seconds:
            return msgspec.structs.replace(event, time=float(math.floor(event.time)))
        return event
