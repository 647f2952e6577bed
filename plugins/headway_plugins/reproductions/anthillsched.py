"""The experiments of the paper on AnthillSched.

L. F. Goes and others: AnthillSched: A Scheduling Strategy for Irregular and Iterative I/O-Intensive Parallel
Jobs. JSSPP 2005, section 5. The paper ran real programs on 8 to 16 machines; its run times are not printed.
Here:

- *queue*: first come, first served, with run times of the mean that each strategy's published figures imply,
  and arrivals as printed and as calibrated (``queue`` workloads): do the paper's waits follow?
- *emulation*: ten workloads of 1,000 jobs with the two kinds of jobs of :mod:`..pipelines.tamandua`, at the
  three loads. Its table of run times was made to meet the published means, so orders of run times are put
  in; waits, responses, slowdowns and idle times are what follows from them.
- *processors*: OBS against OAS on 8, 12 and 16 processors, run times from :mod:`..pipelines.execution`, a
  model of ours.

``--seeds`` is the number of workloads; the paper has 10. Its intervals are of the normal distribution;
verdicts here are by Student's t as everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from headway.emulation import emulate
from headway.errors import UserError
from headway.experiment.campaign import Row, select
from headway.experiment.campaign import Task as Work
from headway.experiment.judging import held, size_verdict, verdict
from headway.experiment.plots import line_plot
from headway.experiment.published import Published
from headway.experiment.reproduction import Claim, Context
from headway.experiment.statistics import Interval, interval, paired
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig
from headway_plugins.pipelines.metrics import fcfs_waits, figures
from headway_plugins.pipelines.policy import measured
from headway_plugins.pipelines.published import (
    ARRIVALS,
    RUN_TIMES,
    STRATEGIES,
    TABLES,
    VARIATION,
    misprints,
    missing_mean,
)
from headway_plugins.pipelines.tamandua import TamanduaModel, TamanduaOptions, arrival_times

ALL = ("AS", "BS", "NOAS", "OAS", "OBS")
METRICS = ("execution", "idle", "wait", "response", "slowdown")
#: Names of the plugin's figures.
_FIGURES = (
    "execution_seconds",
    "idle_seconds",
    "mean_wait_seconds",
    "mean_response_seconds",
    "mean_slowdown",
)
LOADS = ("light", "medium", "heavy")
#: Times between arrivals that were chosen so that a queue gives the waits of a table.
FITTED = ("light", "medium")
#: Metrics whose order among the strategies is put in with the run times.
PUT_IN = ("execution",)
#: Jobs of a workload of the paper.
PRINTED_JOBS = 1000


def run_queue(arrivals: str, count: int, jobs: int) -> list[Row]:
    """Workloads through a queue, run times drawn with the published means: gamma, with the variation that
    Table 1's waits need."""
    rows = []
    for seed in range(1, count + 1):
        rng = np.random.default_rng((seed, *arrivals.encode()))
        arrival = arrival_times(rng, jobs, ARRIVALS[arrivals])
        for name in STRATEGIES:
            shape = 1.0 / VARIATION[name]
            run = rng.gamma(shape, RUN_TIMES[name] / shape, jobs)
            found = figures(arrival, fcfs_waits(arrival, run), run)
            rows.append(Row(arrivals, ARRIVALS[arrivals], name, seed, vars(found).copy()))
    return rows


def run_emulation(
    load: str, seed: int, jobs: int, processors: int, times: str, names: Sequence[str]
) -> list[Row]:
    """One workload under several strategies in the emulated cluster."""
    options = TamanduaOptions.model_validate(
        {"jobs": jobs, "processors": processors, "arrivals": load, "times": times}
    )
    workload = TamanduaModel().generate(np.random.default_rng(seed), options)
    rows = []
    for name in names:
        result = emulate(
            ClusterDescription.flat(processors), workload.jobs,
            [PluginConfig("pipelines", {"strategy": name})], Catalogue(), label=name, seed=seed,
        )  # fmt: skip
        found = measured(result) or {}
        values = {metric: found[key] for metric, key in zip(METRICS, _FIGURES, strict=True)}
        rows.append(Row(scenario(load, times), float(processors), name, seed, values))
    return rows


def scenario(load: str, times: str) -> str:
    return load if times == "classes" else f"{load}, {times}"


class AnthillReproduction:
    """The experiments of Goes and others 2005."""

    title = "AnthillSched: pipelines of filters (Goes and others 2005)"
    published = Published(
        system="open", workloads=1, jobs=10_000, intervals=True, means_alone=True,
        also={"4": "times between submissions are drawn from an exponential distribution"},
    )  # fmt: skip

    def __init__(self, jobs: int = 1000, queue: int = 200, processors: Sequence[int] = (8, 12, 16)) -> None:
        """``jobs`` of a workload; ``queue``: workloads of the queue; ``processors``: of the last experiment,
        the first and the last of which are compared."""
        for what, value, least in (
            ("jobs", jobs, 2),
            ("queue", queue, 2),
            ("processors", len(processors), 2),
        ):
            if value < least:
                raise UserError(f"--set {what}: expected at least {least}, found {value}")
        self._jobs, self._queue, self._sizes = jobs, queue, tuple(processors)

    def run(self, context: Context) -> list[Claim]:
        queue = context.collect(
            "queue",
            [
                Work(
                    tuple((load, ARRIVALS[load], name, seed)
                          for seed in range(1, self._queue + 1) for name in STRATEGIES),
                    run_queue, (load, self._queue, self._jobs),
                )
                for load in ("published", *LOADS)
            ],
            (self._jobs, RUN_TIMES, VARIATION, ARRIVALS),
        )  # fmt: skip
        rows = self._emulated(context, "emulation", LOADS, (8,), "classes", ALL)
        scaled = self._emulated(context, "processors", ("heavy",), self._sizes, "model", ("OBS", "OAS"))
        line_plot(scaled, ["response"], context.out / "processors.png", x_label="processors",
                  title="heavy load, execution model")  # fmt: skip
        return [
            *self._light(rows), *self._medium(rows), *self._heavy(rows),
            *(order([row for row in rows if row.scenario == "heavy"], "E4, heavy, 8 processors", metric,
                    ("OAS", "OBS")) for metric in ("execution", "response", "wait", "slowdown")),
            *self._processors(scaled),
            self._slowdown(rows),
            Claim("E6", "equal weights of bytes and time are best",
                  "needs real programs: what copies cost is ours in emulation", "not run"),
            *self._tables(queue),
        ]  # fmt: skip

    def _emulated(
        self, context: Context, name: str, loads: Sequence[str], sizes: Sequence[int], times: str,
        strategies: Sequence[str],
    ) -> list[Row]:  # fmt: skip
        tasks = [
            Work(
                tuple((scenario(load, times), float(size), strategy, seed) for strategy in strategies),
                run_emulation, (load, seed, self._jobs, size, times, tuple(strategies)),
            )
            for load in loads for size in sizes for seed in context.seeds
        ]  # fmt: skip
        return context.collect(name, tasks, (self._jobs, times, tuple(strategies)))

    def _light(self, rows: Sequence[Row]) -> list[Claim]:
        """E1."""
        mine = [row for row in rows if row.scenario == "light"]
        totals = {
            name: interval(
                [a + b for a, b in zip(each(mine, "execution", name), each(mine, "idle", name), strict=True)]
            )
            for name in STRATEGIES
        }
        near = all(a.low <= b.mean <= a.high for a in totals.values() for b in totals.values())
        return [
            Claim("E1, light", "execution time, which is that of the whole workload, is the same for all",
                  ", ".join(f"{name} {value} s" for name, value in totals.items()), "yes" if near else "no"),
            order(mine, "E1, light", "idle", ("OAS", "BS", "NOAS", "AS"), larger=True),
            best(mine, "E1, light", "wait", "light"),
            best(mine, "E1, light", "response", "light"),
        ]  # fmt: skip

    def _medium(self, rows: Sequence[Row]) -> list[Claim]:
        """E2."""
        mine = [row for row in rows if row.scenario == "medium"]
        return [
            *(order(mine, "E2, medium", metric, ("OAS", "BS", "NOAS", "AS"))
              for metric in ("execution", "wait", "response")),
            best(mine, "E2, medium", "response", "medium"),
            order(mine, "E2, medium", "idle", ("OAS", "NOAS", "AS", "BS"), larger=True),
        ]  # fmt: skip

    def _heavy(self, rows: Sequence[Row]) -> list[Claim]:
        """E3."""
        mine = [row for row in rows if row.scenario == "heavy"]
        idle = max(select(mine, "idle"))
        return [
            *(order(mine, "E3, heavy", metric, ("OAS", "BS", "NOAS"))
              for metric in ("execution", "wait", "response", "slowdown")),
            Claim("E3, heavy", "nothing idles", f"at most {idle:.3g} s", "yes" if idle < 1e-3 else "no"),
        ]  # fmt: skip

    def _processors(self, rows: Sequence[Row]) -> list[Claim]:
        """E4."""
        claims = []
        for metric in ("execution", "response", "wait", "slowdown"):
            gaps = []
            for size in self._sizes:
                at = [row for row in rows if row.x == size]
                gaps.append(less(at, metric, "OAS", "OBS"))
            text = ", ".join(f"{gap} % less on {size}" for gap, size in zip(gaps, self._sizes, strict=True))
            claims.append(
                Claim("E4, our execution model", f"OAS has less {metric} than OBS", text, verdict(gaps))
            )
        first, last = self._sizes[0], self._sizes[-1]
        ends = {size: select(rows, "response", variant="OAS", x=float(size)) for size in (first, last)}
        gain = paired(ends[last], ends[first])
        claims.append(
            Claim("E4, our execution model", f"OAS improves from {first} to {last} processors",
                  f"response {gain} %", verdict([Interval(-gain.mean, gain.half, gain.count)]))
        )  # fmt: skip
        return claims

    def _slowdown(self, rows: Sequence[Row]) -> Claim:
        """E5."""
        found = {load: interval(select(rows, "slowdown", scenario=load, variant="OAS")) for load in LOADS}
        text = ", ".join(f"{load} {value}" for load, value in found.items())
        grows = found["heavy"].low > 10 * found["light"].high
        return Claim("E5", "heavy: slowdown is very large, because short jobs wait long", f"OAS: {text}",
                     "yes" if grows else "no")  # fmt: skip

    def _tables(self, queue: Sequence[Row]) -> list[Claim]:
        """What the tables say about each other, and about the printed arrivals."""
        claims = []
        for load, arrivals, where in (
            ("light", "published", "Table 1, printed arrivals"), ("light", "light", "Table 1, calibrated"),
            ("medium", "medium", "Table 2, calibrated"),
        ):  # fmt: skip
            text, right = [], []
            for name in STRATEGIES:
                printed = TABLES[load]["wait"][name].mean or float("nan")
                found = interval(select(queue, "wait", scenario=arrivals, variant=name))
                text.append(f"{name} {found} ({printed:g})")
                right.append(abs(found.mean / printed - 1) <= 0.05)
            claims.append(
                Claim(where, f"mean waits of Table {1 if load == 'light' else 2}",
                      f"a queue, {ARRIVALS[arrivals]:g} s between arrivals, s (printed): {', '.join(text)}",
                      "fitted" if arrivals in FITTED and all(right) else held(right))
            )  # fmt: skip
        heavy = {
            name: interval(select(queue, "wait", scenario="heavy", variant=name)).mean
            / ((self._jobs - 1) / 2 * RUN_TIMES[name])
            for name in STRATEGIES
        }
        claims.append(
            Claim("heavy", "(figures without numbers)",
                  "mean wait over (n - 1) / 2 run times: "
                  + ", ".join(f"{name} {value:.3f}" for name, value in heavy.items()), "not run")
        )  # fmt: skip
        return [*claims, *_sums()]


def _sums() -> list[Claim]:
    """Whether intervals and sums of the tables follow from their other figures."""
    claims = []
    off = {(one.load, one.metric, one.strategy) for one in misprints()}
    complete = [
        (load, metric, strategy)
        for load, metrics in TABLES.items() for metric, found in metrics.items()
        for strategy, row in found.items() if None not in (row.mean, row.deviation, row.low, row.high)
    ]  # fmt: skip
    wrong = "; ".join(
        f"{one.load} {one.metric} {one.strategy}: {one.printed:g}, computed {one.computed:g}"
        for one in misprints()
    )
    claims.append(
        Claim(
            "Tables 1 and 2",
            "95 % confidence intervals",
            f"all but these follow: {wrong or 'none'}",
            held([one not in off for one in complete]),
        )
    )
    jobs = {
        load: {
            name: (TABLES[load]["execution"][name].mean or missing_mean(load, "execution", name) or 0.0)
            / RUN_TIMES[name]
            for name in STRATEGIES
        }
        for load in ("light", "medium")
    }
    sums = ", ".join(f"{name} {count:.0f}" for name, count in jobs["medium"].items())
    claims.append(
        Claim("Tables 1 and 2", "execution time is the sum of run times",
              f"over response less wait, Table 2, jobs: {sums}; Table 1: "
              + ", ".join(f"{name} {count:.0f}" for name, count in jobs["light"].items()),
              held([all(abs(count / PRINTED_JOBS - 1) <= 0.005 for count in found.values())
                    for found in jobs.values()]))
    )  # fmt: skip
    return claims


def each(rows: Sequence[Row], metric: str, name: str) -> list[float]:
    """A strategy's values, workload by workload."""
    return select(rows, metric, variant=name)


def less(rows: Sequence[Row], metric: str, ours: str, theirs: str) -> Interval:
    """How much less ours has than theirs, percent, workload by workload."""
    change = paired(each(rows, metric, ours), each(rows, metric, theirs))
    return Interval(-change.mean, change.half, change.count)


def order(
    rows: Sequence[Row], where: str, metric: str, names: Sequence[str], *, larger: bool = False
) -> Claim:
    """Whether a metric has this order, the best first: the least, or the largest. Of the emulation alone."""
    pairs = [(b, a) if larger else (a, b) for a, b in pairwise(names)]
    gaps = [less(rows, metric, ours, theirs) for ours, theirs in pairs]
    unit = "" if metric == "slowdown" else " s"
    found = ", ".join(f"{name} {interval(each(rows, metric, name))}{unit}" for name in names)
    sign = " > " if larger else " < "
    holds = verdict(gaps)
    if holds == "yes" and metric in PUT_IN:
        holds = "fitted"
    return Claim(where, f"{metric}: {sign.join(names)}", found, holds)


def best(rows: Sequence[Row], where: str, metric: str, load: str) -> Claim:
    """OAS against each of the others, and how much less than BS beside the table's."""
    gaps = {name: less(rows, metric, "OAS", name) for name in ("AS", "BS", "NOAS")}
    printed = {name: TABLES[load][metric][name].mean or float("nan") for name in ("OAS", "BS")}
    text = ", ".join(f"{gap} % less than {name}" for name, gap in gaps.items())
    return Claim(where, f"{metric}: OAS is lowest", text, verdict(list(gaps.values())),
                 size_verdict(100 * (1 - printed["OAS"] / printed["BS"]), gaps["BS"]))  # fmt: skip
