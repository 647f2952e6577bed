"""Least squares with what a prediction needs: rank, tests, and how far a prediction may be off.

B. J. Lafreniere, A. C. Sodan: ScoPred, JSSPP 2005, section 3.3. Columns are scaled by their largest absolute
value; a singular value up to 1e-10 of the largest counts as zero. Terms that the runs at hand do not tell
apart (such as ``N*P`` and ``N*log(P)`` at one P) are no error: of all coefficients that fit equally well the
shortest (scaled) are taken, and only what does not depend on that choice is *estimable*.

Decisions: the paper's sum of squares runs to k and must run to n. Without a constant the sums of squares are
taken about zero. Whether the residuals are as the model wants them is reported, and nothing is made of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.inputs.extras import need_prediction

Array = NDArray[np.float64]

#: Share of the largest singular value up to which a singular value counts as zero.
RANK = 1e-10
#: Share of a row that may lie outside of the space of the observed rows.
OUTSIDE = 1e-6


def t_quantile(level: float, df: int) -> float:
    """Student's t: half the width, in standard errors, of an interval of this confidence level (0.95)."""
    return float(_special().stdtrit(df, 0.5 + level / 2)) if df >= 1 else math.inf


def _special() -> Any:
    need_prediction("a prediction by regression")
    from scipy import special

    return special


@dataclass(frozen=True)
class Checks:
    """Whether the residuals look independent and equally spread; NaN: too few to say."""

    #: Correlation of each residual with the next, in the order of the runs.
    autocorrelation: float
    #: Probability (Breusch and Pagan, in Koenker's form) of residuals at least as unequally spread if they
    #: were equally spread.
    breusch_pagan: float


@dataclass(frozen=True)
class Fit:
    """The result of a fit of n rows with k columns, and what predictions from it need."""

    #: k coefficients, of the columns as they were given.
    coefficients: Array
    n: int
    rank: int
    #: n - rank.
    df: int
    #: Sums of squares: of the residuals, and about the mean (about zero without a constant).
    sse: float
    sst: float
    r2: float
    adjusted_r2: float
    #: The F statistic, and what it must exceed.
    f: float
    f_critical: float
    #: Standard deviation of the residuals; infinite without degrees of freedom.
    s: float
    level: float
    residuals: Array
    #: Largest absolute value of each column, the basis of the rows' space (k x rank), singular values.
    _scale: Array
    _basis: Array
    _singular: Array
    #: An orthonormal basis of the columns' space (n x rank).
    _left: Array

    @property
    def significant(self) -> bool:
        """Whether the terms explain more than chance would, at the fit's level."""
        return self.f > self.f_critical

    @property
    def t(self) -> float:
        """Half an interval's width in standard errors."""
        return t_quantile(self.level, self.df)

    def predict(self, rows: Array) -> tuple[Array, Array, Array]:
        """Of rows (m x k): predictions, their leverages h, and whether each is estimable."""
        scaled = np.atleast_2d(rows) / self._scale
        inside = scaled @ self._basis
        outside = np.linalg.norm(scaled - inside @ self._basis.T, axis=1)
        estimable = outside <= OUTSIDE * np.linalg.norm(scaled, axis=1)
        leverage = ((inside / self._singular) ** 2).sum(axis=1)
        return np.atleast_2d(rows) @ self.coefficients, leverage, estimable

    def half_widths(self, leverage: Array) -> tuple[Array, Array]:
        """Of the mean's confidence interval and of a further run's prediction interval."""
        if self.df < 1:
            nothing_known = np.full_like(leverage, math.inf)
            return nothing_known, nothing_known
        wide = self.t * self.s
        return wide * np.sqrt(leverage), wide * np.sqrt(1 + leverage)

    def checks(self) -> Checks:
        """What the residuals say about the assumptions."""
        e = self.residuals
        if self.df < 2 or self.sse <= 1e-24 * max(self.sst, 1e-300):
            return Checks(math.nan, math.nan)
        lag = float((e[1:] * e[:-1]).sum() / self.sse)
        squares = e**2
        spread = squares - squares.mean()
        total = float(spread @ spread)
        if total == 0 or self.rank < 2:
            return Checks(lag, math.nan)
        explained = float(((self._left.T @ spread) ** 2).sum())
        return Checks(lag, float(_special().chdtrc(self.rank - 1, self.n * explained / total)))


def fit(x: Array, y: Array, *, level: float = 0.95, constant: bool = True) -> Fit:
    """Fit y (n values) by x (n x k, at least one row; its first column is 1 with ``constant``).

    Raises ValueError for values that are not finite, UserError without SciPy."""
    n = len(x)
    if n < 1 or y.shape != (n,):
        raise ValueError(f"expected {n} values for {n} rows (at least one), found {y.shape}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("expected finite numbers")
    scale = np.abs(x).max(axis=0)
    scale[scale == 0] = 1.0
    left, singular, right = np.linalg.svd(x / scale, full_matrices=False)
    rank = int((singular > RANK * singular[0]).sum()) if singular[0] > 0 else 0
    left, singular, basis = left[:, :rank], singular[:rank], right[:rank].T
    coefficients = basis @ ((left.T @ y) / singular) / scale
    residuals = y - x @ coefficients
    df = n - rank
    sse = float(residuals @ residuals)
    about = y - y.mean() if constant else y
    sst = float(about @ about)
    explaining, total = (rank - 1, n - 1) if constant else (rank, n)
    r2 = max(0.0, 1 - sse / sst) if sst > 0 else 0.0
    s, adjusted, f, critical = math.inf, math.nan, math.nan, math.inf
    if df >= 1:
        s = math.sqrt(sse / df)
        adjusted = 1 - (sse / df) / (sst / total) if sst > 0 else 0.0
        if explaining >= 1:
            gained = max(0.0, sst - sse) / explaining
            # What rounding leaves of an exact fit is no evidence of anything.
            f = gained / (sse / df) if sse > 0 else (math.inf if gained > 0 else 0.0)
            critical = float(_special().fdtri(explaining, df, level))
    return Fit(
        coefficients, n, rank, df, sse, sst, r2, adjusted, f, critical, s, level, residuals,
        scale, basis, singular, left,
    )  # fmt: skip
