"""A user logs on, submits and logs off: rates, and what follows from them.

E. Medernach, "Workload Analysis of a Cluster in a Grid Environment", JSSPP 2005 (LNCS 3834), section 5. A
user is out or in. The user logs on at rate lambda, logs out at rate delta, and submits at rate mu while
logged on, all constant, a second. The process is the interrupted Poisson process of teletraffic theory: the
time between two jobs is exactly a hyper-exponential of order 2.

The paper's (10) as printed lacks bounds and the initial value, and its (26) has the wrong sign of a term that
does not matter to the result. What was decided here: the numbers of jobs in a window (7)-(9) are not solved
one after the other but read off their generating function, which has a closed form, by a Fourier transform.
The differences that the formulas ask for are written without cancellation, so that rates come back to 1e-9.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headway.errors import UserError

Floats = NDArray[np.float64]

#: Standard deviations, and jobs beside them, above the mean of the busiest window that are still told apart.
_DEVIATIONS, _BESIDE = 12.0, 64
#: Numbers of jobs in a window that are told apart at most.
_MOST = 1 << 24


@dataclass(frozen=True)
class TwoExponentials:
    """share x e^(-fast t) + (1 - share) x e^(-slow t), with fast >= slow >= 0, a second."""

    share: float
    fast: float
    slow: float

    def __call__(self, t: ArrayLike) -> Floats:
        times = np.asarray(t, np.float64)
        return self.share * np.exp(-self.fast * times) + (1.0 - self.share) * np.exp(-self.slow * times)


@dataclass(frozen=True)
class Rates:
    """A user's rates, a second. Raises :class:`UserError` for rates below 0 or not finite, and for a user
    that neither logs on nor out."""

    #: lambda.
    logon: float
    #: delta; 0: never, so the user's jobs are a Poisson process.
    logout: float
    #: mu.
    submit: float

    def __post_init__(self) -> None:
        for name, rate in (("lambda", self.logon), ("delta", self.logout), ("mu", self.submit)):
            if not (math.isfinite(rate) and rate >= 0):
                raise UserError(f"rates: expected {name} of 0 or more a second, found {rate:g}")
        if not self.logon + self.logout > 0:
            raise UserError("rates: expected lambda or delta above 0, found both 0")

    # ------------------------------------------------------------------ what follows at once

    @property
    def share_in(self) -> float:
        """P_in: the share of the time that the user is logged on."""
        return self.logon / (self.logon + self.logout)

    @property
    def job_rate(self) -> float:
        """m0: jobs a second."""
        return self.submit * self.share_in

    @property
    def mean_gap(self) -> float:
        """Seconds between two jobs (28)."""
        return 1.0 / self.job_rate if self.job_rate > 0 else math.inf

    @property
    def variation(self) -> float:
        """Coefficient of variation of the times between jobs (31)."""
        return math.sqrt(1.0 + 2.0 * self.logout * self.submit / (self.logon + self.logout) ** 2)

    @property
    def burst(self) -> float:
        """mu / delta: mean number of jobs of a login (33)."""
        return self.submit / self.logout if self.logout > 0 else math.inf

    def login_jobs(self, jobs: int) -> float:
        """The chance that a login has so many jobs (33): geometric."""
        end = self.logout / (self.submit + self.logout)
        return end * (1.0 - end) ** jobs

    def scaled(self, factor: float) -> Rates:
        """The same process with times divided by ``factor``."""
        return Rates(self.logon * factor, self.logout * factor, self.submit * factor)

    # ------------------------------------------------------------------ exponentials

    def _roots(self) -> tuple[float, float, float, float]:
        """m1, m2 (16, 17), their difference, and m1 - lambda."""
        a, d, m = self.logon, self.logout, self.submit
        apart = math.sqrt((a - m) ** 2 + d * d + 2.0 * d * (a + m))
        m1 = (a + d + m + apart) / 2.0
        less = a - m - d
        above = (apart - less) / 2.0 if less <= 0 else 2.0 * a * d / (apart + less)
        return m1, a * m / m1, apart, above

    def silence(self) -> TwoExponentials:
        """R_0(t) (14): the chance that no job comes within t, seen at any moment."""
        m1, m2, apart, above = self._roots()
        w = self.job_rate * self.submit * above / (m1 * m1 * apart) if apart > 0 else 1.0
        return TwoExponentials(w, m1, m2)

    def gap(self) -> TwoExponentials:
        """A(t) (24): the chance that after a job none comes within t. The user submits at some time."""
        m1, m2, apart, above = self._roots()
        p = self.submit * above / (m1 * apart) if apart > 0 else 1.0
        return TwoExponentials(p, m1, m2)

    def no_arrival(self, t: ArrayLike, since: float | None = None) -> Floats:
        """The chance of no job within ``t`` seconds: seen at any moment (R_0), or ``since`` seconds after the
        last job, when A(since + t) / A(since) holds."""
        if since is None:
            return self.silence()(t)
        survives = self.gap()
        if survives.slow <= 0 and survives.share >= 1.0:
            return survives(t)
        # Divided by the slower of the two, so that long silences do not become 0 / 0.
        decay = math.exp(-(survives.fast - survives.slow) * since)
        fast, slow = survives.share * decay, 1.0 - survives.share
        share = fast / (fast + slow) if fast + slow > 0 else 1.0
        return TwoExponentials(share, survives.fast, survives.slow)(t)

    # ------------------------------------------------------------------ numbers of jobs in a window

    def counts(self, t: float, most: int) -> Floats:
        """R_0 ... R_most: the chance of n jobs in a window of ``t`` seconds, and at the end that of more.

        ``most`` + 2 values, whose sum is 1. Absolute errors come from rounding. Raises :class:`UserError`
        for windows in which more than 16 million jobs can come.
        """
        busiest = self.submit * t
        needed = busiest + _DEVIATIONS * math.sqrt(busiest) + _BESIDE
        if max(needed, most) > _MOST:
            raise UserError(
                f"numbers of jobs: expected windows of at most {_MOST:,} jobs, found {needed:,.0f} possible"
            )
        points = 1 << max(math.ceil(needed), most + 2).bit_length()
        z = np.exp(-2j * np.pi * np.arange(points // 2 + 1) / points)
        found = np.fft.irfft(self._generating(z, t), points)[: most + 1]
        found = np.clip(found, 0.0, 1.0)
        return np.append(found, max(1.0 - float(found.sum()), 0.0))

    def _generating(self, z: NDArray[np.complex128], t: float) -> NDArray[np.complex128]:
        """The sum of R_n z^n: (1, 1) exp((M + mu z E) t) (P_out, P_in), E the submissions' corner."""
        lost = self.submit * (1.0 - z)
        half = -(self.logon + self.logout + lost) / 2.0
        root = np.sqrt(((self.logon - self.logout - lost) / 2.0) ** 2 + self.logon * self.logout)
        root = np.where(root.real < 0, -root, root)
        # The eigenvalues; the slow eigenvalue by their product, because it may be very much smaller.
        fast = half - root
        slow = np.where(fast == 0, 0.0, self.logon * lost / np.where(fast == 0, 1.0, fast))
        # Where both are one, sinh(b t) / b is t.
        one = np.abs(root * t) < 1e-7
        share = (slow + lost * self.share_in) / np.where(one, 1.0, root) / 2.0
        two = (1.0 - share) * np.exp(slow * t) + share * np.exp(fast * t)
        return np.where(one, np.exp(half * t) * (1.0 - (lost * self.share_in + half) * t), two)

    # ------------------------------------------------------------------ rates from what is known

    @classmethod
    def of_gap(cls, gap: TwoExponentials) -> Rates:
        """The rates whose times between jobs are ``gap``; every such distribution has some."""
        _check(gap)
        p, apart = gap.share, gap.fast - gap.slow
        submit = gap.slow + p * apart
        return cls(gap.fast * gap.slow / submit, p * (1.0 - p) * apart * apart / submit, submit)

    @classmethod
    def of_silence(cls, silence: TwoExponentials) -> Rates:
        """The rates whose R_0 is ``silence``. Raises :class:`UserError` where no user ever submits."""
        _check(silence)
        w, apart = silence.share, silence.fast - silence.slow
        rate = silence.slow + w * apart
        p = silence.fast * w / rate
        submit = silence.slow + p * apart
        rest = silence.slow * (1.0 - w) / rate
        return cls(silence.fast * silence.slow / submit, p * rest * apart * apart / submit, submit)

    @classmethod
    def of_moments(cls, mean_gap: float, variation: float, burst: float) -> Rates:
        """The rates with this mean time between jobs (seconds), their coefficient of variation, and this mean
        number of jobs of a login. Raises :class:`UserError` where there are none."""
        if not (math.isfinite(mean_gap) and mean_gap > 0):
            raise UserError(f"rates: expected a mean time between jobs above 0 s, found {mean_gap:g}")
        if not (math.isfinite(variation) and variation > 1):
            raise UserError(f"rates: expected a coefficient of variation above 1, found {variation:g}")
        least = (variation**2 - 1.0) / 2.0
        if not (math.isfinite(burst) and burst > least):
            raise UserError(
                f"rates: b must be at least {least:.2f} jobs of a login for a coefficient of variation of "
                f"{variation:g}, found {burst:g}"
            )
        out = math.sqrt(least / burst)
        submit = 1.0 / (mean_gap * (1.0 - out))
        logout = submit / burst
        return cls(logout * (1.0 - out) / out, logout, submit)


def _check(found: TwoExponentials) -> None:
    if not (0.0 <= found.share <= 1.0 and 0.0 <= found.slow <= found.fast < math.inf):
        raise UserError(
            "rates: expected a share from 0 to 1 and rates with fast >= slow >= 0, found "
            f"{found.share:g}, {found.fast:g}, {found.slow:g}"
        )
    if not found.slow + found.share * (found.fast - found.slow) > 0:
        raise UserError("rates: expected a rate above 0, found 0")
