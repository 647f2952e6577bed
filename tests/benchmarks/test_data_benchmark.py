"""Data co-scheduling: a generation of the genetic algorithm, and what plans cost to evaluate.

`make bench ARGS="-s -k data_benchmark"` tells the figures.
"""

import sys
from time import process_time

import numpy as np
import pytest

from headway_plugins.data.evaluation import MODES
from headway_plugins.data.generate import Recipe, generate
from headway_plugins.data.genetic import Genetics, evolve
from headway_plugins.data.population import Fitness
from headway_plugins.draws import Draws

pytestmark = pytest.mark.benchmark
#: Jobs, and datasets; 20 nodes and stores.
BATCHES = (100, 50), (1000, 100)
CHILDREN = 50


def say(text):
    print(f"\ndata: {text}", file=sys.__stderr__)


def least(work, rounds=7):
    """CPU seconds, the least of so many rounds."""
    found = []
    for _ in range(rounds):
        began = process_time()
        work()
        found.append(process_time() - began)
    return min(found)


def batch(jobs, objects):
    return generate(Draws(np.random.default_rng(1)), Recipe(jobs=jobs, objects=objects)).tables()


def plans(tables, count):
    rng = np.random.default_rng(2)
    jobs = len(tables.jobs)
    return np.array([
        [*rng.permutation(jobs), *rng.integers(tables.nodes, size=jobs),
         *rng.integers(tables.local_stores, size=tables.objects)]
        for _ in range(count)
    ])  # fmt: skip


@pytest.mark.parametrize(("jobs", "objects"), BATCHES)
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "rep-none"])
def test_a_population_is_evaluated(jobs, objects, mode):
    tables = batch(jobs, objects)
    fitness, population = Fitness(tables, mode), plans(tables, CHILDREN)
    together = least(lambda: fitness.at_once(population))
    single = least(lambda: fitness.one_by_one(population), 3)
    told = f"{together * 1e3:.1f} ms at once, {single * 1e3:.1f} ms one by one"
    say(f"{CHILDREN} plans of {jobs:,} jobs, {mode}: {told}")
    assert fitness.at_once(population).tolist() == fitness.one_by_one(population).tolist()


@pytest.mark.parametrize(("jobs", "objects"), BATCHES)
def test_where_arrays_begin_to_be_faster(jobs, objects):
    tables = batch(jobs, objects)
    fitness = Fitness(tables, "event")
    told = []
    for count in (4, 8, 10, 12, 16):
        population = plans(tables, count)
        together, single = (least(lambda how=how, p=population: how(p))
                            for how in (fitness.at_once, fitness.one_by_one))  # fmt: skip
        told.append(f"{count} plans {together * 1e3:.1f}, {single * 1e3:.1f}")
    say(f"{jobs:,} jobs, ms at once and one by one: {'; '.join(told)}")


@pytest.mark.parametrize(("jobs", "objects"), BATCHES)
@pytest.mark.parametrize("mutation", [0.0, 0.8])
def test_a_generation(jobs, objects, mutation):
    """Children and their evaluation, the mean of 20 generations; the first plans left out."""
    tables = batch(jobs, objects)

    def run(generations):
        genetics = Genetics(generations=generations, mutation=mutation)
        return evolve(tables, Draws(np.random.default_rng(1)), genetics)

    took = (least(lambda: run(20), 3) - least(lambda: run(0), 3)) / 20
    say(f"a generation of {CHILDREN} children, {jobs:,} jobs, mutation {mutation:g}: {took * 1e3:.1f} ms")
    assert run(20).makespan <= run(0).makespan
