"""Figures 6 to 14 and section 2.1 of the paper on KEASY, REASY and MEASY.

X. Liu, B. Chen, X. Qiu, Y. Cai, K. Huang: Scheduling Parallel Jobs Using Migration and Consolidation in the
Cloud. 2012, sections 2.1 and 3.

320 processors, the workload models ``feitelson96`` and ``jann97`` (fitted to what is published of them),
estimates of Tsafrir's model without known shares, or of another one (``--set estimates=f-model``). As in
the paper the results are batch means: each point is one long run, of which the first batch is dropped and
each further one is a value; what comes behind the last batch only keeps the machine busy. All policies meet
the same jobs, and improvements are taken batch by batch. ``--seeds`` is the number of batches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from headway.emulation import emulate
from headway.experiment.campaign import Row, Task, select, workload_models
from headway.experiment.estimates import chosen_model
from headway.experiment.judging import Of, held, size_verdict, verdict
from headway.experiment.plots import line_plot
from headway.experiment.published import Published
from headway.experiment.reproduction import Claim, Context
from headway.experiment.statistics import Interval, interval, paired
from headway.metrics.jobs import BOUND
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig
from headway.workload import ChosenModel, TraceJob, estimated_workload
from headway.workload.cpu_use import jobs_with_cpu_use
from headway_plugins.reproductions.two_tiers_measured import NotMeasured, TwoTiers, measure

PROCESSORS = 320
MODELS = {"feitelson96": "FWload", "jann97": "JWload"}
TIERED = ("keasy", "reasy", "measy")
POLICIES = ("easy", *TIERED)
#: Sections 3.4 and 3.5: published improvements of MEASY over EASY, percent: the largest and the mean.
PUBLISHED = {"mean response": (41.1, 23.1), "mean bounded slowdown": (82.9, 69.3)}
#: Section 3.5.3: up to which migration cost MEASY is better than KEASY, and from which it is comparable.
COSTS_OF = {"feitelson96": (900.0, 1500.0), "jann97": (480.0, 900.0)}
#: The paper says of no figure how large the load is at which the cost was varied.
COST_LOAD = 0.7
#: Percent: what counts as comparable; the paper gives no rule.
COMPARABLE = 10.0
#: The estimate model that the workload models have themselves; estimates are up to F + 1 times the runtimes.
OWN = "f-model"
TSAFRIR = "tsafrir05"
F = 4.0

#: Section 2.1: CPU uses of the process in front.
USES = (0.5, 0.7, 0.9, 0.97)
REAL, TIERS = "real processes", "two tiers"


@dataclass(frozen=True)
class Point:
    """One run."""

    model: str
    load: float
    policy: str
    #: The value on the figure's axis.
    x: float
    options: Mapping[str, Any] = field(default_factory=dict)
    #: Every process uses all of its processor.
    greedy: bool = False
    #: The model of the users' estimates.
    estimates: str = TSAFRIR


def estimate_model(catalogue: Catalogue, name: str) -> ChosenModel:
    """The model of that name. Too few estimates of Tsafrir's are long enough for the jobs of ``jann97``."""
    return chosen_model(catalogue, name, {"too_short": "raise"} if name == TSAFRIR else {}, "--set estimates")


def point_jobs(point: Point, count: int, seed: int) -> Sequence[TraceJob]:
    """The jobs of a point. The seed decides on them and on their estimates, whatever the policy."""
    catalogue = Catalogue()
    model = workload_models(catalogue)[point.model]
    options = model.Options(jobs=count, processors=PROCESSORS, load=point.load, f=F)
    workload = model.generate(np.random.default_rng(seed), options)
    if point.estimates != OWN:
        workload = estimated_workload(workload, estimate_model(catalogue, point.estimates), seed)
    jobs: Sequence[TraceJob] = workload.jobs
    if point.greedy:
        jobs = jobs_with_cpu_use(jobs, {trace.job.id: 1.0 for trace in jobs})
    return jobs


def run_point(point: Point, batch: int, batches: int, seed: int = 1) -> list[Row]:
    """The values of each batch of a run."""
    catalogue = Catalogue()
    jobs = point_jobs(point, (batches + 1) * batch + batch // 2, seed)
    # EASY shares nothing, so it knows no options of that.
    options = point.options if point.policy != "easy" else {}
    configs = catalogue.enabled([PluginConfig(point.policy, dict(options))])
    result = emulate(
        ClusterDescription.flat(PROCESSORS), jobs, configs, catalogue, label=point.policy, seed=seed
    )
    response = np.array([(job.end_time or np.nan) - job.job.submit_time for job in result.jobs])
    runtime = np.array([trace.runtime for trace in jobs])
    slowdown = np.maximum(1.0, response / np.maximum(runtime, BOUND))
    moves = np.array([job.migrations for job in result.jobs], np.float64)
    restarts = np.array([job.restarts for job in result.jobs], np.float64)
    rows = []
    for number in range(batches):
        part = slice((number + 1) * batch, (number + 2) * batch)
        values = {
            "mean response": float(response[part].mean()),
            "mean bounded slowdown": float(slowdown[part].mean()),
            "migrations": float(moves[part].mean()),
            "restarts": float(restarts[part].mean()),
        }
        rows.append(Row(MODELS[point.model], point.x, point.policy, number + 1, values))
    return rows


class MeasyReproduction:
    """The experiments of Liu and others 2012."""

    title = "KEASY, REASY and MEASY (Liu and others 2012)"
    published = Published(
        system="open", workloads=2, jobs=100_000, intervals=False, load_by="arrivals", estimates="model",
        backfills=True, means_alone=True, levels=2,
    )  # fmt: skip

    def __init__(
        self,
        batch: int = 5000,
        loads: Sequence[float] = (0.5, 0.6, 0.7, 0.8, 0.9),
        few_loads: Sequence[float] = (0.5, 0.7, 0.9),
        costs: Sequence[float] = (20, 120, 480, 900, 1500, 3000),
        seconds: float = 2.0,
        others: float = 0.02,
        estimates: str = TSAFRIR,
    ) -> None:
        """``batch``: jobs; ``estimates``: the model of the users' estimates; ``seconds``: of each measurement
        on real processes; ``others``: the share of a processor that others may use meanwhile."""
        self._batch = batch
        self._loads, self._few_loads, self._costs = loads, few_loads, costs
        self._seconds, self._others = seconds, others
        self._estimates = estimates
        estimate_model(Catalogue(), estimates)  # an unknown one is refused before the work

    def run(self, context: Context) -> list[Claim]:
        plain = self._rows(
            context,
            "figures-6-to-8",
            [Point(m, x, p, x) for m in MODELS for x in self._loads for p in POLICIES],
        )
        self._plots(context, plain, "figure-6", "figure-7")
        claims = self._improvements(plain) + self._reasy(plain) + self._migrations(plain)
        for where, said, name, options, greedy in (
            (
                "Figures 9, 10",
                "without knowledge of the CPU use",
                "figures-9-10",
                {"cpu_known": False},
                False,
            ),
            ("Figures 11, 12", "where all processes use all of their processor", "figures-11-12", {}, True),
        ):
            claims += self._still_better(context, where, said, name, options, greedy)
        claims += self._costs_of_moves(context)
        return [*claims, *self._on_real_processes(context)]

    # ------------------------------------------------------------------ running

    def _rows(self, context: Context, name: str, points: Sequence[Point]) -> list[Row]:
        """The rows of these points, one a batch."""
        points = [replace(point, estimates=self._estimates) for point in points]
        batches = len(context.seeds)
        tasks = [
            Task(
                tuple((MODELS[point.model], point.x, point.policy, n + 1) for n in range(batches)),
                run_point,
                (point, self._batch, batches),
            )
            for point in points
        ]
        # A point's run is longer with more batches, so they are part of what its rows depend on.
        return context.collect(name, tasks, (points, self._batch, batches))

    def _plots(self, context: Context, rows: Sequence[Row], *names: str, x_label: str = "load") -> None:
        for scenario, name in zip(MODELS.values(), names, strict=True):
            line_plot(
                [row for row in rows if row.scenario == scenario],
                ("mean response", "mean bounded slowdown", "migrations"),
                context.out / f"{name}.png",
                x_label=x_label,
                title=scenario,
            )

    # ------------------------------------------------------------------ claims

    def _improvements(self, rows: Sequence[Row]) -> list[Claim]:
        """Figures 6 and 7: MEASY is the best, and by how much it is better than EASY."""
        claims = []
        for metric, (most, mean) in PUBLISHED.items():
            for others, said in (
                (("easy",), "MEASY is better than EASY"),
                (("keasy", "reasy"), "MEASY is better than KEASY and REASY"),
            ):
                found = gains(rows, ("measy",), others, metric)
                claims.append(
                    Claim("Figures 6, 7", f"{said} by {metric}", told(found), verdict([*found.values()]))
                )
            found = gains(rows, ("measy",), ("easy",), metric)
            best = max(found, key=lambda key: found[key].mean)
            batches = sorted({row.seed for row in rows})
            mean_of_all = interval([_mean_gain(rows, number, metric) for number in batches])
            claims.append(
                Claim("Figures 6, 7", f"up to {most} % better than EASY by {metric}",
                      f"{percent(found[best])} ({where(best)})", verdict([*found.values()], Of.SOME),
                      size_verdict(most, found[best]))
            )  # fmt: skip
            claims.append(
                Claim("Figures 6, 7", f"on average {mean} % better than EASY by {metric}",
                      f"{percent(mean_of_all)} over all points", verdict([mean_of_all]),
                      size_verdict(mean, mean_of_all))
            )  # fmt: skip
        return claims

    def _reasy(self, rows: Sequence[Row]) -> list[Claim]:
        claims = []
        for metric in PUBLISHED:
            found = gains(rows, ("keasy", "measy"), ("reasy",), metric)
            claims.append(
                Claim("Figures 6, 7", f"REASY is the worst of the three by {metric}", told(found),
                      verdict([*found.values()]))
            )  # fmt: skip
            jann = [row for row in rows if row.scenario == MODELS["jann97"]]
            found = gains(jann, ("easy",), ("reasy",), metric)
            claims.append(
                Claim("Figure 7", f"REASY is worse than EASY on JWload by {metric}", told(found),
                      verdict([*found.values()]))
            )  # fmt: skip
        return claims

    def _migrations(self, rows: Sequence[Row]) -> list[Claim]:
        claims = []
        for load, more, fewer, said in (
            (max(self._loads), "jann97", "feitelson96", "more migrations a job on JWload at high load"),
            (min(self._loads), "feitelson96", "jann97", "fewer migrations a job on JWload at low load"),
        ):
            ours, theirs = (
                select([r for r in rows if r.scenario == MODELS[m]], "migrations", variant="measy", x=load)
                for m in (more, fewer)
            )
            change = interval([a - b for a, b in zip(ours, theirs, strict=True)])
            told_of = f"{np.mean(ours):.3f} on {MODELS[more]}, {np.mean(theirs):.3f} on {MODELS[fewer]}"
            measured = f"load {load:g}: {told_of}"
            claims.append(Claim("Figure 8", said, measured, verdict([change])))
        return claims

    def _still_better(
        self, context: Context, where_: str, said: str, name: str, options: Mapping[str, Any], greedy: bool
    ) -> list[Claim]:
        points = [
            Point(model, load, policy, load, options, greedy)
            for model in MODELS for load in self._few_loads for policy in ("easy", "keasy", "measy")
        ]  # fmt: skip
        rows = self._rows(context, name, points)
        self._plots(context, rows, f"{name}-feitelson96", f"{name}-jann97")
        claims = []
        for metric in PUBLISHED:
            for ours, theirs, claimed in (
                (("keasy", "measy"), ("easy",), "KEASY and MEASY are better than EASY"),
                (("measy",), ("keasy",), "MEASY is better than KEASY"),
            ):
                found = gains(rows, ours, theirs, metric)
                claims.append(
                    Claim(where_, f"{claimed} {said} by {metric}", told(found), verdict([*found.values()]))
                )
        return claims

    def _costs_of_moves(self, context: Context) -> list[Claim]:
        """Figures 13 and 14. KEASY moves nothing, so it is run once and stands at each cost."""
        points = [
            Point(model, COST_LOAD, "measy", cost, {"migration_cost": cost})
            for model in MODELS for cost in self._costs
        ]  # fmt: skip
        points += [Point(model, COST_LOAD, "keasy", 0.0) for model in MODELS]
        rows = self._rows(context, "figures-13-14", points)
        claims = []
        for model, (below, above) in COSTS_OF.items():
            mine = [row for row in rows if row.scenario == MODELS[model]]
            line_plot(
                mine, ("mean response", "mean bounded slowdown"), context.out / f"figure-13-14-{model}.png",
                x_label="migration cost, s", title=f"{MODELS[model]}, load {COST_LOAD:g}",
                reference=("keasy",),
            )  # fmt: skip
            figure = "Figure 13" if model == "feitelson96" else "Figure 14"
            for metric in PUBLISHED:
                found = {
                    (MODELS[model], cost, "measy", "keasy"): better(
                        select(mine, metric, variant="measy", x=cost), select(mine, metric, variant="keasy")
                    )
                    for cost in self._costs
                }
                cheap = {key: gain for key, gain in found.items() if key[1] < below}
                dear = {key: gain for key, gain in found.items() if key[1] >= above}
                claims.append(
                    Claim(figure, f"MEASY is better than KEASY by {metric} below a cost of {below:g} s",
                          told(cheap), verdict([*cheap.values()]))
                )  # fmt: skip
                like = [abs(gain.mean) <= COMPARABLE for gain in dear.values()]
                claims.append(
                    Claim(figure, f"comparable by {metric} from {above:g} s on (within {COMPARABLE:g} %)",
                          told(dear), held(like))
                )  # fmt: skip
        return claims

    def _on_real_processes(self, context: Context) -> list[Claim]:
        said = (
            "the foreground loses 0.5 to 4 %",
            "a job of one process behind uses 80 to 92 % of the idle cycles, one of several 19.8 to 76.6 %",
            "behind a process that uses 96 % no process gets anything done",
        )
        task = Task(tuple((REAL, use, TIERS, 1) for use in USES), run_measured, (self._seconds, self._others))
        rows = context.collect("real-processes", [task], (USES, self._seconds, self._others))
        measured = [TwoTiers(**row.values) for row in rows]
        if any(np.isnan(one.use) for one in measured):
            why = (
                "not measured when the rows were made: it needs SCHED_IDLE, and processors of which others "
                f"use at most {100 * self._others:g} %"
            )
            return [Claim("Section 2.1", claimed, why, "not run") for claimed in said]
        usual, full = measured[:-1], measured[-1]

        def shares(name: str, of: Sequence[TwoTiers]) -> str:
            return ", ".join(f"{100 * getattr(one, name):.1f} % (use {one.use:.2f})" for one in of)

        small = [one.loss <= 0.04 for one in usual]
        single = [0.80 <= one.single <= 1.0 for one in usual]
        several = [one.several < one.single for one in usual]
        return [
            Claim("Section 2.1", said[0], shares("loss", usual), held(small)),
            Claim("Section 2.1", said[1],
                  f"one process: {shares('single', usual)}; two: {shares('several', usual)}",
                  held([*single, *several])),
            Claim("Section 2.1", said[2], f"of full speed: {100 * full.single * (1 - full.use):.1f} %",
                  "yes" if full.single * (1 - full.use) < 0.05 else "no"),
        ]  # fmt: skip


def run_measured(seconds: float, others: float) -> list[Row]:
    """Section 2.1 on this machine, a row a CPU use of the process in front; NaN: it cannot be measured."""
    unknown = float("nan")
    try:
        found = measure(USES, seconds, others)
    except NotMeasured:
        found = [TwoTiers(unknown, unknown, unknown, unknown)] * len(USES)
    return [Row(REAL, use, TIERS, 1, asdict(one)) for use, one in zip(USES, found, strict=True)]


#: Model, value on the axis, ours, theirs.
Key = tuple[str, float, str, str]


def better(ours: Sequence[float], theirs: Sequence[float]) -> Interval:
    """By how many percent ours are lower, batch by batch."""
    change = paired(ours, theirs)
    return Interval(-change.mean, change.half, change.count)


def gains(
    rows: Sequence[Row], ours: Sequence[str], theirs: Sequence[str], metric: str
) -> dict[Key, Interval]:
    """By how many percent each of ``ours`` is lower than each of ``theirs`` at each point."""
    found = {}
    for scenario in dict.fromkeys(row.scenario for row in rows):
        mine = [row for row in rows if row.scenario == scenario]
        for x in sorted({row.x for row in mine}):
            for one in ours:
                for other in theirs:
                    found[scenario, x, one, other] = better(
                        select(mine, metric, variant=one, x=x), select(mine, metric, variant=other, x=x)
                    )
    return found


def _mean_gain(rows: Sequence[Row], batch: int, metric: str) -> float:
    """By how many percent MEASY is lower than EASY in one batch, on average over all points."""
    mine = [row for row in rows if row.seed == batch]
    return float(np.mean([gain.mean for gain in gains(mine, ("measy",), ("easy",), metric).values()]))


def where(key: Key) -> str:
    scenario, x, ours, theirs = key
    return f"{ours.upper()} against {theirs.upper()}, {scenario} at {x:g}"


def percent(gain: Interval) -> str:
    spread = f" ± {gain.half:.1f}" if gain.count > 1 else ""
    return f"{round(gain.mean, 1) + 0.0:+.1f}{spread} %"


def told(found: Mapping[Key, Interval]) -> str:
    """The extremes, and how many points are significantly better or worse."""
    order = sorted(found, key=lambda key: found[key].mean)
    ahead = sum(gain.low > 0 for gain in found.values())
    behind = sum(gain.high < 0 for gain in found.values())
    extremes = " to ".join(f"{percent(found[key])} ({where(key)})" for key in (order[0], order[-1]))
    return f"{extremes}; significantly better at {ahead}, worse at {behind} of {len(found)} points"
