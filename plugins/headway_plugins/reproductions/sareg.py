"""Figures 4 to 6 and the averages of the paper on SAREG.

T. Xie, X. Qin, A. Sung: Enhancing Security of Real-Time Applications on Grids Through Dynamic Scheduling.
JSSPP 2005, section 5.

The first 6,400 jobs with a positive run time of SDSC-SP2-1998-4.2-cln on sites of 46 processors. No figure's
values are at hand, so what is compared is what the text says. Min-Min and Sufferage depend on when mapping
events are, of which the paper says nothing: they are there at several intervals (seconds behind their names;
0: at each arrival and completion). The runs are made by :mod:`headway_plugins.security.grid`; a seed draws
everything that :mod:`headway_plugins.security.workload` draws, and gains are taken seed by seed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headway.experiment import judging
from headway.experiment.campaign import Row, Task, select
from headway.experiment.judging import size_verdict
from headway.experiment.plots import line_plot
from headway.experiment.published import Published
from headway.experiment.reproduction import Claim, Context
from headway.experiment.statistics import Interval, interval, paired
from headway.workload import read_swf, trace_jobs
from headway_plugins.security.grid import Course, Grid, GridJob, Placed, Rule, batch, sareg
from headway_plugins.security.levels import profile_2005, raise_exactly
from headway_plugins.security.workload import Settings, draw

GR, SV, OSP = "guarantee ratio", "security value", "overall performance"
RULES: dict[str, Rule] = {"MINMIN": "minmin", "SUFFER": "sufferage"}
#: Percent, abstract and section 6: how much better SAREG is by overall performance, on average.
PUBLISHED = {"MINMIN": 286.34, "SUFFER": 272.14, "NS-EDF": 33.86}

Run = Callable[[Grid, Sequence[GridJob]], Course]


@dataclass(frozen=True)
class Jobs:
    """What a trace says: ids, and arrays of seconds and processors."""

    names: tuple[str, ...]
    submit: NDArray[np.float64]
    runtime: NDArray[np.float64]
    processors: NDArray[np.int64]


def jobs_of(path: Path, count: int) -> Jobs:
    """The first ``count`` jobs with a positive run time."""
    found, _ = trace_jobs(read_swf(path), None)
    jobs = [job for job in found if job.runtime > 0][:count]
    return Jobs(
        tuple(job.job.id for job in jobs),
        np.array([job.job.submit_time for job in jobs], np.float64),
        np.array([job.runtime for job in jobs], np.float64),
        np.array([job.job.request.processors for job in jobs], np.int64),
    )


def runs_of(intervals: Sequence[float]) -> dict[str, Run]:
    """The compared schedulers by name."""
    runs: dict[str, Run] = {"SAREG": sareg, "NS-EDF": partial(sareg, drawn=True)}
    for name, rule in RULES.items():
        for seconds in intervals:
            runs[f"{name} {seconds:g}"] = partial(batch, rule=rule, interval=seconds)
    return runs


#: Other readings of the algorithm and of the set-up, at the tightest deadlines.
READINGS: dict[str, tuple[Settings, Run]] = {
    "as decided": (Settings(), sareg),
    "plan: edf": (Settings(), lambda grid, jobs: sareg(grid, jobs, plan="edf")),
    "site_choice: best": (Settings(), lambda grid, jobs: sareg(grid, jobs, site_choice="best")),
    "levels: exact": (Settings(), lambda grid, jobs: sareg(grid, jobs, raising=raise_exactly)),
    "input of 1 TB": (Settings(long_input=1e12), sareg),
    "bandwidth 5 MB/s": (Settings(bandwidth=5e6), sareg),
}


def figures(course: Course) -> dict[str, float]:
    """What is told of a run."""
    met = course.met()
    placed = [(j, p) for j, p in zip(course.jobs, course.placed, strict=True) if isinstance(p, Placed)]
    moved = [job.volume for job, where in placed if where.site != job.home]
    return {
        GR: course.guarantee_ratio,
        SV: course.security_value,
        OSP: course.overall,
        "mean level": float(np.mean([job.need.level(p.steps) for job, p in met])) if met else float("nan"),
        "at upper ends": float(np.mean([p.steps == job.need.highest for job, p in met]))
        if met
        else float("nan"),
        "migrations": float(len(moved)),
        "terabytes moved": float(sum(moved)) / 1e12,
    }


def run_point(
    jobs: Jobs,
    scenario: str,
    x: float,
    settings: Settings,
    intervals: Sequence[float],
    names: Sequence[str],
    seed: int,
) -> list[Row]:
    """All schedulers on one draw."""
    runs = runs_of(intervals)
    grid, drawn = _drawn(jobs, settings, seed)
    rows = []
    for name in names:
        begin = time.process_time()
        course = runs[name](grid, drawn)
        seconds = time.process_time() - begin
        rows.append(Row(scenario, x, name, seed, {**figures(course), "seconds": seconds}))
    return rows


def run_reading(jobs: Jobs, scenario: str, name: str, seed: int) -> list[Row]:
    """One reading of :data:`READINGS`."""
    settings, run = READINGS[name]
    return [Row(scenario, 0.0, name, seed, figures(run(*_drawn(jobs, settings, seed))))]


def _drawn(jobs: Jobs, settings: Settings, seed: int) -> tuple[Grid, list[GridJob]]:
    return draw(
        np.random.default_rng(seed),
        settings,
        profile_2005(),
        names=jobs.names,
        submit=jobs.submit,
        runtime=jobs.runtime,
        processors=jobs.processors,
    )


class SaregReproduction:
    """The experiments of Xie, Qin and Sung 2005."""

    title = "SAREG (Xie, Qin and Sung 2005)"
    published = Published(system="open", workloads=1, jobs=6_400, intervals=False, estimates="exact")

    def __init__(
        self,
        jobs: int = 6400,
        laxities: Sequence[float] = (50, 200, 400, 800),
        sites: Sequence[int] = (4, 8, 16, 32),
        speeds: Sequence[float] = (2, 4, 8, 16),
        intervals: Sequence[float] = (0, 60, 145, 300),
    ) -> None:
        """``intervals``: seconds between mapping events of Min-Min and Sufferage; with the last but one the
        claims on them are judged beside 0."""
        self._jobs = jobs
        self._laxities, self._sites, self._speeds, self._intervals = laxities, sites, speeds, intervals

    def run(self, context: Context) -> list[Claim]:
        path = next(context.traces.glob("SDSC-SP2-1998-4.2-cln*"), None) if context.traces else None
        if path is None:
            return [
                Claim("all", "-", "the trace SDSC-SP2-1998-4.2-cln is not at hand (--traces DIR)", "not run")
            ]
        jobs = jobs_of(path, self._jobs)
        all_names = list(runs_of(self._intervals))
        few = ["SAREG", "NS-EDF", *(f"{rule} {self._judging:g}" for rule in RULES)]
        base = Settings()
        laxity = self._rows(
            context, jobs, "figure-4", all_names, {x: replace(base, laxity=x) for x in self._laxities}
        )
        sites = self._rows(
            context, jobs, "figure-5", few, {n: replace(base, laxity=200, sites=n) for n in self._sites}
        )
        speed = self._rows(
            context, jobs, "figure-6", few, {f: replace(base, laxity=200, speed=f) for f in self._speeds}
        )
        heavy = self._rows(
            context,
            jobs,
            "data-1000-fold",
            ["SAREG", "NS-EDF"],
            {x: replace(base, laxity=x, speed=1.0, protected=1000.0) for x in self._laxities},
        )
        keys = [("readings", 0.0, name, seed) for name in READINGS for seed in context.seeds]
        readings = context.collect(
            "readings",
            [Task((key,), run_reading, (jobs, key[0], key[2], key[3])) for key in keys],
            [self._jobs, sorted(READINGS)],
        )
        for name, rows, label in (
            ("figure-4", laxity, "laxity (s)"),
            ("figure-5", sites, "sites"),
            ("figure-6", speed, "speed (SP2 = 1)"),
        ):
            line_plot(rows, (GR, SV, OSP), context.out / f"{name}.png", x_label=label, title="SAREG")
        return self.claims(laxity, sites, speed, heavy, readings)

    @property
    def _judging(self) -> float:
        return self._intervals[max(len(self._intervals) - 2, 0)]

    def _rows(
        self, context: Context, jobs: Jobs, name: str, names: Sequence[str], points: Mapping[float, Settings]
    ) -> list[Row]:
        tasks = [
            Task(
                tuple((name, float(x), run, seed) for run in names),
                run_point,
                (jobs, name, float(x), settings, tuple(self._intervals), tuple(names), seed),
            )
            for x, settings in points.items()
            for seed in context.seeds
        ]
        definition = [self._jobs, list(self._intervals), list(names), sorted(map(str, points.items()))]
        return context.collect(name, tasks, definition)

    # ------------------------------------------------------------------ claims

    def claims(
        self,
        laxity: Sequence[Row],
        sites: Sequence[Row],
        speed: Sequence[Row],
        heavy: Sequence[Row],
        readings: Sequence[Row],
    ) -> list[Claim]:
        """What the paper says, beside the rows."""
        zero, judging = f"{self._intervals[0]:g}", f"{self._judging:g}"
        claims = [self._alike(laxity)]
        for at in dict.fromkeys((zero, judging)):
            claims.append(
                self._ahead(
                    laxity,
                    GR,
                    [f"{rule} {at}" for rule in RULES],
                    100.0,
                    "Figure 4(a)",
                    "SAREG accepts far more than Min-Min and Sufferage meet (here: twice as many), "
                    f"mapping {_when(at)}",
                )
            )
        claims += [
            self._rises(laxity, GR, "Figure 4(a)", "the guarantee ratio of all four rises with the laxity"),
            self._ahead(
                laxity, SV, list(_others(laxity)), 0.0, "Figure 4(b)", "SAREG's security value is the highest"
            ),
            self._tighter(laxity, "NS-EDF"),
            *(self._tighter(laxity, f"MINMIN {at}") for at in dict.fromkeys((zero, judging))),
            self._rises(laxity, OSP, "Figure 4(c)", "SAREG's overall performance rises", ("SAREG",)),
            self._average(laxity, "NS-EDF", "NS-EDF"),
            *(self._average(laxity, rule, f"{rule} {at:g}") for rule in RULES for at in self._intervals),
            self._constant(sites, judging),
            self._ahead(
                speed, OSP, list(_others(speed)), 0.0, "Figure 6", "best overall performance at each speed"
            ),
            self._gains_little(speed, judging),
            self._second(laxity),
            self._time(laxity),
            self._upper_ends(laxity),
            self._heavy(heavy),
            self._readings(readings),
        ]
        return claims

    def _alike(self, rows: Sequence[Row]) -> Claim:
        values = {x: _paired_at(rows, x, GR, "SAREG", "NS-EDF") for x in _xs(rows)}
        told = "; ".join(
            f"{x:g} s: {_mean(rows, GR, 'SAREG', x):.4f}, {_mean(rows, GR, 'NS-EDF', x):.4f}" for x in values
        )
        small = [change.low > -2 and change.high < 2 for change in values.values()]
        return Claim(
            "Figure 4(a)",
            "the guarantee ratios of SAREG and NS-EDF differ by less than 2 %",
            told,
            judging.held(small),
        )

    def _ahead(
        self, rows: Sequence[Row], metric: str, others: Sequence[str], least: float, where: str, said: str
    ) -> Claim:
        gains = {(o, x): _paired_at(rows, x, metric, "SAREG", o) for o in others for x in _xs(rows)}
        beyond = [Interval(gain.mean - least, gain.half, gain.count) for gain in gains.values()]
        ahead = sum(one.low > 0 for one in beyond)
        order = sorted(gains, key=lambda key: gains[key].mean)
        told = " to ".join(f"{_percent(gains[k])} ({k[0]} at {k[1]:g})" for k in (order[0], order[-1]))
        return Claim(where, said, f"{ahead} of {len(beyond)} points; {told}", judging.verdict(beyond))

    def _rises(
        self, rows: Sequence[Row], metric: str, where: str, said: str, names: Sequence[str] | None = None
    ) -> Claim:
        told, steady, gains = [], [], []
        first, last = _xs(rows)[0], _xs(rows)[-1]
        for name in names or list(dict.fromkeys(row.variant for row in rows)):
            means = [_mean(rows, metric, name, x) for x in _xs(rows)]
            steady.append(all(b >= a for a, b in pairwise(means)))
            at_first, at_last = (select(rows, metric, variant=name, x=x) for x in (first, last))
            gains.append(paired(at_last, at_first))
            told.append(f"{name} {', '.join(f'{mean:.4g}' for mean in means)}")
        holds = judging.provided(judging.verdict(gains), judging.held(steady))
        return Claim(where, said, "; ".join(told), holds)

    def _tighter(self, rows: Sequence[Row], other: str) -> Claim:
        gains = [_paired_at(rows, x, OSP, "SAREG", other) for x in _xs(rows)]
        told = ", ".join(_percent(gain) for gain in gains)
        return Claim(
            "Figure 4",
            f"the gain over {other} is larger with tighter deadlines",
            told,
            _larger_at_the_tightest(rows, other),
        )

    def _average(self, rows: Sequence[Row], named: str, other: str) -> Claim:
        seeds = sorted({row.seed for row in rows})
        gains = np.array(
            [
                [
                    _gain(_value(rows, OSP, "SAREG", x, seed), _value(rows, OSP, other, x, seed))
                    for x in _xs(rows)
                ]
                for seed in seeds
            ]
        )
        # Where the other one did nothing at all there is no gain in percent.
        values = [
            float(of_seed[np.isfinite(of_seed)].mean()) for of_seed in gains if np.isfinite(of_seed).any()
        ]
        gain = interval(values)
        when = f", mapping {_when(other.split()[1])}" if " " in other else ""
        published = PUBLISHED[named]
        return Claim(
            "Section 6",
            f"overall performance {published:g} % above {named}'s on average{when}",
            _percent(gain),
            judging.verdict([gain]),
            size_verdict(published, gain),
        )

    def _constant(self, rows: Sequence[Row], at: str) -> Claim:
        told, held = [], []
        for rule in RULES:
            gains = [_paired_at(rows, x, OSP, "SAREG", f"{rule} {at}").mean for x in _xs(rows)]
            held.append(max(gains) - min(gains) < 10)
            told.append(f"{rule} {', '.join(f'{gain:.1f}' for gain in gains)} %")
        return Claim(
            "Figure 5",
            "4 to 32 sites: the gain over Min-Min and Sufferage hardly changes (within 10 points), "
            f"mapping {_when(at)}",
            "; ".join(told),
            judging.held(held),
        )

    def _gains_little(self, rows: Sequence[Row], at: str) -> Claim:
        told, held = [], []
        for rule in RULES:
            means = [_mean(rows, GR, f"{rule} {at}", x) for x in _xs(rows)]
            held.append(means[-1] / means[0] - 1 < 0.1)
            told.append(f"{rule} {', '.join(f'{mean:.3f}' for mean in means)}")
        return Claim(
            "Figure 6",
            "Min-Min and Sufferage gain little guarantee ratio from faster processors (under 10 %), "
            f"mapping {_when(at)}",
            "; ".join(told),
            judging.held(held),
        )

    def _second(self, rows: Sequence[Row]) -> Claim:
        others = [name for name in _others(rows) if name != "NS-EDF"]
        points = [(o, x) for o in others for x in _xs(rows)]
        gains = [_paired_at(rows, x, SV, "NS-EDF", o) for o, x in points]
        return Claim(
            "Section 5.2",
            "NS-EDF is second by security value",
            f"at {sum(gain.mean > 0 for gain in gains)} of {len(gains)} points",
            judging.verdict(gains),
        )

    def _time(self, rows: Sequence[Row]) -> Claim:
        slowest = max(row.values["seconds"] for row in rows if row.variant == "SAREG")
        return Claim(
            "Section 4",
            "the scheduler's run time is negligible beside 8,031 s a job",
            f"{self._jobs} jobs in at most {slowest:.2f} s of processor time",
            "yes" if slowest < 80 else "no",
        )

    def _upper_ends(self, rows: Sequence[Row]) -> Claim:
        ends = [_mean(rows, "at upper ends", "SAREG", x) for x in _xs(rows)]
        return Claim(
            "-",
            "(why) jobs of SAREG that have all their upper ends",
            ", ".join(f"{100 * end:.2f} %" for end in ends),
            "-",
        )

    def _heavy(self, rows: Sequence[Row]) -> Claim:
        gains = [_paired_at(rows, x, OSP, "SAREG", "NS-EDF") for x in _xs(rows)]
        ends = [_mean(rows, "at upper ends", "SAREG", x) for x in _xs(rows)]
        told = ", ".join(
            f"{_percent(gain)} ({100 * (1 - end):.1f} % below their upper ends)"
            for gain, end in zip(gains, ends, strict=True)
        )
        return Claim(
            "-",
            "(sensitivity) 1000 times the data, speed 1: NS-EDF is further behind with tighter deadlines",
            told,
            _larger_at_the_tightest(rows, "NS-EDF"),
        )

    def _readings(self, rows: Sequence[Row]) -> Claim:
        told = "; ".join(
            f"{name}: {interval(select(rows, GR, variant=name)).mean:.4f}, "
            f"{interval(select(rows, SV, variant=name)).mean:.0f}"
            for name in READINGS
        )
        return Claim(
            "-", "(readings) guarantee ratio and security value at the tightest deadlines", told, "-"
        )


def _xs(rows: Sequence[Row]) -> list[float]:
    return sorted({row.x for row in rows})


def _others(rows: Sequence[Row]) -> list[str]:
    return [name for name in dict.fromkeys(row.variant for row in rows) if name != "SAREG"]


def _mean(rows: Sequence[Row], metric: str, name: str, x: float) -> float:
    return interval(select(rows, metric, variant=name, x=x)).mean


def _value(rows: Sequence[Row], metric: str, name: str, x: float, seed: int) -> float:
    return next(r.values[metric] for r in rows if (r.variant, r.x, r.seed) == (name, x, seed))


def _paired_at(rows: Sequence[Row], x: float, metric: str, ours: str, theirs: str) -> Interval:
    return paired(select(rows, metric, variant=ours, x=x), select(rows, metric, variant=theirs, x=x))


def _larger_at_the_tightest(rows: Sequence[Row], other: str) -> str:
    """Whether SAREG's gain in overall performance is larger at the least laxity than at the most."""
    xs, seeds = _xs(rows), sorted({row.seed for row in rows})
    first, last = (
        np.array([_gain(*(_value(rows, OSP, name, x, seed) for name in ("SAREG", other))) for seed in seeds])
        for x in (xs[0], xs[-1])
    )
    # Where the other one did nothing at all there is no gain in percent.
    finite = np.isfinite(first) & np.isfinite(last)
    return judging.verdict([interval((first[finite] - last[finite]).tolist())])


def _gain(ours: float, theirs: float) -> float:
    """Percent; infinite beside nothing."""
    return 100 * (ours / theirs - 1) if theirs else float("inf")


def _percent(gain: Interval) -> str:
    spread = f" ± {gain.half:.1f}" if gain.count > 1 else ""
    return f"{round(gain.mean, 1) + 0.0:+.1f}{spread} %"


def _when(at: str) -> str:
    return "at each arrival and completion" if at == "0" else f"every {at} s"
