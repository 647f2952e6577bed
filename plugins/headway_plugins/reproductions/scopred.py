"""The tables and claims of the paper on ScoPred, from the means that it prints.

B. J. Lafreniere, A. C. Sodan: ScoPred - Scalable User-Directed Performance Prediction Using Complexity
Modeling and Historical Data. JSSPP 2005. The paper fitted single runs and prints their means. A fit of the
means gives the same predictions where each configuration was run equally often, but not the same intervals:
where a claim speaks of intervals, ours are the prediction from the means and the half-width that the paper
prints, or, where it prints none, our own from the means. Nothing is drawn, so seeds change nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from headway.experiment.campaign import Row
from headway.experiment.judging import held
from headway.experiment.published import Published
from headway.experiment.reproduction import Claim, Context
from headway_plugins.prediction.applications import Application
from headway_plugins.prediction.models import Model, Run
from headway_plugins.reproductions.scopred_tables import FT_PARTS, FT_SHARE, FT_TOTAL, Case, Predicted, cases

#: How far a fit of means may be from a printed prediction: seconds, and a share. The tables print two
#: decimals, and extrapolation amplifies them.
SECONDS, SHARE = 0.06, 2e-4


@dataclass(frozen=True)
class Found:
    """A printed prediction beside ours."""

    case: Case
    printed: Predicted
    #: Seconds; and percent of what was measured.
    ours: float
    error: float
    #: Our own half-widths.
    ci: float
    pi: float
    r2: float
    significant: bool

    def inside(self, which: str) -> bool:
        """Whether what was measured lies inside of the interval "ci" or "pi"."""
        printed: float | None = getattr(self.printed, which)
        width = printed if printed is not None else getattr(self, which)
        return abs(self.printed.measured - self.ours) <= width


def find() -> list[Found]:
    """All predictions of the tables."""
    found = []
    for case in cases():
        formulas = dict(case.formulas)
        formula = formulas.get("runtime")
        application = Application.model_validate({"formula": formula} if formula else {"parts": formulas})
        model = Model(application, [Run(point, values) for point, values in case.runs])
        fits = [one.fit for one in model.fits().values()]
        for printed in case.predicted:
            total = model.predict(printed.point)
            one = total.parts[printed.part] if printed.part else total
            error = 100 * (one.mean / printed.measured - 1)
            found.append(
                Found(
                    case,
                    printed,
                    one.mean,
                    error,
                    one.ci,
                    one.pi,
                    total.r2,
                    all(fit.significant for fit in fits),
                )
            )
    return found


class ScopredReproduction:
    """The experiments of Lafreniere and Sodan 2005."""

    title = "ScoPred: performance prediction from formulas and recorded runs (Lafreniere, Sodan 2005)"
    published = Published(system="", intervals=True)

    def run(self, context: Context) -> list[Claim]:
        found = find()
        rows = [
            Row(
                f"table {one.case.table}: {one.case.what} -> {_point(one)}",
                0.0,
                "means",
                0,
                {
                    "measured_s": one.printed.measured,
                    "ours_s": one.ours,
                    "error_percent": one.error,
                    "published_s": math.nan if one.printed.published is None else one.printed.published,
                },
            )
            for one in found
        ]
        context.record("predictions", rows, [case.what for case in cases()])
        return claims_of(found)


def claims_of(found: list[Found]) -> list[Claim]:
    """The tables, the claims of the text, and what is wrong in it."""

    tables = _Tables(found)
    names = dict.fromkeys(one.case.table for one in found if one.case.table != "text")
    return [
        *(_table(name, tables.of(name)) for name in names),
        *_ep_claims(tables),
        *_ft_claims(tables),
        *_ft_claims_of_both(tables),
        *_hpl_claims(tables),
        *_claims_of_the_text(tables),
    ]


@dataclass(frozen=True)
class _Tables:
    found: list[Found]

    def of(self, table: str) -> list[Found]:
        """The predictions of one table."""
        return [one for one in self.found if one.case.table == table]


def _claim(where: str, says: str, measured: str, *holds: bool) -> Claim:
    return Claim(where, says, measured, held(holds))


def _ep_claims(tables: _Tables) -> Iterator[Claim]:
    ep = [[one for one in tables.of("2") if f"class {c}" in one.case.what] for c in "AB"]
    # The interval is printed for 12 processors and hardly wider for more.
    late = [not _within(one, ep[0][0].printed.pi) for one in ep[0][1:]]
    yield _claim(
        "EP, more nodes",
        "class A at 14 and 16 outside both intervals, class B inside both",
        f"A off by {_seconds(ep[0][1:])} (printed interval at 12: {ep[0][0].printed.pi} s), "
        f"B by {_seconds(ep[1])}",
        all(late),
        all(one.inside("ci") and one.inside("pi") for one in ep[1]),
    )
    yield _claim(
        "EP, larger problem", "all errors below 5 %", _errors(tables.of("3")), _below(tables.of("3"), 5)
    )
    yield _claim(
        "EP, both",
        "all within 6 %",
        f"{_errors(tables.of('4'))} (from the training set that the text names)",
        _below(tables.of("4"), 6),
    )
    every = [*tables.of("2"), *tables.of("3")]
    yield _claim(
        "EP",
        "R2 near 1, F test passed",
        f"R2 from {min(one.r2 for one in every):.4f}, F passed by "
        f"{sum(one.significant for one in every)} of {len(every)}",
        min(one.r2 for one in every) > 0.99,
        all(one.significant for one in every),
    )


def _ft_claims(tables: _Tables) -> Iterator[Claim]:
    a = tables.of("6")
    near, far = (
        [one for one in a if one.printed.point["P"] < 64],
        [one for one in a if one.printed.point["P"] == 64],
    )
    yield _claim(
        "FT class A, more nodes",
        "16 and 32 within 12 %, 64 off by 29 to 43 %, all inside PI, two inside CI",
        f"{_errors(near)}; {_errors(far)}; {_count(a, 'pi')} inside PI, {_count(a, 'ci')} inside CI",
        _below(near, 12),
        _between(far, 29, 43),
        _count(a, "pi") == len(a),
        _count(a, "ci") == 2,
    )
    b = [
        one
        for one in tables.of("7")
        if (one.case.what[-3:], one.printed.point["P"]) in (("2-8", 16), ("-16", 32))
    ]
    yield _claim(
        "FT class B, more nodes",
        "16 (from 2 to 8) and 32 (from 2 to 16) below 15 % and inside PI",
        f"{_errors(b)}; {_count(b, 'pi')} inside PI",
        len(b) == 2 and _below(b, 15),
        _count(b, "pi") == 2,
    )
    c = tables.of("8")
    yield _claim(
        "FT, larger problem",
        "at most 4 %, none inside any interval",
        f"{_errors(c)}; {_count(c, 'pi')} inside PI",
        _below(c, 4),
        not _count(c, "pi"),
    )


def _ft_claims_of_both(tables: _Tables) -> Iterator[Claim]:
    """Where sizes and nodes change together, and of the parts."""
    joint = tables.of("9")
    c, b = ([one for one in joint if (one.printed.point["N"] == 2.0**27) is large] for large in (True, False))
    yield _claim(
        "FT, both",
        "class C off by 17 to 25 %, class B below 11 % and inside PI",
        f"C {_errors(c)}; B {_errors(b)}",
        _between(c, 17, 25),
        _below(b, 11),
        # The interval is printed for the nearest one alone.
        all(_within(one, one.printed.pi or b[0].printed.pi) for one in b),
    )
    cpu, comm = ([one for one in tables.of("11") if one.printed.part == part] for part in ("cpu", "comm"))
    yield _claim(
        "FT by parts",
        "computation below 11 %, communication off by 44 to 134 %: its model is wrong",
        f"{_errors(cpu)}; {_errors(comm)}",
        _below(cpu, 11),
        _between(comm, 44, 134),
    )


def _hpl_claims(tables: _Tables) -> Iterator[Claim]:
    alone, both = (
        tables.of("13"),
        [one for one in tables.of("15") if one.printed.point["P"] == 8 and one.printed.point["N"] < 14000],
    )
    yield _claim(
        "HPL, more nodes",
        "alone 6.9 to 52 %, from sizes and nodes together better",
        f"{_errors(alone)}; together {_errors(both)}",
        _between(alone, 6.9, 52),
        _mean(both) < _mean(alone),
    )
    yield _claim("HPL, larger problem", "below 9 %", _errors(tables.of("14")), _below(tables.of("14"), 9))
    first = tables.of("17")
    yield _claim(
        "HPL on 16 nodes, without 6000 and 4x4",
        "below 6 %, all inside PI",
        f"{_errors(first)}; {_count(first, 'pi')} of {len(first)} inside our PI",
        _below(first, 6),
        _count(first, "pi") == len(first),
    )
    last = tables.of("18")
    out = sorted(
        f"{one.printed.point['P']:g}x{one.printed.point['Q']:g}" for one in last if not one.inside("pi")
    )
    yield _claim(
        "HPL on 16 nodes, without 9000 and 16x1",
        "below 4 %, outside only 4x4 and 8x2 at 9000",
        f"{_errors(last)}; outside PI: {', '.join(out)}",
        _below(last, 4),
        out == ["4x4", "8x2"],
    )


def _claims_of_the_text(tables: _Tables) -> Iterator[Claim]:
    """What the text says of the tables, and what does not hold in it."""
    missed = [one for one in tables.of("3") if not _within(one, one.printed.pi)]
    yield _claim(
        "text to Table 3",
        "only P = 2 misses its interval",
        "missed at P = " + ", ".join(f"{one.printed.point['P']:g}" for one in missed),
        len(missed) == 1,
    )
    missed = [one for one in tables.of("14") if not _within(one, one.printed.pi)]
    yield _claim(
        "text to Table 14",
        "all but two predictions inside the intervals",
        f"all but {len(missed)}",
        len(missed) == 2,
    )
    total = [100 * FT_PARTS["comm"][p] / FT_TOTAL[p] for p in FT_SHARE]
    halves = [100 * FT_PARTS["comm"][p] / (FT_PARTS["comm"][p] + FT_PARTS["cpu"][p]) for p in FT_SHARE]
    yield _claim(
        "Table 10",
        f"communication is {FT_SHARE[2]} to {FT_SHARE[64]} % of the total",
        f"{total[0]:.1f} to {total[-1]:.1f} % of the total; "
        f"{halves[0]:.2f} to {halves[-1]:.2f} % of it and computation",
        all(abs(one - printed) < 0.1 for one, printed in zip(total, FT_SHARE.values(), strict=True)),
    )


def _table(table: str, found: list[Found]) -> Claim:
    """Whether a fit of the means gives the printed predictions."""
    printed = [(one.ours, one.printed.published) for one in found if one.printed.published is not None]
    near = [abs(ours - said) <= max(SECONDS, SHARE * said) for ours, said in printed]
    worst = max(abs(ours - said) for ours, said in printed)
    low, high = min(said for _, said in printed), max(said for _, said in printed)
    return Claim(
        f"Table {table}",
        f"{len(printed)} predictions, {low:g} to {high:g} s",
        f"{sum(near)} of {len(near)} the same; largest difference {worst:.3f} s",
        held(near),
    )


def _within(one: Found, width: float | None) -> bool:
    """Whether the measured value is within so much of the printed prediction."""
    assert width is not None and one.printed.published is not None
    return abs(one.printed.measured - one.printed.published) <= width


def _errors(found: Iterable[Found]) -> str:
    return ", ".join(f"{one.error:+.1f}" for one in found) + " %"


def _seconds(found: Iterable[Found]) -> str:
    return ", ".join(f"{abs(one.ours - one.printed.measured):.2f}" for one in found) + " s"


def _below(found: Iterable[Found], percent: float) -> bool:
    return all(abs(one.error) < percent for one in found)


def _between(found: Iterable[Found], low: float, high: float) -> bool:
    """In a range that the paper gives in whole percent: it may be rounded."""
    return all(low - 0.5 <= abs(one.error) <= high + 0.5 for one in found)


def _count(found: Iterable[Found], which: str) -> int:
    return sum(one.inside(which) for one in found)


def _mean(found: list[Found]) -> float:
    return sum(abs(one.error) for one in found) / len(found)


def _point(one: Found) -> str:
    return " ".join(f"{name}={value:g}" for name, value in one.printed.point.items()) + (
        f" {one.printed.part}" if one.printed.part else ""
    )
