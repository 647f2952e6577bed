"""What the recorded runs of an application say about a further run.

B. J. Lafreniere, A. C. Sodan: ScoPred, JSSPP 2005. Decisions on what the paper leaves open:

- Where there are runs (:attr:`~headway_plugins.prediction.applications.Application.min_exact`) at the very
  parameters, these alone count: their mean, and intervals from their own spread.
- The half-widths of parts add up to that of the whole, as in the paper's Table 11; their root sum of squares
  is an option.
- A prediction may be used if there are degrees of freedom, the F test is passed, the point is estimable from
  these runs and what is predicted is above zero. Otherwise it says why not.
- Runs that did not complete are kept and do not count, and neither do runs at which a term has no value.
- All runs of a model are of the same hardware class: histories of two classes are never mixed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway_plugins.prediction.applications import RUNTIME, Application
from headway_plugins.prediction.formulas import Formula
from headway_plugins.prediction.regression import Array, Fit, fit, t_quantile

DAY = 86400.0


@dataclass(frozen=True)
class Run:
    """A run of an application."""

    #: Its parameters by name.
    parameters: Mapping[str, float]
    #: Seconds of each response: of "runtime", or of parts.
    values: Mapping[str, float]
    #: When it ended, in seconds; runs are in this order.
    end: float = 0.0
    #: It ended by itself and well.
    completed: bool = True


@dataclass(frozen=True)
class Estimate:
    """A mean and the half-widths of its intervals, in seconds."""

    mean: float
    #: Of the mean's confidence interval, and of the interval that a further run is in.
    ci: float
    pi: float


@dataclass(frozen=True)
class Prediction(Estimate):
    """How long a run is going to take, and what that is based on."""

    #: "exact" (runs at the very parameters), "regression" or "" (nothing to go by).
    basis: str
    #: Runs that it is based on.
    n: int
    #: The worst of the responses'; NaN where there is no regression.
    r2: float
    #: How far from the runs it is: up to 1 is near them. The largest of the responses'.
    leverage: float
    #: Why it must not be used; "" if it may.
    problem: str
    parts: Mapping[str, Estimate] = field(default_factory=dict)

    @property
    def valid(self) -> bool:
        """Whether it may be used for planning."""
        return not self.problem

    @property
    def upper(self) -> float:
        """What 97.5 of 100 runs (at a level of 95 %) do not exceed."""
        return self.mean + self.pi


@dataclass(frozen=True)
class Fitted:
    """A response's formula, fitted."""

    formula: Formula
    fit: Fit


class Model:
    """The runs of an application on a hardware class, and what is fitted to them when it is asked for."""

    def __init__(self, application: Application, runs: Iterable[Run] = ()) -> None:
        self.application = application
        self.formulas = application.formulas
        self.parameters = application.parameters
        self._rows: list[tuple[float, ...]] = []
        self._values: list[tuple[float, ...]] = []
        self._ends: list[float] = []
        #: Runs that are kept and do not count; how many of them because a term has no value there, and what
        #: is to be said of the first of these.
        self.left_out, self.without_value, self.why_without = 0, 0, ""
        self._fits: dict[str, Fitted] | None = None
        self._exact: dict[tuple[float, ...], list[float]] = {}
        self._counted = 0
        for run in runs:
            self.add(run)

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, run: Run) -> bool:
        """Take a run up, in the order of their ends; whether it counts."""
        row = tuple(run.parameters.get(name, math.nan) for name in self.parameters)
        values = tuple(run.values.get(name, math.nan) for name in self.formulas)
        if (
            not run.completed
            or not all(map(math.isfinite, (*row, *values)))
            or sum(values) < self.application.min_runtime
        ):
            self.left_out += 1
            return False
        if not np.isfinite(self._design(np.array([row]))).all():
            self.left_out += 1
            self.without_value += 1
            self.why_without = self.why_without or self._why_without(row)
            return False
        self._rows.append(row)
        self._values.append(values)
        self._ends.append(run.end)
        self._fits = None
        return True

    def fits(self) -> dict[str, Fitted]:
        """Each response's fit, made anew if runs came; {} without a run."""
        if self._fits is None:
            self._fit()
        assert self._fits is not None
        return self._fits

    @property
    def counted(self) -> int:
        """Runs that the fits are based on."""
        self.fits()
        return self._counted

    def predict(self, parameters: Mapping[str, float]) -> Prediction:
        """Predict a run with these parameters (all of them, finite)."""
        return self.predict_all([parameters])[0]

    def predict_all(self, points: Sequence[Mapping[str, float]]) -> list[Prediction]:
        """Of many runs at once."""
        rows = np.array([[point[name] for name in self.parameters] for point in points], dtype=float)
        rows = rows.reshape(len(points), len(self.parameters))
        fits = self.fits()
        if not fits:
            why = self.why_without or "no run is recorded"
            nothing = Prediction(math.nan, math.inf, math.inf, "", 0, math.nan, math.nan, why)
            return [nothing] * len(points)
        found: dict[str, tuple[NDArray[Any], ...]] = {}
        for name, (formula, one) in ((n, (f.formula, f.fit)) for n, f in fits.items()):
            x = _columns(formula, self.parameters, rows, self._constant(formula))
            usable = np.asarray(np.isfinite(x).all(axis=1))
            mean, leverage, estimable = one.predict(np.where(usable[:, None], x, 0.0))
            found[name] = (mean, leverage, estimable, usable, *one.half_widths(leverage))
        return [self._whole(at, tuple(row), found, fits) for at, row in enumerate(rows.tolist())]

    # ------------------------------------------------------------ inside

    def _constant(self, formula: Formula) -> bool:
        return self.application.intercept or formula.has_constant

    def _design(self, rows: Array) -> Array:
        """All terms' values at these points, one beside the other."""
        return np.hstack(
            [_columns(formula, self.parameters, rows, False) for formula in self.formulas.values()]
        )

    def _why_without(self, row: Sequence[float]) -> str:
        """Which term has no value at a point, the first of them."""
        at = ", ".join(f"{name}={value:.10g}" for name, value in zip(self.parameters, row, strict=True))
        values = {name: np.array([value]) for name, value in zip(self.parameters, row, strict=True)}
        term = next(
            term.text
            for formula in self.formulas.values()
            for term in formula.terms
            if not np.isfinite(term(values)).all()
        )
        return f"the term {term} has no value at {at} (a division by zero, or out of range)"

    def _fit(self) -> None:
        first = 0
        if self.application.last_runs is not None:
            first = max(0, len(self._rows) - self.application.last_runs)
        if self.application.last_days is not None and self._ends:
            oldest = self._ends[-1] - DAY * self.application.last_days
            while self._ends[first] < oldest:
                first += 1
        rows = np.array(self._rows[first:], dtype=float).reshape(-1, len(self.parameters))
        values = np.array(self._values[first:], dtype=float)
        self._counted = len(rows)
        self._exact = {}
        for row, seconds in zip(
            self._rows[first:], values.sum(axis=1).tolist() if len(rows) else [], strict=True
        ):
            self._exact.setdefault(row, []).append(seconds)
        self._fits = {}
        if len(rows):
            for at, (name, formula) in enumerate(self.formulas.items()):
                constant = self._constant(formula)
                x = _columns(formula, self.parameters, rows, constant)
                level = self.application.level
                self._fits[name] = Fitted(formula, fit(x, values[:, at], level=level, constant=constant))

    def _whole(
        self,
        at: int,
        row: tuple[float, ...],
        found: Mapping[str, tuple[NDArray[Any], ...]],
        fits: Mapping[str, Fitted],
    ) -> Prediction:
        """The prediction of the point ``at``, from what was found of each response."""
        parts: dict[str, Estimate] = {}
        problem, worst, farthest = "", math.inf, 0.0
        for name, (mean, leverage, estimable, usable, ci, pi) in found.items():
            of = "" if name == RUNTIME else f"{name}: "
            one, formula = fits[name].fit, fits[name].formula
            parts[name] = Estimate(float(mean[at]), float(ci[at]), float(pi[at]))
            worst, farthest = min(worst, one.r2), max(farthest, float(leverage[at]))
            if problem:
                continue
            if not usable[at]:
                problem = f"{of}a term of {formula.text} has no value there"
            elif one.df < 1:
                problem = f"{of}{_runs(one.n)} too few for {_coefficients(one.rank)}"
            elif not estimable[at]:
                problem = f"{of}not estimable from these runs: they do not tell the terms apart there"
            elif not one.significant:
                problem = f"{of}the formula explains no more than chance would (F test)"
            elif self.application.max_leverage is not None and leverage[at] > self.application.max_leverage:
                problem = f"{of}too far from the recorded runs (leverage {leverage[at]:.3g})"
        exact = self._exact.get(row, ())
        if len(exact) >= self.application.min_exact:
            return self._of_exact(exact)
        mean_ = math.fsum(part.mean for part in parts.values())
        ci_ = self._total(part.ci for part in parts.values())
        pi_ = self._total(part.pi for part in parts.values())
        if not problem and not mean_ > 0:
            problem = f"{mean_:.6g} s is predicted, which is no runtime"
        n = next(iter(fits.values())).fit.n
        shown = parts if list(parts) != [RUNTIME] else {}
        return Prediction(mean_, ci_, pi_, "regression", n, worst, farthest, problem, shown)

    def _of_exact(self, runs: Sequence[float]) -> Prediction:
        """From runs at the very parameters alone."""
        m = len(runs)
        mean = math.fsum(runs) / m
        deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in runs) / (m - 1))
        wide = t_quantile(self.application.level, m - 1) * deviation
        problem = "" if mean > 0 else f"{mean:.6g} s is predicted, which is no runtime"
        return Prediction(
            mean, wide / math.sqrt(m), wide * math.sqrt(1 + 1 / m), "exact", m, math.nan, 1 / m, problem
        )

    def _total(self, widths: Iterable[float]) -> float:
        if self.application.total == "sum":
            return sum(widths)
        return math.sqrt(sum(width**2 for width in widths))


def _columns(formula: Formula, names: Sequence[str], rows: Array, constant: bool) -> Array:
    """The design matrix of these points: a column a term, behind a column of ones with ``constant``."""
    values = {name: rows[:, at] for at, name in enumerate(names)}
    columns = [np.broadcast_to(term(values), (len(rows),)) for term in formula.terms]
    return np.column_stack([np.ones(len(rows)), *columns] if constant else columns)


def _runs(n: int) -> str:
    return "1 run is" if n == 1 else f"{n} runs are"


def _coefficients(k: int) -> str:
    return "1 coefficient" if k == 1 else f"{k} coefficients"
