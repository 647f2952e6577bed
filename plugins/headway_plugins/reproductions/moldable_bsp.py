"""The experiments of the paper on moldable BSP tasks.

P.-F. Dutot, M. A. S. Netto, A. Goldman, F. Kon: Scheduling Moldable BSP Tasks. JSSPP 2005, section 5.

Batches of as many tasks as a quarter of the processors up to four times as many, 40 of each kind, of which
the five best and the five worst are dropped (each algorithm's own); the value of a schedule is its makespan
over the lower bound. ``--seeds`` is not used: ``runs`` says how many batches. The paper draws from the logs
SDSC SP2 (64 and 128 processors) and CTC SP2 (256), and generates Gaussian tasks for all three. Its figures
have no numbers in the text that was at hand, and it prints neither its 25 tasks nor its times, so of these
it is said what came out here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import process_time

import numpy as np

from headway.errors import UserError
from headway.experiment.campaign import Row, select
from headway.experiment.campaign import Task as Work
from headway.experiment.judging import Of, held, verdict
from headway.experiment.plots import line_plot
from headway.experiment.published import Published
from headway.experiment.reproduction import Claim, Context
from headway.experiment.statistics import Interval, paired
from headway.workload import Trace, read_trace
from headway_plugins.moldable.algorithms import ALGORITHMS
from headway_plugins.moldable.batches import gaussian, of_log, tasks_of
from headway_plugins.moldable.tasks import Task, lower_bound

RATIO = "makespan / lower bound"
#: Tasks for each processor.
X = (0.25, 0.5, 1.0, 2.0, 4.0)
#: Machine -> the log that the paper draws from for it.
LOGS = {64: "SDSC-SP2", 128: "SDSC-SP2", 256: "CTC-SP2"}
#: Batches that are dropped at either end.
DROPPED = 5
_SECONDS = "seconds"
#: Of these the time of one large batch is told; and seconds from which on it is several minutes.
LARGE, SEVERAL = ("A1", "A2", "A3", "A4"), 120.0
#: Percent: what counts as very close, and beyond it as far; the paper gives no rule.
NEAR = 5.0


@dataclass(frozen=True)
class Point:
    """Batches of one kind on one machine."""

    kind: str
    processors: int
    x: float
    #: Where the log lies; "" for generated tasks.
    log: str = ""

    @property
    def scenario(self) -> str:
        return f"{self.kind}, {self.processors}"


def batch(point: Point, run: int, trace: Trace | None = None) -> list[Task]:
    """The tasks of one run; the same for all algorithms."""
    count = max(1, round(point.x * point.processors))
    rng = np.random.default_rng((run, point.processors, count, *point.kind.encode()))
    if trace is not None:
        return tasks_of(*of_log(rng, count, point.processors, trace))
    return tasks_of(*gaussian(rng, count, point.processors, point.kind))


def run_point(point: Point, runs: int) -> list[Row]:
    """All algorithms on all batches of a point."""
    trace = read_trace(point.log) if point.log else None
    rows = []
    for run in range(1, runs + 1):
        tasks = batch(point, run, trace)
        bound = lower_bound(tasks, point.processors)
        for name, algorithm in ALGORITHMS.items():
            began = process_time()
            ratio = algorithm(tasks, point.processors, None).makespan / bound
            values = {RATIO: ratio, _SECONDS: process_time() - began}
            rows.append(Row(point.scenario, point.x, name, run, values))
    return rows


def trimmed(values: Sequence[float], dropped: int = DROPPED) -> list[float]:
    """Without the best and the worst ones, as in the paper; of fewer than four times as many a quarter as
    many at either end."""
    ordered = sorted(values)
    least = min(dropped, len(ordered) // 8)
    return ordered[least : len(ordered) - least]


class MoldableReproduction:
    """The experiments of Dutot and others 2005."""

    title = "Scheduling moldable BSP tasks (Dutot and others 2005)"
    published = Published(system="static", workloads=3, intervals=False, speedup="bulk-synchronous")

    def __init__(
        self,
        runs: int = 40,
        processors: Sequence[int] = (64, 128, 256),
        x: Sequence[float] = X,
        large: Sequence[int] = (1024, 512),
    ) -> None:
        """``runs``: batches of each kind; ``x``: tasks for each processor; ``large``: tasks and processors
        of the batch that is timed."""
        if runs < 2:
            raise UserError(f"--set runs: expected at least 2, found {runs}")
        unknown = [size for size in processors if size not in LOGS]
        if unknown:
            raise UserError(f"--set processors: expected some of {list(LOGS)}, found {unknown}")
        self._runs, self._sizes, self._x = runs, tuple(processors), tuple(x)
        self._large = tuple(large)

    def run(self, context: Context) -> list[Claim]:
        generated = [
            Point(kind, size, x) for kind in ("narrow", "wide") for size in self._sizes for x in self._x
        ]
        rows = self._rows(context, "generated", generated)
        logged, missing = self._log_points(context)
        from_logs = self._rows(context, "logs", logged) if logged else []
        for name, some in (("generated", rows), ("logs", from_logs)):
            for scenario in dict.fromkeys(row.scenario for row in some):
                line_plot([row for row in some if row.scenario == scenario], [RATIO],
                          context.out / f"{name}-{scenario.replace(', ', '-')}.png",
                          x_label="tasks for each processor", title=scenario)  # fmt: skip
        everything = rows + from_logs
        return [
            *self._best(rows, from_logs),
            self._bound(everything),
            self._worst_place(rows),
            self._plain(everything),
            *self._alike(rows, from_logs, missing),
            self._fastest(context),
            self._large_one(context),
            self._longer(everything),
        ]

    def _rows(self, context: Context, name: str, points: Sequence[Point]) -> list[Row]:
        tasks = [
            Work(
                tuple((point.scenario, point.x, algorithm, run)
                      for run in range(1, self._runs + 1) for algorithm in ALGORITHMS),
                run_point, (point, self._runs),
            )
            for point in points
        ]  # fmt: skip
        # A log's own name counts, not where it lies.
        return context.collect(name, tasks, [(p.scenario, p.x, bool(p.log)) for p in points])

    def _log_points(self, context: Context) -> tuple[list[Point], str]:
        points: list[Point] = []
        missing = set()
        for size in self._sizes:
            name = LOGS[size]
            path = next(iter(sorted(context.traces.glob(f"{name}*"))), None) if context.traces else None
            if path is None:
                missing.add(name)
            else:
                points += [Point(name, size, x, str(path)) for x in self._x]
        return points, f"needs the traces {', '.join(sorted(missing))} (--traces DIR)" if missing else ""

    def _best(self, rows: Sequence[Row], logged: Sequence[Row]) -> list[Claim]:
        """E1."""
        claims = []
        for kind, some in (("narrow", rows), ("wide", rows), ("", logged)):
            mine = [row for row in some if row.scenario.startswith(kind)]
            if not mine:
                continue
            over = {
                name: [change(mine, point, name, "A1") for point in points(mine)] for name in ("A2", "A3")
            }
            where = f"E1, {kind or 'logs'}"
            said = "; ".join(
                f"{name} is {min(i.mean for i in found):+.1f} to {max(i.mean for i in found):+.1f} % longer"
                for name, found in over.items()
            )
            gaps = [gap for found in over.values() for gap in found]
            claims.append(Claim(where, "A1 is generally best", said, verdict(gaps, Of.MOST)))
            near = [abs(gap.mean) <= NEAR for gap in gaps]
            claims.append(
                Claim(
                    where, "A2 and A3 are alike and very close to A1",
                    f"within {NEAR:g} % of A1 at {sum(near)} of {len(near)} points",
                    held(near),
                )
            )  # fmt: skip
        return claims

    def _bound(self, rows: Sequence[Row]) -> Claim:
        """E2."""
        worst = max(select(rows, RATIO, variant="A4"))
        means = [np.mean(trimmed(values)) for values in each(rows, "A4")]
        return Claim(
            "E2", "A4 is close to 2 in unfavourable cases, never above",
            f"means {min(means):.3f} to {max(means):.3f} x the lower bound, the worst batch {worst:.3f}",
            "no" if worst > 2 * (1 + 1e-5) else "yes" if worst > 1.8 else "in part",
        )  # fmt: skip

    def _worst_place(self, rows: Sequence[Row]) -> Claim:
        """E3."""
        places, near = [], []
        for scenario in dict.fromkeys(row.scenario for row in rows):
            found = {x: float(np.mean(trimmed(select(rows, RATIO, scenario=scenario, variant="A4", x=x))))
                     for x in sorted({row.x for row in rows if row.scenario == scenario})}  # fmt: skip
            worst = max(found, key=lambda x: found[x])
            places.append(f"{scenario}: {found[worst]:.3f} at {worst:g}")
            near.append(0.5 <= worst <= 1.0)
        holds = held(near)
        return Claim("E3", "generated tasks: A4 is worst where there is about a task for each processor",
                     "; ".join(places), holds)  # fmt: skip

    def _plain(self, rows: Sequence[Row]) -> Claim:
        """E4."""
        gaps = [change(rows, point, "LTF", "A1") for point in points(rows)]
        far = sum(gap.mean > NEAR for gap in gaps)
        longer = (
            f"{min(gap.mean for gap in gaps):.1f} to {max(gap.mean for gap in gaps):.1f} % longer than A1"
        )
        return Claim(
            "E4",
            "plain LTF is usually far from optimal",
            f"{longer}, more than {NEAR:g} % at {far} of {len(gaps)} points; {mean_range(rows, 'LTF')} x the "
            f"lower bound",
            held([gap.mean > NEAR for gap in gaps], Of.MOST),
        )

    def _alike(self, rows: Sequence[Row], logged: Sequence[Row], missing: str) -> list[Claim]:
        """E5."""
        said = "A1, A2 and A3 are similar on real and on generated tasks"
        if not logged:
            return [Claim("E5", said, missing, "not run")]
        worst = {name: (mean_of(rows, name), mean_of(logged, name)) for name in ("A1", "A2", "A3")}
        text = ", ".join(f"{name} {a:.3f} and {b:.3f}" for name, (a, b) in worst.items())
        near = [abs(a - b) <= 0.05 for a, b in worst.values()]
        holds = held(near)
        return [
            Claim(
                "E5", said, f"mean over all points, generated and logs: {text} (similar: within 0.05)", holds
            )
        ]

    def _fastest(self, context: Context) -> Claim:
        """E7, 64 processors."""
        rows = context.collect(
            "times",
            [Work(tuple(("64", float(count), name, run) for count in (10, 100)
                        for run in range(1, self._runs + 1) for name in ALGORITHMS),
                  run_times, (self._runs,))],
            ("times", self._runs),
        )  # fmt: skip
        found = {name: {x: 1e3 * float(np.median(select(rows, _SECONDS, variant=name, x=x)))
                        for x in (10, 100)}
                 for name in ("A1", "A2", "A3", "A4")}  # fmt: skip
        text = ", ".join(f"{name} {at[10]:.1f} to {at[100]:.1f} ms" for name, at in found.items())
        at = {name: both[100] for name, both in found.items()}
        fastest, slowest = min(at, key=at.__getitem__), max(at, key=at.__getitem__)
        holds = "yes" if (fastest, slowest) == ("A4", "A1") else "in part" if fastest == "A4" else "no"
        return Claim(
            "E7, 64 processors", "10 to 100 tasks: A4 is by far the fastest, A1 the slowest", text, holds
        )

    def _large_one(self, context: Context) -> Claim:
        """E7, the large batch."""
        count, processors = self._large
        key = f"{count} tasks on {processors}"
        rows = context.collect(
            "large", [Work(tuple((key, float(count), name, 1) for name in LARGE), run_large, self._large)],
            self._large,
        )  # fmt: skip
        seconds = {row.variant: row.values[_SECONDS] for row in rows}
        said = ", ".join(f"{name} {value:.2f} s" for name, value in seconds.items())
        return Claim(f"E7, {key}", "several minutes", said, held([max(seconds.values()) >= SEVERAL]))

    def _longer(self, rows: Sequence[Row]) -> Claim:
        """E8."""
        spent, ratios = [], []
        for name in ("A1", "A2", "A3", "A4"):
            spent.append(float(np.mean(select(rows, _SECONDS, variant=name))))
            ratios.append(mean_of(rows, name))
        text = ", ".join(
            f"{name} {seconds * 1e3:.0f} ms {ratio:.3f}"
            for name, seconds, ratio in zip(("A1", "A2", "A3", "A4"), spent, ratios, strict=True)
        )
        by_time = [ratio for _, ratio in sorted(zip(spent, ratios, strict=True), reverse=True)]
        pairs = [(a, b) for i, a in enumerate(by_time) for b in by_time[i + 1 :]]
        right = sum(a <= b for a, b in pairs)
        holds = "yes" if right == len(pairs) else "in part" if right > len(pairs) / 2 else "no"
        return Claim("E8", "the longer the computation, the better the result",
                     f"mean time and ratio: {text}", holds)  # fmt: skip


def run_times(runs: int) -> list[Row]:
    """How long each algorithm takes for few tasks and for many on 64 processors; processor-seconds."""
    rows = []
    for count in (10, 100):
        for run in range(1, runs + 1):
            tasks = tasks_of(*gaussian(np.random.default_rng((run, count)), count, 64))
            for name, algorithm in ALGORITHMS.items():
                rows.append(Row("64", count, name, run, {_SECONDS: _timed(algorithm, tasks, 64)}))
    return rows


def run_large(count: int, processors: int) -> list[Row]:
    """How long the algorithms take for one large batch; processor-seconds."""
    tasks = tasks_of(*gaussian(np.random.default_rng(1), count, processors))
    key = f"{count} tasks on {processors}"
    return [
        Row(key, count, name, 1, {_SECONDS: _timed(ALGORITHMS[name], tasks, processors)}) for name in LARGE
    ]


def _timed(algorithm: Callable[..., object], tasks: Sequence[Task], processors: int) -> float:
    began = process_time()
    algorithm(tasks, processors, None)
    return process_time() - began


def points(rows: Sequence[Row]) -> list[tuple[str, float]]:
    """Scenario and x of each point."""
    return list(dict.fromkeys((row.scenario, row.x) for row in rows))


def change(rows: Sequence[Row], point: tuple[str, float], ours: str, theirs: str) -> Interval:
    """How much longer ours is than theirs at a point, percent, batch by batch."""
    scenario, x = point
    return paired(
        select(rows, RATIO, scenario=scenario, variant=ours, x=x),
        select(rows, RATIO, scenario=scenario, variant=theirs, x=x),
    )


def each(rows: Sequence[Row], name: str) -> list[list[float]]:
    """An algorithm's ratios, point by point."""
    return [select(rows, RATIO, scenario=scenario, variant=name, x=x) for scenario, x in points(rows)]


def mean_of(rows: Sequence[Row], name: str) -> float:
    """The mean over all points of the trimmed means."""
    return float(np.mean([np.mean(trimmed(values)) for values in each(rows, name)]))


def mean_range(rows: Sequence[Row], name: str) -> str:
    """The least and the largest of the trimmed means."""
    found = [float(np.mean(trimmed(values))) for values in each(rows, name)]
    return f"{min(found):.3f} to {max(found):.3f}"
