"""Figures 1 and 5 to 11 and Tables IV to VII of the paper on Delayed-LOS and Hybrid-LOS.

R. Kumar, Z. Shae, H. Jamjoom: Scheduling Batch and Heterogeneous Jobs with Runtime Elasticity in a
Parallel Processing Environment. 2012, section 5.

The setting is the paper's (320 processors in units of 32, 500 jobs, its generator), but every point
is a mean over several seeds, all policies meet the same workloads, and improvements are taken seed
by seed. The published numbers are maxima over the load points of single runs; ours are given as the
largest mean improvement over the same load points, with its 95 % confidence interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headway.experiment.campaign import Campaign, Row, Scenario, Variant, select
from headway.experiment.judging import Of, held, size_verdict, verdict
from headway.experiment.plots import line_plot
from headway.experiment.published import Published
from headway.experiment.reproduction import Claim, Context
from headway.experiment.statistics import Interval, interval, paired
from headway.plugins import PluginConfig
from headway.workload import offered_load, read_swf

PROCESSORS, UNIT, JOBS = 320, 32, 500
#: Section 5 says that so many jobs make no difference.
MANY_JOBS = 10_000
LOADS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
SKIPS = tuple(range(1, 21))
METRICS = ("utilisation", "mean wait", "slowdown of means")
#: Arrival factors of Figure 1: the paper varies the load by stretching the times between arrivals.
ARRIVALS = (1.3, 1.15, 1.0, 0.9, 0.8)
TRACE_JOBS = 20_000
REAL_LOG = "LOS has a lower mean wait than EASY on the SDSC log when the load varies by the arrivals"
LOGS = ("SDSC-SP2*.swf.gz", "CTC-SP2*.swf.gz", "SDSC-BLUE*.swf.gz")


def packing(**options: Any) -> dict[str, Any]:
    return {"granularity": UNIT, **options}


def variants(*, dedicated: bool = False, elastic: bool = False) -> tuple[Variant, ...]:
    """EASY, LOS and Delayed-LOS or Hybrid-LOS, with the dedicated queue and the commands as asked."""
    suffix = ("-" if dedicated or elastic else "") + ("D" if dedicated else "") + ("E" if elastic else "")
    extra = [PluginConfig("dedicated", {"freeze": "first"})] if dedicated else []
    commands = [PluginConfig("elastic")] if elastic else []
    ours = (
        Variant("Hybrid-LOS" + ("-E" if elastic else ""), (PluginConfig("hybrid-los", packing()), *commands))
        if dedicated
        else Variant("Delayed-LOS" + suffix, (PluginConfig("delayed-los", packing()), *commands))
    )
    return (
        ours,
        Variant("LOS" + suffix, (PluginConfig("los", packing()), *extra, *commands)),
        Variant("EASY" + suffix, (PluginConfig("easy"), *extra, *commands)),
    )


def scenario(
    load: float,
    small: float,
    *,
    dedicated: float = 0.0,
    elastic: bool = False,
    jobs: int | None = None,
    x: float | None = None,
) -> Scenario:
    """The paper's workload at one load; as many jobs as the paper's where ``jobs`` is not given."""
    jobs = JOBS if jobs is None else jobs
    options = {
        "jobs": jobs,
        "processors": PROCESSORS,
        "load": load,
        "p_small": small,
        "p_dedicated": dedicated,
        "p_extend": 0.2 if elastic else 0.0,
        "p_reduce": 0.1 if elastic else 0.0,
    }
    label = f"P_S {small:g}, P_D {dedicated:g}{', elastic' if elastic else ''}, {jobs} jobs"
    return Scenario(label, load if x is None else x, PROCESSORS, model="lublin-cwf", options=options)


def improvement(rows: Sequence[Row], ours: str, theirs: str, metric: str, x: float) -> Interval:
    """How much better ``ours`` is in percent (higher utilisation, lower wait), seed by seed."""
    change = paired(select(rows, metric, variant=ours, x=x), select(rows, metric, variant=theirs, x=x))
    sign = 1.0 if metric == "utilisation" else -1.0
    return Interval(sign * change.mean, change.half, change.count)


class LosReproduction:
    """The experiments of Kumar, Shae, Jamjoom 2012."""

    title = "Delayed-LOS, Hybrid-LOS and elastic commands (Kumar, Shae, Jamjoom 2012)"
    published = Published(
        system="open", workloads=2, jobs=500, intervals=False, load=1.0, load_by="arrivals",
        estimates="exact", backfills=True, sanity=("utilisation",), means_alone=True,
    )  # fmt: skip

    def run(self, context: Context) -> list[Claim]:
        claims = self._real_logs(context)
        claims += self._skip_counts(context)
        claims += self._sweep(
            context, "Figure 7, Table IV", "figure-7", 0.2,
            {"LOS": (4.1, 31.88, 30.3), "EASY": (1.52, 21.65, 20.41)}, worse=("LOS", "EASY"),
        )  # fmt: skip
        claims += self._close_to_easy(context)
        claims += self._sweep(
            context, "Figure 9, Table V", "figure-9", 0.2,
            {"LOS-D": (4.55, 25.31, 24.29), "EASY-D": (2.33, 18.24, 17.43)}, dedicated=0.5,
        )  # fmt: skip
        claims += self._sweep(
            context, "Figure 10", "figure-10", 0.5, {"LOS-D": None, "EASY-D": None}, dedicated=0.9
        )
        claims += self._sweep(
            context, "Figure 11, Table VI", "figure-11-batch", 0.5,
            {"LOS-E": (4.93, 18.94, 18.39), "EASY-E": (1.78, 12.19, 11.79)}, elastic=True,
        )  # fmt: skip
        claims += self._sweep(
            context, "Figure 11, Table VII", "figure-11-heterogeneous", 0.5,
            {"LOS-DE": (1.88, 20.76, 19.81), "EASY-DE": (3.02, 10.18, 14.6)}, dedicated=0.5, elastic=True,
        )  # fmt: skip
        claims += self._many_jobs(context)
        return claims

    def _real_logs(self, context: Context) -> list[Claim]:
        """Figure 1. The paper does not say which of SDSC's logs it took, so all at hand and CTC's are."""
        found = (
            [path for name in LOGS for path in sorted(context.traces.glob(name))] if context.traces else []
        )
        if not found:
            return [Claim("Figure 1", REAL_LOG, "no SDSC log at hand (--traces DIR)", "not run")]
        return [self._real_log(context, path) for path in found]

    def _real_log(self, context: Context, path: Path) -> Claim:
        trace = read_swf(path)
        size = trace.max_processors or 0
        log = path.name.split(".")[0]
        label = f"{log}, first {TRACE_JOBS} jobs"
        scenarios = tuple(
            Scenario(label, factor, size, trace=str(path), arrival_factor=factor, limit=TRACE_JOBS)
            for factor in ARRIVALS
        )
        both = (Variant("LOS", (PluginConfig("los"),)), Variant("EASY", (PluginConfig("easy"),)))
        rows = context.run(f"figure-1-{log}", Campaign(both, scenarios, (1,)))
        line_plot(
            rows, ("mean wait", "utilisation"), context.out / f"figure-1-{log}.png",
            x_label="factor on the times between arrivals", title=label,
        )  # fmt: skip
        gains = [improvement(rows, "LOS", "EASY", "mean wait", factor).mean for factor in ARRIVALS]
        load = offered_load(trace, size)
        measured = f"{label} (offered load of the log {load:.2f}): wait lower by " + ", ".join(
            f"{gain:.1f} % (x {factor:g})" for gain, factor in zip(gains, ARRIVALS, strict=True)
        )
        holds = held([gain > 0 for gain in gains])
        return Claim(f"Figure 1, {log}", REAL_LOG, measured, holds)

    def _skip_counts(self, context: Context) -> list[Claim]:
        claims = []
        for where, small, paper in (
            (
                "Figure 5",
                0.5,
                "Delayed-LOS beats LOS and EASY for every Cs from 1 to 20; best near 7 or 8, then flat",
            ),
            ("Figure 6", 0.8, "the same; insensitive beyond Cs = 3"),
        ):
            both = variants()[1:]
            ours = tuple(
                Variant(f"Cs={skips}", (PluginConfig("delayed-los", packing(max_skips=skips)),))
                for skips in SKIPS
            )
            name = where.lower().replace(" ", "-")
            rows = context.run(name, Campaign((*ours, *both), (scenario(0.9, small),), context.seeds))
            drawn = [
                Row(r.scenario, float(r.variant[3:]), "Delayed-LOS", r.seed, r.values)
                if r.variant.startswith("Cs=")
                else r
                for r in rows
            ]
            line_plot(
                drawn, METRICS, context.out / f"{name}.png", x_label="maximum skip count Cs",
                title=f"load 0.9, P_S {small:g}", reference=("LOS", "EASY"),
            )  # fmt: skip
            for other in ("LOS", "EASY"):
                gains = [improvement(rows, v.label, other, "mean wait", 0.9) for v in ours]
                means = {skips: gain.mean for skips, gain in zip(SKIPS, gains, strict=True)}
                best = max(means, key=lambda s: means[s])
                measured = (
                    f"wait against {other}: best {_signed(gains[best - 1])} at Cs = {best}; "
                    f"Cs = 1: {_signed(gains[0])}, 7: {_signed(gains[6])}, 20: {_signed(gains[19])}; "
                    f"significantly better for {sum(g.low > 0 for g in gains)} of 20 values, "
                    f"worse for {sum(g.high < 0 for g in gains)}"
                )
                claims.append(Claim(where, paper, measured, verdict(gains)))
        return claims

    def _sweep(
        self,
        context: Context,
        where: str,
        name: str,
        small: float,
        published: dict[str, tuple[float, float, float] | None],
        *,
        dedicated: float = 0.0,
        elastic: bool = False,
        worse: tuple[str, str] | None = None,
    ) -> list[Claim]:
        chosen = variants(dedicated=dedicated > 0, elastic=elastic)
        scenarios = tuple(scenario(load, small, dedicated=dedicated, elastic=elastic) for load in LOADS)
        rows = context.run(name, Campaign(chosen, scenarios, context.seeds))
        line_plot(rows, METRICS, context.out / f"{name}.png", x_label="load", title=scenarios[0].label)
        claims = []
        for other, numbers in published.items():
            for at, metric in enumerate(METRICS):
                gains = [improvement(rows, chosen[0].label, other, metric, load) for load in LOADS]
                best = max(range(len(LOADS)), key=lambda i: gains[i].mean)
                paper = (
                    f"{metric} up to {numbers[at]:g} % better than {other}"
                    if numbers
                    else f"{metric} better than {other}"
                )
                measured = (
                    f"at most {_signed(gains[best])} (load {LOADS[best]:g}), "
                    f"at load 0.9 {_signed(gains[4])}; "
                    f"significantly better at {sum(g.low > 0 for g in gains)} of {len(LOADS)} loads, "
                    f"worse at {sum(g.high < 0 for g in gains)}"
                )
                size = size_verdict(numbers[at], gains[best]) if numbers else ""
                # "Up to" is a claim on some loads.
                holds = verdict(gains, Of.SOME if numbers else Of.ALL)
                claims.append(Claim(where, f"{chosen[0].label}: {paper}", measured, holds, size))
        if worse:
            gains = [improvement(rows, worse[1], worse[0], "mean wait", load) for load in LOADS]
            measured = "wait of {1} against {0}: ".format(*worse) + ", ".join(_signed(g) for g in gains)
            claims.append(Claim(where, f"{worse[0]} is worse than {worse[1]}", measured, verdict(gains)))
        return claims

    def _close_to_easy(self, context: Context) -> list[Claim]:
        """Figure 8."""
        claims = []
        for small in (0.5, 0.8):
            chosen = variants()
            scenarios = tuple(scenario(load, small) for load in LOADS)
            name = f"figure-8-{small:g}"
            rows = context.run(name, Campaign(chosen, scenarios, context.seeds))
            line_plot(rows, METRICS, context.out / f"{name}.png", x_label="load", title=scenarios[0].label)
            for ours in ("Delayed-LOS", "EASY"):
                gains = [improvement(rows, ours, "LOS", "mean wait", load) for load in LOADS]
                measured = ", ".join(
                    f"{_signed(g)} (load {load:g})" for g, load in zip(gains, LOADS, strict=True)
                )
                claims.append(
                    Claim(
                        f"Figure 8, P_S {small:g}",
                        f"{ours} has a lower mean wait than LOS",
                        measured,
                        verdict(gains),
                    )
                )
            near = [improvement(rows, "Delayed-LOS", "EASY", "mean wait", load) for load in LOADS]
            same = [g.low <= 0 <= g.high for g in near]
            claims.append(
                Claim(
                    f"Figure 8, P_S {small:g}", "Delayed-LOS is close to EASY",
                    "wait lower by " + ", ".join(_signed(g) for g in near),
                    held(same),
                )
            )  # fmt: skip
        return claims

    def _many_jobs(self, context: Context) -> list[Claim]:
        """The usual number of jobs against many."""
        chosen = variants()
        sizes = (JOBS, MANY_JOBS)
        scenarios = tuple(scenario(0.9, 0.5, jobs=jobs, x=float(jobs)) for jobs in sizes)
        rows = context.run("jobs", Campaign(chosen, scenarios, context.seeds))
        parts = []
        differs = False
        for variant in chosen:
            few, many = (
                interval(select(rows, "mean wait", variant=variant.label, x=float(n))) for n in sizes
            )
            differs = differs or few.high < many.low or many.high < few.low
            parts.append(f"{variant.label} mean wait {few} s and {many} s")
        measured = "500 and 10,000 jobs at load 0.9, P_S 0.5: " + "; ".join(parts)
        return [
            Claim(
                "section 5",
                "10,000 jobs show no significant difference from 500",
                measured,
                "no" if differs else "yes",
            )
        ]


def _signed(change: Interval) -> str:
    return f"{change.mean:+.1f} ± {change.half:.1f} %"
