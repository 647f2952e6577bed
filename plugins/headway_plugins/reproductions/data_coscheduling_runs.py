"""The runs of the experiments on data co-scheduling: a point is a workload, an evaluation and a population.

A seed is an initialisation set: its batch is the same for all algorithms and all points of the same workload.
Of an algorithm with random choices a row has the mean of several runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import process_time

import numpy as np

from headway.experiment.campaign import Row
from headway_plugins.data.evaluation import Mode
from headway_plugins.data.generate import Recipe, generate
from headway_plugins.data.genetic import Genetics, evolve
from headway_plugins.data.greedy import greedy
from headway_plugins.data.model import Batch, Tables, lower_bound
from headway_plugins.draws import Draws

MAKESPAN, BOUND, SECONDS, LAST = "makespan", "makespan / lower bound", "run time", "last improvement"

GA, GA_NONE = "GA", "GA, rep-none"
LL, LL_NONE = "LL, rep-rand", "LL, rep-none"
RANDOM, RANDOM_NONE = "rand, rep-rand", "rand, rep-none"
#: Two genetic and four greedy algorithms, in the order of figure 7.
ALGORITHMS = (GA, GA_NONE, LL, LL_NONE, RANDOM, RANDOM_NONE)
GREEDY = ALGORITHMS[2:]
#: Bits of a byte.
_BYTE = 8


@dataclass(frozen=True)
class Point:
    """What algorithms are compared on."""

    scenario: str
    x: float
    recipe: Recipe = field(default_factory=Recipe)
    mode: Mode = "event"
    #: Genetic algorithms by name; None of them: "GA" and "GA, rep-none" as in the paper.
    genetics: Mapping[str, Genetics] = field(default_factory=lambda: {GA: Genetics()})
    #: Rates are kilobytes a second.
    bytes: bool = False
    #: Plain algorithms, by name.
    others: Sequence[str] = (LL,)

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.genetics, *self.others)


def tables_of(point: Point, seed: int) -> Tables:
    """The batch of a set."""
    batch = generate(Draws(np.random.default_rng([seed, 0])), point.recipe)
    return (faster(batch, _BYTE) if point.bytes else batch).tables()


def faster(batch: Batch, factor: int) -> Batch:
    """The batch with so many times its rates."""

    def rates(rows: Sequence[Sequence[float]]) -> list[list[float]]:
        return [[factor * rate for rate in row] for row in rows]

    return replace(
        batch, remote_store=rates(batch.remote_store), store_node=rates(batch.store_node),
        remote_node=rates(batch.remote_node),
    )  # fmt: skip


def run_point(point: Point, seed: int, runs: int) -> list[Row]:
    """All algorithms of a point on one set; means over so many runs."""
    tables = tables_of(point, seed)
    rows = []
    for name in point.names:
        found = [_once(point, tables, name, [seed, run, ALGORITHMS.index(name) if name in ALGORITHMS else 0])
                 for run in range(1, 2 if name == LL_NONE else runs + 1)]  # fmt: skip
        means = {metric: float(np.mean([one[metric] for one in found])) for metric in found[0]}
        rows.append(Row(point.scenario, point.x, name, seed, means))
    return rows


def _once(point: Point, tables: Tables, name: str, seed: Sequence[int]) -> dict[str, float]:
    """One run of an algorithm."""
    draws = Draws(np.random.default_rng(seed))
    replicas = not name.endswith("none")
    began = process_time()
    last = 0
    if name in GREEDY:
        makespan = greedy(
            tables, draws, jobs="LL" if name in (LL, LL_NONE) else "rand",
            rep="rand" if replicas else "none", mode=point.mode,
        ).makespan  # fmt: skip
    else:
        found = evolve(tables, draws, point.genetics[name], mode=point.mode if replicas else "rep-none")
        makespan = found.makespan
        last = next(at for at, best in enumerate(found.history) if best == makespan)
    took = process_time() - began
    bound = lower_bound(tables, replicas=replicas) or float("nan")
    return {MAKESPAN: makespan, BOUND: makespan / bound, SECONDS: took, LAST: float(last)}
