"""What associations have used: counted as jobs run, decaying with a half-life or in windows.

A job that runs at a *rate* (billed units a second, such as its processors) from one moment to another adds
``rate x seconds``. What was used ``age`` seconds ago counts ``2 ** (-age / half_life)`` times, second by
second; so the sum is that of the integral at whatever moment it is read, and no step of a clock changes it.
Running jobs count up to now.

News may come late and in any order: a job counts from its start to its end, not from when that was told.
"""

from __future__ import annotations

import math
from array import array
from typing import Any

import numpy as np

from headway_plugins.accounts.tree import Floats

_LN2 = math.log(2.0)
#: Half-lives after which what is stored is brought up to date, long before it could overflow.
_RENEW = 64.0


class Ledger:
    """The running jobs and what they add; how that counts later is the subclasses' affair.

    Accounts are numbers from 0 on, as many as :meth:`at` is asked for. Times are absolute seconds.
    """

    def __init__(self) -> None:
        #: Job -> whose it is, rate in units a second, since when.
        self.running: dict[str, tuple[int, float, float]] = {}
        #: Nothing before counts.
        self.reset_at = -math.inf

    def begin(self, job_id: str, whose: int, rate: float, at: float) -> None:
        """The job runs from ``at`` on. A job that runs already stays as it was if its user and rate do."""
        at = max(at, self.reset_at)
        known = self.running.get(job_id)
        if known is not None:
            if known == (whose, rate, at):
                return
            self.end(job_id, at)
        self.running[job_id] = (whose, rate, at)

    def end(self, job_id: str, at: float) -> None:
        """It runs no longer. Nothing happens if it did not run, or has not begun by then."""
        known = self.running.pop(job_id, None)
        if known is not None and at > known[2]:
            whose, rate, since = known
            self.add(whose, rate, since, at)

    def reset(self, at: float) -> None:
        """Forget all usage before ``at``."""
        self.reset_at = at
        self.running = {
            job_id: (whose, rate, max(since, at)) for job_id, (whose, rate, since) in self.running.items()
        }
        self.clear()

    def at(self, now: float, count: int) -> Floats:
        """What each of the first ``count`` has used by now, in units x seconds, decayed."""
        used = self.settled(now, count)
        if self.running:
            whose, rate, since = zip(*self.running.values(), strict=True)
            begun = np.minimum(np.array(since), now)
            used += np.bincount(np.array(whose, np.intp), np.array(rate) * self.worth(begun, now), count)
        # What is left of differences is nothing.
        return np.maximum(used, 0.0)

    def add(self, whose: int, rate: float, begin: float, end: float) -> None:
        """The node ``whose`` used ``rate`` from ``begin`` to ``end``."""
        raise NotImplementedError

    def worth(self, begin: Floats, now: float) -> Floats:
        """Seconds from ``begin`` to now, decayed."""
        raise NotImplementedError

    def settled(self, now: float, count: int) -> Floats:
        """What was used by what runs no longer; an array of its own."""
        raise NotImplementedError

    def clear(self) -> None:
        """Forget what was used."""
        raise NotImplementedError

    def grant(self, whose: int, amount: float, at: float) -> None:
        """The node ``whose`` has used so much, as it counts at ``at``; it is not known when."""
        raise NotImplementedError

    def saved(self) -> dict[str, Any]:
        """What was used, to be given to :meth:`load`, but for the running jobs: numbers by account."""
        raise NotImplementedError

    def load(self, saved: dict[str, Any], number: dict[int, int]) -> None:
        """Take up what was saved; ``number``: saved account -> account now."""
        raise NotImplementedError


class Decaying(Ledger):
    """Usage that halves in ``half_life`` seconds; None: it stays."""

    def __init__(self, half_life: float | None) -> None:
        super().__init__()
        self.half_life = half_life
        #: What was used, as it counts at ``_origin``.
        self._sums = array("d")
        self._origin: float | None = None

    def add(self, whose: int, rate: float, begin: float, end: float) -> None:
        if self._origin is None:
            self._origin = begin
        if len(self._sums) <= whose:
            self._sums.extend([0.0] * (whose + 1 - len(self._sums)))
        half_life = self.half_life
        if half_life is None:
            self._sums[whose] += rate * (end - begin)
            return
        if (end - self._origin) / half_life > _RENEW:
            self._renew(end)
        scale = _LN2 / half_life
        # What [begin, end] counts at the origin, which may be before both: then it grows until then.
        length = -math.expm1(-(end - begin) * scale) / scale
        self._sums[whose] += rate * length * math.exp((end - self._origin) * scale)

    def grant(self, whose: int, amount: float, at: float) -> None:
        if self._origin is None:
            self._origin = at
        if len(self._sums) <= whose:
            self._sums.extend([0.0] * (whose + 1 - len(self._sums)))
        grown = 1.0 if self.half_life is None else 2.0 ** ((at - self._origin) / self.half_life)
        self._sums[whose] += amount * grown

    def decay_by(self, half_life: float | None, now: float) -> None:
        """From ``now`` on usage halves in another time; what was used counts as it does now."""
        if half_life == self.half_life:
            return
        if self.half_life is not None and self._origin is not None:
            self._renew(now)
        if self._origin is not None:
            self._origin = now
        self.half_life = half_life

    def worth(self, begin: Floats, now: float) -> Floats:
        if self.half_life is None:
            return now - begin
        scale = _LN2 / self.half_life
        return -np.expm1((begin - now) * scale) / scale

    def settled(self, now: float, count: int) -> Floats:
        used = np.zeros(count)
        counts = 1.0
        if self.half_life is not None and self._origin is not None:
            counts = 0.5 ** ((now - self._origin) / self.half_life)
        np.multiply(np.frombuffer(self._sums), counts, out=used[: len(self._sums)])
        return used

    def clear(self) -> None:
        self._sums = array("d")
        self._origin = None

    def saved(self) -> dict[str, Any]:
        return {
            "half_life": self.half_life,
            "origin": self._origin,
            "sums": {str(at): v for at, v in enumerate(self._sums) if v},
        }

    def load(self, saved: dict[str, Any], number: dict[int, int]) -> None:
        self.clear()
        self.half_life = saved.get("half_life", self.half_life)
        self._origin = saved["origin"]
        for at, value in saved["sums"].items():
            whose = number[int(at)]
            if len(self._sums) <= whose:
                self._sums.extend([0.0] * (whose + 1 - len(self._sums)))
            self._sums[whose] += value

    def _renew(self, origin: float) -> None:
        assert self.half_life is not None and self._origin is not None
        factor = 0.5 ** ((origin - self._origin) / self.half_life)
        self._sums = array("d", (value * factor for value in self._sums))
        self._origin = origin


class Windowed(Ledger):
    """Usage in windows of ``interval`` seconds that follow each other from time 0 on, of which the latest
    ``depth`` count: the present window once, the window before ``decay`` times, the window before that
    ``decay ** 2`` times."""

    def __init__(self, interval: float, depth: int, decay: float) -> None:
        super().__init__()
        self.interval, self.depth, self.decay = interval, depth, decay
        #: Number of the window -> account -> what was used in it.
        self._windows: dict[int, dict[int, float]] = {}

    def add(self, whose: int, rate: float, begin: float, end: float) -> None:
        interval = self.interval
        last = math.ceil(end / interval) - 1
        for at in range(max(math.floor(begin / interval), last - self.depth + 1), last + 1):
            seconds = min(end, (at + 1) * interval) - max(begin, at * interval)
            window = self._windows.setdefault(at, {})
            window[whose] = window.get(whose, 0.0) + rate * seconds

    def worth(self, begin: Floats, now: float) -> Floats:
        total = np.zeros(len(begin))
        current = math.floor(now / self.interval)
        for age in range(self.depth):
            first = (current - age) * self.interval
            seconds = np.minimum(now, first + self.interval) - np.maximum(begin, first)
            total += self.decay**age * np.maximum(seconds, 0.0)
        return total

    def settled(self, now: float, count: int) -> Floats:
        used = np.zeros(count)
        current = math.floor(now / self.interval)
        if any(at <= current - self.depth for at in self._windows):
            # Anew, and not in place: a copy may share it.
            self._windows = {at: w for at, w in self._windows.items() if at > current - self.depth}
        for at, window in self._windows.items():
            factor = self.decay ** max(current - at, 0)
            for whose, value in window.items():
                used[whose] += factor * value
        return used

    def grant(self, whose: int, amount: float, at: float) -> None:
        window = self._windows.setdefault(math.floor(at / self.interval), {})
        window[whose] = window.get(whose, 0.0) + amount

    def clear(self) -> None:
        self._windows = {}

    def saved(self) -> dict[str, Any]:
        return {
            "windows": {str(at): {str(w): v for w, v in one.items()} for at, one in self._windows.items()}
        }

    def load(self, saved: dict[str, Any], number: dict[int, int]) -> None:
        self._windows = {
            int(at): {number[int(whose)]: value for whose, value in window.items()}
            for at, window in saved["windows"].items()
        }
