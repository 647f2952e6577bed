"""Batches for the tests of data co-scheduling: the small one of the paper's notation, and random ones."""

import numpy as np

from headway_plugins.data.generate import Recipe, generate
from headway_plugins.data.model import Batch, Replica, Tables
from headway_plugins.draws import Draws

#: Two remote stores, two local stores, two nodes, three objects, five jobs.
SMALL = Batch(
    sizes=[100, 200, 50], sources=[0, 0, 1],
    remote_store=[[1000, 800], [500, 1000]], store_node=[[10000, 8000], [8000, 10000]],
    remote_node=[[900, 1000], [1000, 900]], jobs=[[0], [0, 1], [1], [2], [2, 0]],
)  # fmt: skip


def random_tables(seed: int, *, whole: bool = False, state: bool = True) -> Tables:
    """A batch of up to 12 jobs; jobs may need nothing, nodes be busy and replicas exist (``state``).

    ``whole``: small whole seconds, so that many times are equal.
    """
    rng = np.random.default_rng(seed)
    jobs, nodes, stores, objects = (int(rng.integers(least, most)) for least, most in
                                    ((1, 13), (1, 5), (1, 4), (1, 7)))  # fmt: skip

    def times(*shape):
        return (rng.integers(0, 6, shape) if whole else rng.uniform(0, 100, shape)).tolist()

    needs = [rng.permutation(objects)[: int(rng.integers(0, 4))].tolist() for _ in range(jobs)]
    busy = times(nodes) if state and rng.random() < 0.5 else None
    there = {
        o: Replica(int(rng.integers(stores)), times(1)[0]) for o in range(objects)
        if state and rng.random() < 0.3
    }  # fmt: skip
    return Tables(
        needs, times(objects, stores), times(objects, stores, nodes), times(jobs, nodes),
        times(objects, nodes), busy, there,
    )  # fmt: skip


def random_plans(tables: Tables, seed: int, count: int, *, replicas: bool = True):
    """Rows of a population."""
    rng = np.random.default_rng([seed, 1])
    jobs, objects = len(tables.jobs), tables.objects if replicas else 0
    return np.array(
        [
            [*rng.permutation(jobs), *rng.integers(tables.nodes, size=jobs),
             *rng.integers(tables.local_stores, size=objects)]
            for _ in range(count)
        ]
    )  # fmt: skip


def cms(seed: int, **recipe) -> Tables:
    """A batch of the paper's workload."""
    return generate(Draws(np.random.default_rng(seed)), Recipe(**recipe)).tables()
