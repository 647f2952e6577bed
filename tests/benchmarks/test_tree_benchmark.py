"""One live cycle on 5,000 nodes with the placement tree, beside best-fit and first-fit.

`make bench ARGS="-k tree_benchmark"`; the figures are in docs/performance.md.
"""

from __future__ import annotations

import sys
from time import process_time

import numpy as np
import pytest
from test_live_cycle_benchmark import GIB, NOW, request

from headway.events import Event, JobStarted, JobSubmitted
from headway.model import ClusterDescription, JobDescription, NodeDescription, PoolDescription, Request
from headway.plugins import Catalogue, PluginConfig, Plugins
from headway.scheduler import Scheduler

pytestmark = pytest.mark.benchmark

NODES, PENDING, LEAF, ROUNDS = 5_000, 10_000, 16, 3
SWITCHES = {
    **{f"l{at}": f"n[{at * LEAF}-{min((at + 1) * LEAF, NODES) - 1}]" for at in range(-(-NODES // LEAF))},
    **{
        f"r{at}": {"switches": [f"l[{at * 20}-{min(at * 20 + 19, -(-NODES // LEAF) - 1)}]"]}
        for at in range(16)
    },
    "core": {"switches": ["r[0-15]"]},
}


def loaded(placement: str, options: dict[str, object], busy: float) -> tuple[Scheduler, list[Event]]:
    """A scheduler with ``busy`` of the nodes taken here and there, and the jobs that arrive then."""
    rng = np.random.default_rng(1)
    nodes = tuple(
        NodeDescription(f"n{i}", 64, 256 * GIB, features=("fast",) if i % 3 == 0 else (), pools=("batch",))
        for i in range(NODES)
    )
    cluster = ClusterDescription("big", (PoolDescription("batch"),), nodes)
    plugins = Plugins.load([PluginConfig("easy"), PluginConfig(placement, options)], Catalogue(), None)
    scheduler = Scheduler(cluster, plugins)
    events: list[Event] = []
    for number, node in enumerate(rng.permutation(NODES)[: int(busy * NODES)].tolist()):
        job = JobDescription(
            f"r{number}", NOW - 5000, Request(64, float(rng.integers(2, 48)) * 3600, nodes=1)
        )
        events += [JobSubmitted(NOW - 5000, job), JobStarted(NOW - 4000, job.id, ((f"n{node}", 64),))]
    scheduler.step(NOW - 1, events)
    arrivals: list[Event] = [
        JobSubmitted(NOW, JobDescription(f"p{at}", NOW, request(rng, at % 4))) for at in range(PENDING)
    ]
    return scheduler, arrivals


@pytest.mark.parametrize("busy", [0.9, 0.5, 0.0])
def test_a_cycle_with_few_switches(busy: float) -> None:
    for placement, options in (("first-fit", {}), ("best-fit", {}), ("tree", {"switches": SWITCHES})):
        best, starts = float("inf"), 0
        for _ in range(ROUNDS):
            scheduler, arrivals = loaded(placement, options, busy)
            began = process_time()
            starts = len(scheduler.step(NOW, arrivals))
            best = min(best, process_time() - began)
        print(f"{busy:.0%} busy, {placement}: {starts} starts, {1000 * best:.0f} ms", file=sys.stderr)
        assert starts
    assert best < 3.0
