"""Figures 5 to 16 and both tables of the paper on unfairness metrics.

G. Sabin, P. Sadayappan: Unfairness Metrics for Space-Sharing Parallel Job Schedulers. JSSPP 2005, sections 4
and 5.

The two traces that the paper plots, at its medium and high load (0.80 and 0.95; for Table 2 at all five),
under three depths of reservations and three orders. Conservative backfilling is there twice: with guarantees
that are kept, by which the claims are judged, and booked anew each time. The schedules are those of the
drains (:mod:`headway_plugins.fairness.drains`), which the tests hold to the framework's runs start by start.

The parts of the traces: CTC-SP2-1996-3.1-cln, records 1001 to 6000, on 430 processors;
SDSC-BLUE-2000-4.1-cln, numbers 7993 to 12992 without jobs that never ran, on 1,152. They have the jobs
of Table 1, but for three of one processor that the paper has more in each. Runtimes and estimates are
multiplied by the target over the offered load (runtimes cut at the estimates), rounded to seconds, at
least 1. A trace is one sample: there are no intervals, and a claim is "in part" true where it holds at
some points and not at others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headway.experiment.campaign import Row, Task
from headway.experiment.judging import Of, held
from headway.experiment.published import Published
from headway.experiment.reproduction import Claim, Context
from headway.model import ClusterDescription, JobDescription, Request
from headway.results import JobResult, RunResult
from headway.workload import Column, Trace, read_swf, trace_jobs
from headway_plugins.fairness import drains
from headway_plugins.fairness.equality import resource_equality
from headway_plugins.fairness.figures import WIDTH_NAMES, missed, width_classes

Floats = NDArray[np.float64]

LOADS = (0.80, 0.95)
#: Table 2 ranks the runs at all of the paper's loads.
ALL_LOADS = (0.70, 0.80, 0.90, 0.95, 0.98)
#: The paper's nine schedulers.
NINE = ("none", "EASY", "keep")
#: Table 2, least and greatest rank correlation of a subset's means with the means of all jobs.
TABLE_2 = {
    ("CTC", "strict"): (0.93, 0.98), ("CTC", "relaxed"): (0.76, 0.97), ("CTC", "equality"): (0.88, 0.98),
    ("Blue", "strict"): (0.85, 0.99), ("Blue", "relaxed"): (0.74, 0.98), ("Blue", "equality"): (0.76, 0.98),
}  # fmt: skip
#: Subsets of the jobs, by their places in order of arrival; and from which correlation on they rank alike.
SUBSETS, ALIKE = 10, 0.7
#: "Very close" and "alike" are no numbers in the paper. Ours: means differ by at most these factors.
CLOSE, SIMILAR = 1.05, 1.2
DEPTHS = {
    "none": drains.GREEDY,
    "EASY": drains.EASY,
    "keep": drains.KEPT,
    "rebuilt": drains.REBUILT,
}
#: Depths that are run with exact estimates too, and at which load.
EXACT, AT = ("none", "EASY", "rebuilt"), 0.80
ORDERS = {"FCFS": drains.SUBMISSION, "SJF": drains.SHORTEST, "LXF": drains.XFACTOR}
#: Table 1, the jobs of each class of width.
TABLE_1 = {
    "CTC": (2209, 435, 722, 487, 609, 309, 157, 45, 30),
    "Blue": (3, 0, 0, 2489, 653, 569, 616, 396, 277),
}
#: What the metrics are called in the rows; the last of each also for jobs of more than 128 processors.
MEASURES = ("strict", "relaxed", "equality")


@dataclass(frozen=True)
class Part:
    """A part of a trace: seconds and processors, in order of submission."""

    name: str
    processors: int
    submit: Floats
    size: NDArray[np.int64]
    runtime: Floats
    estimate: Floats

    @property
    def load(self) -> float:
        """Offered load: work over the machine's capacity from the first to the last submission."""
        span = self.submit[-1] - self.submit[0]
        return float(self.size @ self.runtime) / (self.processors * float(span))

    def at(self, load: float, exact: bool = False) -> Part:
        """The same jobs, longer or shorter, so that they offer this load; ``exact``: with exact estimates."""
        factor = load / self.load
        estimate = np.maximum(np.rint(self.estimate * factor), 1.0)
        runtime = np.minimum(np.maximum(np.rint(self.runtime * factor), 1.0), estimate)
        return Part(
            self.name, self.processors, self.submit, self.size, runtime, runtime if exact else estimate
        )


def part_of(name: str, trace: Trace) -> Part:
    """The paper's part of the CTC or the SDSC Blue trace."""
    if name == "CTC":
        wanted, processors = np.arange(1000, 6000), 430
    else:
        numbers = trace.records[:, Column.NUMBER]
        wanted, processors = np.flatnonzero((numbers >= 7993) & (numbers <= 12992)), 1152
    chosen = set(wanted.tolist())
    jobs, _ = trace_jobs(trace, processors)
    jobs = [job for job in jobs if job.row in chosen]
    estimate = np.array([job.job.request.walltime for job in jobs], np.float64)
    return Part(
        name,
        processors,
        np.array([job.job.submit_time for job in jobs], np.float64),
        np.array([job.job.request.processors for job in jobs], np.int64),
        np.minimum(np.array([job.runtime for job in jobs], np.float64), estimate),
        estimate,
    )


def unfairness(part: Part, depth: str, order: str) -> dict[str, float]:
    """Of each of :data:`MEASURES` the mean over all jobs, over those of each width that there are, and over
    each of :data:`SUBSETS` subsets (every tenth job); seconds and processor-seconds."""
    start, strict, relaxed = drains.run_with_drains(
        part.processors,
        part.submit,
        part.size,
        part.runtime,
        part.estimate,
        DEPTHS[depth],
        ORDERS[order],
        True,
    )
    jobs = [
        JobResult(
            JobDescription(str(at), float(submit), Request(int(size), float(estimate))),
            float(begin),
            float(begin + runtime),
            "completed",
            float(runtime),
        )
        for at, (submit, size, runtime, estimate, begin) in enumerate(
            zip(part.submit, part.size, part.runtime, part.estimate, start, strict=True)
        )
    ]
    result = RunResult(depth, ClusterDescription.flat(part.processors), jobs)
    losses = (start - strict, start - relaxed, resource_equality(result).unfairness)
    classes = width_classes(part.size)
    found = {}
    for measure, loss in zip(MEASURES, losses, strict=True):
        found[measure] = missed(loss)["mean"] or 0.0
        for at, width in enumerate(WIDTH_NAMES):
            mean = missed(loss[classes == at])["mean"]
            found[f"{measure} {width}"] = float("nan") if mean is None else mean
        for at in range(SUBSETS):
            found[f"{measure} subset {at}"] = missed(loss[at::SUBSETS])["mean"] or 0.0
    return found


def depths_of(load: float) -> list[str]:
    """The depths of reservations that are run at a load: the paper's three where only Table 2 needs it."""
    return [depth for depth in DEPTHS if load in LOADS or depth in NINE]


def run_load(part: Part, load: float) -> list[Row]:
    """A part of a trace at one load, under all depths and orders."""
    mine = part.at(load)
    return [
        Row(part.name, load, f"{depth} {order}", 0, unfairness(mine, depth, order))
        for depth in depths_of(load) for order in ORDERS
    ]  # fmt: skip


def run_exact(part: Part) -> list[Row]:
    """A part of a trace with exact estimates, in order of submission."""
    mine = part.at(AT, exact=True)
    return [Row(part.name, AT, depth, 0, unfairness(mine, depth, "FCFS")) for depth in EXACT]


#: By trace, load, depth and order.
Found = Mapping[tuple[str, float, str, str], Mapping[str, float]]


class UnfairnessReproduction:
    """The experiments of Sabin and Sadayappan 2005."""

    title = "Unfairness metrics (Sabin and Sadayappan 2005)"
    published = Published(
        system="open", workloads=2, jobs=5_000, intervals=False, load=0.98, load_by="runtimes",
        estimates="users", backfills=True,
    )  # fmt: skip

    def run(self, context: Context) -> list[Claim]:
        paths = {
            name: next(context.traces.glob(pattern), None) if context.traces else None
            for name, pattern in (("CTC", "CTC-SP2-1996-3.1-cln*"), ("Blue", "SDSC-BLUE-2000-4.1-cln*"))
        }
        missing = [name for name, path in paths.items() if path is None]
        if missing:
            return [
                Claim(
                    "all", "-", f"the traces {', '.join(missing)} are not at hand (--traces DIR)", "not run"
                )
            ]
        parts = {name: part_of(name, read_swf(Path(path))) for name, path in paths.items() if path}
        rows = context.collect(
            "unfairness",
            [
                Task(
                    tuple((name, load, f"{depth} {order}", 0)
                          for depth in depths_of(load) for order in ORDERS),
                    run_load, (part, load),
                )
                for name, part in parts.items() for load in ALL_LOADS
            ],
            [ALL_LOADS, LOADS, NINE, sorted(DEPTHS), sorted(ORDERS)],
        )  # fmt: skip
        found: dict[tuple[str, float, str, str], Mapping[str, float]] = {}
        for row in rows:
            depth, order = row.variant.split()
            found[row.scenario, row.x, depth, order] = row.values
        alone = context.collect(
            "exact-estimates",
            [Task(tuple((name, AT, depth, 0) for depth in EXACT), run_exact, (part,))
             for name, part in parts.items()],
            [AT, EXACT],
        )  # fmt: skip
        exact = {(row.scenario, row.variant): row.values["relaxed"] for row in alone}
        plotted = {key: values for key, values in found.items() if key[1] in LOADS}
        return [_sizes(parts), *subset_claims(found), *claims_of(plotted), _estimates(found, exact)]


def claims_of(found: Found) -> list[Claim]:
    """What the paper reads from its figures, beside what was found."""
    return [
        _compared(found, "Figures 5, 6", "strict: no-guarantee is worse than aggressive and conservative",
                  "strict", "none", ("EASY", "keep"), tuple(ORDERS)),
        _beaten(found),
        _ordered(found, "Figures 5, 6", "strict: SJF is generally more unfair than FCFS and LXF", "strict",
                 Of.MOST),
        _no_trend(found),
        _wide(found, "Figures 7, 8", "strict"),
        _compared(found, "Figures 9, 10", "relaxed: no-guarantee is unfair",
                  "relaxed", "none", ("EASY", "keep"), ("FCFS",)),
        _ordered(found, "Figures 9, 10", "relaxed: SJF is unfair", "relaxed"),
        _clearer(found),
        _at_most_close(found),
        _compared(found, "Figures 9, 10", "relaxed: conservative is less unfair than aggressive",
                  "relaxed", "EASY", ("keep",), tuple(ORDERS)),
        _compared(found, "Figures 9, 10", "the same, conservative booked anew each time",
                  "relaxed", "EASY", ("rebuilt",), tuple(ORDERS)),
        _wide(found, "Figures 11, 12", "relaxed"),
        _compared(found, "Figures 13, 14", "resource equality: no-guarantee is very unfair",
                  "equality", "none", ("EASY", "keep"), tuple(ORDERS)),
        *_alike(found),
        _wide(found, "Figures 15, 16", "equality"),
    ]  # fmt: skip


def _points(found: Found) -> list[tuple[str, float]]:
    return list(dict.fromkeys((name, load) for name, load, _, _ in found))


def _told(ratios: Sequence[tuple[str, float]]) -> str:
    true = sum(ratio > 1 for _, ratio in ratios)
    least, most = min(ratios, key=lambda r: r[1]), max(ratios, key=lambda r: r[1])
    return f"{true} of {len(ratios)}; factors {least[1]:.2f} ({least[0]}) to {most[1]:.2f} ({most[0]})"


def _claim(where: str, paper: str, ratios: Sequence[tuple[str, float]], of: Of = Of.ALL) -> Claim:
    """That ratios are above 1."""
    return Claim(where, paper, _told(ratios), held([ratio > 1 for _, ratio in ratios], of))


def _compared(
    found: Found,
    where: str,
    paper: str,
    measure: str,
    worse: str,
    better: Sequence[str],
    orders: Sequence[str],
) -> Claim:
    return _claim(where, paper, [
        (f"{name} {load:.2f} {other} {order}",
         found[name, load, worse, order][measure] / found[name, load, other, order][measure])
        for name, load in _points(found) for order in orders for other in better
    ])  # fmt: skip


def _ordered(found: Found, where: str, paper: str, measure: str, of: Of = Of.ALL) -> Claim:
    return _claim(where, paper, [
        (f"{name} {load:.2f} {depth} {other}",
         found[name, load, depth, "SJF"][measure] / found[name, load, depth, other][measure])
        for name, load in _points(found) for depth in NINE for other in ("FCFS", "LXF")
    ], of)  # fmt: skip


def _beaten(found: Found) -> Claim:
    """U2, in which a run beats both others."""
    ratios = [
        (f"{name} {load:.2f}", min(found[name, load, other, "SJF"]["strict"] for other in ("EASY", "keep"))
         / found[name, load, "none", "SJF"]["strict"])
        for name, load in _points(found)
    ]  # fmt: skip
    paper = "strict: some runs of SJF without guarantees are fairer than SJF aggressive and conservative"
    return _claim("Figures 5, 6", paper, ratios, Of.SOME)


def _no_trend(found: Found) -> Claim:
    """U4, by a two-sided sign test at 5 %."""
    from scipy.stats import binomtest

    ratios = _over_orders(found, "strict", "LXF", "FCFS")
    above = sum(ratio > 1 for _, ratio in ratios)
    trend = binomtest(above, len(ratios)).pvalue <= 0.05
    return Claim("Figures 5, 6", "strict: no trend between LXF and FCFS",
                 f"LXF is more unfair at {_told(ratios)}", held([not trend]))  # fmt: skip


def _at_most_close(found: Found) -> Claim:
    """U8."""
    ratios = _over_orders(found, "relaxed", "FCFS", "LXF")
    close = [ratio <= CLOSE for _, ratio in ratios]
    return Claim("Figures 9, 10", "relaxed: FCFS is less unfair than LXF, or very close to it",
                 f"FCFS is more unfair at {_told(ratios)}; at most {CLOSE:g} times at {sum(close)}",
                 held(close))  # fmt: skip


def _alike(found: Found) -> list[Claim]:
    """U12 and U13, each trace by itself: they hold on one and not on the other."""
    claims = []
    for trace in dict.fromkeys(key[0] for key in found):
        mine = {key: values for key, values in found.items() if key[0] == trace}
        depths = [
            (f"{load:.2f} {order}", mine[name, load, "EASY", order]["equality"]
             / mine[name, load, "keep", order]["equality"])
            for name, load in _points(mine) for order in ORDERS
        ]  # fmt: skip
        orders = [
            (f"{label} over {other}", ratio) for other in ("FCFS", "LXF")
            for label, ratio in _over_orders(mine, "equality", "SJF", other)
        ]  # fmt: skip
        for paper, ratios in (
            ("aggressive and conservative are alike", depths),
            ("the orders do not differ, SJF is not unfair", orders),
        ):
            alike = [1 / SIMILAR <= ratio <= SIMILAR for _, ratio in ratios]
            told = f"within a factor of {SIMILAR:g} at {sum(alike)}; above 1 at {_told(ratios)}"
            claims.append(Claim(f"Figures 13, 14, {trace}", f"resource equality: {paper}", told, held(alike)))
    return claims


def _over_orders(found: Found, measure: str, ours: str, theirs: str) -> list[tuple[str, float]]:
    """A measure under one order over that under another, at each point and depth."""
    return [
        (f"{name} {load:.2f} {depth}",
         found[name, load, depth, ours][measure] / found[name, load, depth, theirs][measure])
        for name, load in _points(found) for depth in NINE
    ]  # fmt: skip


def _wide(found: Found, where: str, measure: str) -> Claim:
    key = f"{measure} {WIDTH_NAMES[-1]}"
    return _claim(where, f"{measure}, FCFS: jobs of more than 128 processors suffer under no-guarantee", [
        (f"{name} {load:.2f} {other}",
         found[name, load, "none", "FCFS"][key] / found[name, load, other, "FCFS"][key])
        for name, load in _points(found) for other in ("EASY", "keep")
    ])  # fmt: skip


def _clearer(found: Found) -> Claim:
    ratios = []
    for name, load in _points(found):
        none, easy = found[name, load, "none", "FCFS"], found[name, load, "EASY", "FCFS"]
        clear, clearer = (none[m] / easy[m] for m in ("strict", "relaxed"))
        ratios.append((f"{name} {load:.2f}", clearer / clear))
    return _claim("Figures 9, 10", "relaxed separates no-guarantee from EASY (FCFS) more than strict",
                  ratios)  # fmt: skip


def _sizes(parts: Mapping[str, Part]) -> Claim:
    counts = {
        name: np.bincount(width_classes(part.size), minlength=len(WIDTH_NAMES))
        for name, part in parts.items()
    }
    told = "; ".join(f"{name} {', '.join(map(str, found))}" for name, found in counts.items())
    same = [bool((counts[name][1:] == TABLE_1[name][1:]).all()) for name in parts]
    paper = "; ".join(f"{name} {', '.join(map(str, TABLE_1[name]))}" for name in parts)
    return Claim("Table 1", f"jobs by width: {paper}", told, held(same))


def subset_claims(found: Found) -> list[Claim]:
    """Table 2: whether a tenth of the jobs ranks the runs as all of them do."""
    from scipy.stats import spearmanr

    claims = []
    for name in dict.fromkeys(key[0] for key in found):
        runs = [values for key, values in found.items() if key[0] == name and key[2] in NINE]
        for measure in MEASURES:
            whole = [values[measure] for values in runs]
            same = [
                float(spearmanr([values[f"{measure} subset {at}"] for values in runs], whole).statistic)
                for at in range(SUBSETS)
            ]
            least, most = TABLE_2[name, measure]
            claims.append(
                Claim(
                    "Table 2", f"{name}, {measure}: subsets rank {len(runs)} runs as the whole does, "
                    f"correlations {least:.2f} to {most:.2f}",
                    ", ".join(f"{value:.2f}" for value in same),
                    held([value > ALIKE for value in same]),
                )
            )  # fmt: skip
    return claims


def _estimates(found: Found, exact: Mapping[tuple[str, str], float]) -> Claim:
    told = "; ".join(
        f"{name} {depth}: {found[name, AT, depth, 'FCFS']['relaxed']:.0f} s, with exact ones {value:.0f} s"
        for (name, depth), value in exact.items()
    )
    checks = [
        value < found[name, AT, depth, "FCFS"]["relaxed"]
        for (name, depth), value in exact.items()
        if depth != "none"
    ]
    paper = "wrong estimates alone make backfilling in order of submission unfair (relaxed, load 0.80)"
    return Claim("section 5", paper, told, held(checks))
