"""When a user's jobs come: logins and logouts, drawn stretch by stretch.

The process is that of :mod:`.rates`; it forgets, so a stretch begins with nothing but whether the user is
logged on. Inside a login of length L there are Poisson(mu L) jobs at uniform times. With a cycle of the day
the rates of logging on and of submitting are lambda and mu times max(0, 1 + sum of a_k cos(2 pi k t / day) +
b_k sin(2 pi k t / day)), by thinning: candidates come at the largest rate that there can be, and stay with
the share of it that holds at their time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headway_plugins.grid.rates import Rates

Floats = NDArray[np.float64]

DAY = 86400.0


@dataclass(frozen=True)
class DailyCycle:
    """A factor on a rate by the time of day; ``waves``: (a_k, b_k) for k = 1, 2, ..."""

    waves: tuple[tuple[float, float], ...] = ()

    def __bool__(self) -> bool:
        return any(a or b for a, b in self.waves)

    @property
    def most(self) -> float:
        """No factor is larger."""
        return 1.0 + sum(math.hypot(a, b) for a, b in self.waves)

    def at(self, seconds: Floats | float) -> Floats:
        """The factors at these times, seconds since a midnight."""
        turn = 2.0 * np.pi * np.asarray(seconds, np.float64) / DAY
        found = np.ones_like(turn)
        for k, (a, b) in enumerate(self.waves, start=1):
            found = found + a * np.cos(k * turn) + b * np.sin(k * turn)
        return np.maximum(found, 0.0)


class Submitter:
    """A user as time goes on, from ``begin`` (seconds) in equilibrium."""

    def __init__(
        self,
        rng: np.random.Generator,
        rates: Rates,
        begin: float = 0.0,
        logon: DailyCycle = DailyCycle(),
        submit: DailyCycle = DailyCycle(),
    ) -> None:
        self._rng = rng
        self._rates = rates
        self._logon, self._submit = logon, submit
        self.now = begin
        self.inside = bool(rng.random() < rates.share_in)

    def until(self, end: float) -> Floats:
        """The times (seconds, rising) of the jobs from where the last stretch ended up to ``end``."""
        on, off = self._cycled(end) if self._logon else self._plain(end)
        self.now = end
        rng, most = self._rng, self._submit.most if self._submit else 1.0
        counts = rng.poisson(self._rates.submit * most * (off - on))
        times = np.repeat(on, counts) + rng.random(int(counts.sum())) * np.repeat(off - on, counts)
        if self._submit:
            times = times[rng.random(len(times)) * most < self._submit.at(times)]
        times.sort()
        return times

    def _plain(self, end: float) -> tuple[Floats, Floats]:
        """Beginnings and ends of the logins up to ``end``, at constant rates."""
        rates, rng = self._rates, self._rng
        length = end - self.now
        if not (rates.logout if self.inside else rates.logon) > 0:
            kept = [self.now] if self.inside else []
            return np.array(kept), np.array([end] if self.inside else [])
        first, second = (rates.logout, rates.logon) if self.inside else (rates.logon, rates.logout)
        parts: list[Floats] = []
        total = 0.0
        # A rate of 0 is never left: a single very long stay.
        means = np.array([1.0 / first, 1.0 / second if second > 0 else math.inf])
        while total < length:
            rounds = min(int(1.1 * (length - total) / means.sum()) + 16, 1 << 20)
            parts.append(np.minimum(rng.exponential(1.0, (rounds, 2)) * means, 2 * length).ravel())
            total += float(parts[-1].sum())
        borders = np.concatenate(([0.0], np.cumsum(np.concatenate(parts))))
        stays = int(np.searchsorted(borders, length, side="left"))
        borders = self.now + np.minimum(borders[: stays + 1], length)
        from_ = 0 if self.inside else 1
        on, off = borders[:-1][from_::2], borders[1:][from_::2]
        self.inside ^= stays % 2 == 0
        return on, off

    def _cycled(self, end: float) -> tuple[Floats, Floats]:
        """The same, with the day's cycle of logging on."""
        rates, rng, most = self._rates, self._rng, self._logon.most
        on: list[float] = []
        off: list[float] = []
        now = self.now
        while now < end:
            if self.inside:
                on.append(now)
                stay = rng.exponential() / rates.logout if rates.logout > 0 else math.inf
                off.append(min(now + stay, end))
            else:
                stay = rng.exponential() / (rates.logon * most) if rates.logon > 0 else math.inf
                if now + stay < end and rng.random() * most >= float(self._logon.at(now + stay)):
                    now += stay
                    continue
            if now + stay < end:
                self.inside = not self.inside
            now += stay
        return np.array(on), np.array(off)


def spread_rates(rates: Rates, users: int, slope: float) -> list[Rates]:
    """The rates of a group's users: the same logins, and rates of submission on a straight line in log space,
    rate_k = rate_1 exp(-slope (k - 1)), that are together the rate of ``rates``."""
    weights = np.exp(-slope * np.arange(users))
    shares: Sequence[float] = (weights / weights.sum()).tolist()
    return [Rates(rates.logon, rates.logout, rates.submit * share) for share in shares]
