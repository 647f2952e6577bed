"""The experiments of the paper on co-scheduling jobs and replicas with a genetic algorithm.

T. Phan, K. Ranganathan, R. Sion: Evolving Toward the Perfect Schedule: Co-scheduling Job Assignments and Data
Replication in Wide-Area Systems Using a Genetic Algorithm. JSSPP 2005, section 5. The values of its figures 7
to 12 are not at hand, so what is compared is what the text says. A *lead* is how much earlier the genetic
algorithm ends than another one, in percent of that one's makespan, set by set.

- *algorithms*: the six algorithms in each reading of the evaluation function, with mutation, and on 5 nodes.
- *jobs*, *computing*: queue lengths of 40 to 160, coefficients of 30 to 3,000.
- *population*: parents, and children for each parent; run times in processor-seconds.
- *readings*: other popularity, kilobytes for kilobits, more generations.

``--seeds`` is the number of initialisation sets, of which the paper has 3; ``--set runs=N`` that of runs of
each, of which the paper has 10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from headway.errors import UserError
from headway.experiment.campaign import Row, Task, select
from headway.experiment.judging import Of, held, provided, size_verdict, verdict
from headway.experiment.plots import bar_plot, line_plot
from headway.experiment.published import Published
from headway.experiment.reproduction import Claim, Context
from headway.experiment.statistics import Interval, interval, paired
from headway_plugins.data.evaluation import evaluate, micro
from headway_plugins.data.generate import Recipe
from headway_plugins.data.genetic import Genetics
from headway_plugins.reproductions.data_coscheduling_runs import (
    ALGORITHMS,
    BOUND,
    GA,
    GA_NONE,
    GREEDY,
    LAST,
    LL,
    LL_NONE,
    MAKESPAN,
    RANDOM,
    RANDOM_NONE,
    SECONDS,
    Point,
    run_point,
    tables_of,
)

MUTATION = 0.8
MUTATED = Genetics(mutation=MUTATION)
#: Names of further genetic algorithms.
GA_MUTATED, GA_LONG, GA_LONG_MUTATED = "GA, mutation", "GA, 500 generations", "GA, 500 generations, mutation"
LONG = 500
#: With and without replicas, the same otherwise.
PAIRS = ((GA, GA_NONE), (LL, LL_NONE), (RANDOM, RANDOM_NONE))
JOBS = (40, 80, 120, 160)
COEFFICIENTS = (30, 100, 300, 1000, 3000)
PARENTS, RATIOS = (10, 30, 50), (5, 20, 50)
#: Percent, of the text: below the best and the worst greedy algorithm, and the range of the abstract.
BEST, WORST, RANGE = 22.0, 47.0, (20.0, 45.0)
#: Percent: what counts as comparable; the paper gives no rule.
NEAR = 5.0


def six_points() -> list[Point]:
    """Readings of the evaluation function, mutation, and the small machine."""
    both = {GA: Genetics(), GA_NONE: Genetics()}
    plain = Point("event", 20.0, genetics=both, others=GREEDY)
    small = Recipe(nodes=5, stores=5)
    return [
        plain,
        replace(plain, scenario="queue", mode="queue"),
        replace(plain, scenario="prefetch", mode="prefetch"),
        replace(plain, scenario="printed", mode="printed"),
        replace(plain, scenario="event, mutation", genetics={GA: MUTATED, GA_NONE: MUTATED}),
        replace(plain, scenario="event, 5 nodes", x=5.0, recipe=small),
    ]


def job_points() -> list[Point]:
    """Figure 9."""
    some = {GA: Genetics(), GA_MUTATED: MUTATED}
    longer = {**some, GA_LONG: Genetics(generations=LONG)}
    return [
        Point("jobs", float(count), Recipe(jobs=count), genetics=longer if count == JOBS[-1] else some)
        for count in JOBS
    ]


def computing_points() -> list[Point]:
    """Figure 10."""
    return [Point("computing", float(k), Recipe(k=k)) for k in COEFFICIENTS]


def population_points(parents: Sequence[int], ratios: Sequence[int]) -> list[Point]:
    """Figures 11 and 12."""
    return [
        Point("population", float(ratio),
              genetics={f"{count} parents": Genetics(count, count * ratio) for count in parents})
        for ratio in ratios
    ]  # fmt: skip


def reading_points() -> list[Point]:
    """What the paper leaves open, and how far from the lower bound."""
    long = {
        GA: Genetics(), GA_MUTATED: MUTATED,
        GA_LONG_MUTATED: Genetics(generations=LONG, mutation=MUTATION),
    }  # fmt: skip
    return [
        Point("as decided", 1.0, genetics=long),
        Point("Zipf exponent 0.5", 0.5, Recipe(zipf=0.5)),
        Point("Zipf exponent 1.5", 1.5, Recipe(zipf=1.5)),
        Point("kilobytes", 8.0, bytes=True),
    ]


class DataCoscheduling:
    """The experiments of Phan and others 2005."""

    title = "Co-scheduling jobs and replicas with a genetic algorithm (Phan and others 2005)"
    published = Published(
        system="static", workloads=1, jobs=3_000, intervals=False, estimates="exact", backfills=False,
        sanity=("makespan",),
    )  # fmt: skip

    def __init__(
        self, runs: int = 10, population_runs: int = 2, population_sets: int = 10,
        parents: Sequence[int] = PARENTS, ratios: Sequence[int] = RATIOS,
    ) -> None:  # fmt: skip
        """``runs``: of each set; ``population_runs`` and ``population_sets``: for figures 11 and 12, runs of
        each set and sets at most, with numbers of ``parents`` and of children for each parent (``ratios``).
        """
        for what, value, least in (
            ("runs", runs, 1), ("population_runs", population_runs, 1),
            ("population_sets", population_sets, 2), ("parents", len(parents), 2), ("ratios", len(ratios), 2),
        ):  # fmt: skip
            if value < least:
                raise UserError(f"--set {what}: expected at least {least}, found {value}")
        self._runs, self._population_runs = runs, population_runs
        self._population_sets = population_sets
        self._parents, self._ratios = tuple(parents), tuple(ratios)

    def run(self, context: Context) -> list[Claim]:
        six = self._rows(context, "algorithms", six_points())
        jobs = self._rows(context, "jobs", job_points())
        computing = self._rows(context, "computing", computing_points())
        readings = self._rows(context, "readings", reading_points())
        population = self._rows(
            context, "population", population_points(self._parents, self._ratios), self._population_runs,
            self._population_sets,
        )  # fmt: skip
        self._plots(context, six, jobs, computing, population)
        event = of(six, "event")
        return [
            *_six(event),
            *_replication(event, of(six, "printed")),
            *_small(event, of(six, "event, 5 nodes")),
            *_queue_lengths(jobs),
            _coefficients(computing),
            *self._populations(population, event),
            _convergence(event),
            _seconds(event),
            *_further(six, readings, context.seeds[0]),
        ]

    def _rows(
        self, context: Context, name: str, points: Sequence[Point], runs: int | None = None,
        sets: int | None = None,
    ) -> list[Row]:  # fmt: skip
        runs = self._runs if runs is None else runs
        tasks = [
            Task(tuple((point.scenario, point.x, name, seed) for name in point.names),
                 run_point, (point, seed, runs))
            for point in points for seed in context.seeds[:sets]
        ]  # fmt: skip
        return context.collect(name, tasks, (runs, points))

    def _plots(
        self, context: Context, six: list[Row], jobs: list[Row], computing: list[Row], population: list[Row]
    ) -> None:
        for name, scenario in (("figure-7", "event"), ("figure-8", "event, 5 nodes")):
            bar_plot(of(six, scenario), [MAKESPAN], context.out / f"{name}.png", title=scenario)
        plotted = [row for row in jobs if row.variant != GA_LONG]
        line_plot(plotted, [MAKESPAN], context.out / "figure-9.png", x_label="jobs", title="queue length")
        line_plot(computing, [MAKESPAN], context.out / "figure-10.png", x_label="k, s/GB", title="computing")
        evolved = [row for row in population if row.variant != LL]
        line_plot(evolved, [MAKESPAN], context.out / "figure-11.png", x_label="children for each parent",
                  title="population")  # fmt: skip
        line_plot(evolved, [SECONDS], context.out / "figure-12.png", x_label="children for each parent",
                  title="population, processor-seconds", units={SECONDS: ("s", 1.0)})  # fmt: skip

    def _populations(self, rows: Sequence[Row], event: Sequence[Row]) -> list[Claim]:
        """Q8 and Q9."""
        names = [f"{count} parents" for count in self._parents]
        text: list[str] = []
        gains: list[Interval] = []
        means: dict[tuple[str, int], float] = {}
        for name in names:
            found = [lead(rows, LL, ours=name, x=ratio) for ratio in self._ratios]
            means |= {(name, ratio): one.mean for ratio, one in zip(self._ratios, found, strict=True)}
            text.append(
                f"{name} " + ", ".join(f"1:{r} {one}" for r, one in zip(self._ratios, found, strict=True))
            )
        for ratio in self._ratios:
            gains += [
                difference(rows, LL, (few, ratio), (many, ratio)) for few, many in pairwise(names)
            ]  # fmt: skip
        best = max(means, key=means.__getitem__)
        largest = (names[-1], self._ratios[-1])
        spent = {
            (name, ratio): float(np.mean(select(rows, SECONDS, variant=name, x=float(ratio))))
            for name in names for ratio in self._ratios
        }  # fmt: skip
        plain = max(max(select(event, SECONDS, variant=name)) for name in GREEDY)
        sizes = sorted(spent, key=lambda at: int(at[0].split()[0]) * at[1])
        told = ", ".join(f"{int(name.split()[0])}:{int(name.split()[0]) * ratio} {spent[name, ratio]:.2g} s"
                         for name, ratio in sizes)  # fmt: skip
        return [
            Claim("Q8, figure 11", "larger populations are better",
                  f"lead over {LL}, %: {'; '.join(text)}", verdict(gains, Of.MOST)),
            Claim("Q8, figure 11", "best: 50 parents, 50 children for each",
                  f"best by its mean: {best[0]}, 1:{best[1]}",
                  held([best == largest])),
            Claim("Q9, figure 12", "run time grows with the population; greedy algorithms take below 1 s",
                  f"parents:children, processor-seconds: {told}; greedy at most {plain:.3f} s",
                  held([all(spent[a] < spent[b] for a, b in pairwise(sizes)), plain < 1])),
        ]  # fmt: skip


def of(rows: Sequence[Row], scenario: str) -> list[Row]:
    """The rows of a scenario."""
    return [row for row in rows if row.scenario == scenario]


def lead(rows: Sequence[Row], theirs: str, *, ours: str = GA, x: float | None = None) -> Interval:
    """How much earlier ours ends than theirs, percent, set by set."""
    mine = rows if x is None else [row for row in rows if row.x == float(x)]
    change = paired(select(mine, MAKESPAN, variant=ours), select(mine, MAKESPAN, variant=theirs))
    return Interval(-change.mean, change.half, change.count)


def leads(rows: Sequence[Row], theirs: str, ours: str, x: float) -> np.ndarray:
    """The lead on each set."""
    a, b = (np.array(select(rows, MAKESPAN, variant=name, x=float(x))) for name in (ours, theirs))
    return 100 * (1 - a / b)


def difference(
    rows: Sequence[Row], theirs: str, small: tuple[str, float], large: tuple[str, float]
) -> Interval:
    """By how many points the second lead is larger than the first, set by set: algorithms and their x."""
    return interval((leads(rows, theirs, *large) - leads(rows, theirs, *small)).tolist())


def _six(event: Sequence[Row]) -> list[Claim]:
    """Q1 to Q3, Q11."""
    found = {name: lead(event, name) for name in ALGORITHMS[1:]}
    means = {
        name: interval([value / 1000 for value in select(event, MAKESPAN, variant=name)])
        for name in ALGORITHMS
    }
    best = min(GREEDY, key=lambda name: means[name].mean)
    worst = max(GREEDY, key=lambda name: means[name].mean)
    told = "1,000 s: " + "; ".join(f"{name} {mean}" for name, mean in means.items())
    greedy = {name: found[name] for name in GREEDY}
    inside = [RANGE[0] <= one.mean <= RANGE[1] for one in greedy.values()]
    ends, others = (np.array(select(event, MAKESPAN, variant=name)) for name in (GA, LL))
    gap = interval((others - ends).tolist())
    return [
        Claim("Q1, figure 7", "GA has the lowest makespan of six", told, verdict(list(found.values()))),
        Claim("Q1, figure 7", f"{BEST:g} % below the best greedy one, {LL}",
              f"best greedy: {best}; {found[best]} % below it",
              provided(verdict([found[best]]), held([best == LL])), size_verdict(BEST, found[best])),
        Claim("Q2, figure 7", f"{WORST:g} % below the worst greedy one, {RANDOM_NONE}",
              f"worst greedy: {worst}; {found[worst]} % below it",
              provided(verdict([found[worst]]), held([worst == RANDOM_NONE])),
              size_verdict(WORST, found[worst])),
        Claim("Q3, abstract", f"on average {RANGE[0]:g} to {RANGE[1]:g} % faster than greedy ones",
              ", ".join(f"{one} % below {name}" for name, one in greedy.items()), held(inside)),
        Claim("Q11", "makespans differ by thousands of seconds", f"GA ends {gap} s before {LL}",
              held([gap.low > 1000])),
    ]  # fmt: skip


def _replication(event: Sequence[Row], printed: Sequence[Row]) -> list[Claim]:
    """Q4."""

    def told(rows: Sequence[Row]) -> tuple[str, str]:
        gains = {ours: lead(rows, theirs, ours=ours) for ours, theirs in PAIRS}
        text = ", ".join(f"{name.split(',')[0]} {gain} %" for name, gain in gains.items())
        return text, verdict(list(gains.values()))

    return [
        Claim("Q4, figure 7", "replication lowers the makespan in all three pairs", *told(event)),
        Claim("Q4, as printed", "the same, by the evaluation function of figure 6", *told(printed)),
    ]


def _small(large: Sequence[Row], small: Sequence[Row]) -> list[Claim]:
    """Q5."""
    few = lead(small, LL)
    gain = difference([*large, *small], LL, (GA, 5.0), (GA, 20.0))
    return [
        Claim("Q5, figure 8", "5 nodes and stores: GA is comparable with greedy algorithms",
              f"lead over {LL}: {few} % (comparable: within {NEAR:g} %)", held([abs(few.mean) <= NEAR])),
        Claim("Q5, figure 8", "more nodes, more gain",
              f"{lead(large, LL)} % at 20, {few} % at 5: {gain} points more", verdict([gain])),
    ]  # fmt: skip


def _queue_lengths(rows: Sequence[Row]) -> list[Claim]:
    """Q6."""
    least, most = float(JOBS[0]), float(JOBS[-1])

    def told(name: str) -> str:
        return ", ".join(f"{lead(rows, LL, ours=name, x=x)} % at {x}" for x in JOBS)

    shrinks = difference(rows, LL, (GA, most), (GA, least))
    makes_up = difference(rows, LL, (GA, least), (GA_LONG, most))
    ends = interval(select(rows, LAST, variant=GA_LONG, x=most))
    return [
        Claim("Q6, figure 9", f"{JOBS[0]} to {JOBS[-1]} jobs: GA is always better than {LL}", told(GA),
              verdict([lead(rows, LL, x=x) for x in JOBS])),
        Claim("Q6, figure 9", "the lead shrinks as jobs become more",
              f"{shrinks} points from {JOBS[0]} to {JOBS[-1]} jobs", verdict([shrinks])),
        Claim("Q6, the reason", "the space is too large for 100 generations",
              f"{LONG} generations with {JOBS[-1]} jobs: the lead is {makes_up} points above that with "
              f"{JOBS[0]} jobs and 100 generations, the last improvement in generation {ends}; with mutation "
              f"and 100 generations {told(GA_MUTATED)}", verdict([makes_up])),
    ]  # fmt: skip


def _coefficients(rows: Sequence[Row]) -> Claim:
    """Q7."""
    first, last = float(COEFFICIENTS[0]), float(COEFFICIENTS[-1])
    shrinks = difference(rows, LL, (GA, last), (GA, first))
    told = ", ".join(f"{lead(rows, LL, x=k)} % at {k}" for k in COEFFICIENTS)
    return Claim("Q7, figure 10", "the lead shrinks as the computing coefficient grows",
                 f"{told}: {shrinks} points from the first to the last", verdict([shrinks]))  # fmt: skip


def _convergence(event: Sequence[Row]) -> Claim:
    """Q10."""
    ends = select(event, LAST, variant=GA)
    return Claim("Q10", "100 generations are enough to converge",
                 f"last improvement in generation {interval(ends)}, at most {max(ends):.0f} in the mean of a "
                 f"set's runs", held([max(ends) < 100]))  # fmt: skip


def _seconds(event: Sequence[Row]) -> Claim:
    """What a plan costs here."""
    took = interval(select(event, SECONDS, variant=GA))
    return Claim("time", "(figure 12, values lost)", f"GA {took} processor-seconds", "not run")


def _further(six: Sequence[Row], readings: Sequence[Row], seed: int) -> list[Claim]:
    """What the paper does not say, or says otherwise."""
    plain, mutated = (of(six, name) for name in ("event", "event, mutation"))
    table = {
        name: ", ".join(f"{one:,.0f}" for one in means(of(six, name)).values())
        for name in dict.fromkeys(row.scenario for row in six)
    }
    decided = of(readings, "as decided")
    bounds = {name: interval(select(decided, BOUND, variant=name))
              for name in (GA, GA_MUTATED, GA_LONG_MUTATED)}  # fmt: skip
    others = {name: lead(of(readings, name), LL) for name in dict.fromkeys(row.scenario for row in readings)}
    return [
        Claim("the table", f"mean makespans, s: {'; '.join(ALGORITHMS)}",
              "; ".join(f"*{name}*: {told}" for name, told in table.items()), "not run"),
        Claim("figure 6", "the makespan depends on the order of the queue", *_orders(seed)),
        Claim("without replicas", "GA is better than greedy algorithms (figure 7)",
              f"lead over {LL_NONE}: {lead(plain, LL_NONE, ours=GA_NONE)} %, with mutation "
              f"{lead(mutated, LL_NONE, ours=GA_NONE)} %",
              verdict([lead(plain, LL_NONE, ours=GA_NONE)])),
        Claim("mutation", "(described, not used)",
              f"lead over {LL}: {lead(mutated, LL)} %, without mutation {lead(plain, LL)} %", "not run"),
        Claim("prefetch", "(replicas only when a job needs them)",
              f"lead over {LL}: {lead(of(six, 'prefetch'), LL)} %", "not run"),
        Claim("lower bound", "(not in the paper)",
              ", ".join(f"{name} {found} times the bound" for name, found in bounds.items()), "not run"),
        Claim("readings", "(open in the paper)",
              f"lead over {LL}, %: " + ", ".join(f"{name} {one}" for name, one in others.items()), "not run"),
    ]  # fmt: skip


def means(rows: Sequence[Row]) -> Mapping[str, float]:
    """The mean makespan of each algorithm."""
    return {name: float(np.mean(select(rows, MAKESPAN, variant=name))) for name in ALGORITHMS}


def _orders(seed: int) -> tuple[str, str]:
    """How many makespans the printed function has for 200 orders of one assignment."""
    tables = tables_of(Point("printed", 20.0), seed)
    rng = np.random.default_rng(seed)
    node = rng.integers(tables.nodes, size=len(tables.jobs)).tolist()
    store = rng.integers(tables.local_stores, size=tables.objects).tolist()
    found = {}
    for mode in ("printed", "event"):
        orders = [rng.permutation(len(tables.jobs)).tolist() for _ in range(200)]
        found[mode] = {micro(evaluate(tables, mode, order, node, store)[0]) for order in orders}
    counts = {mode: len(ends) for mode, ends in found.items()}
    told = f"200 orders of a plan: makespans as printed {counts['printed']}, by events {counts['event']}"
    return told, held([len(found["printed"]) > 1])
