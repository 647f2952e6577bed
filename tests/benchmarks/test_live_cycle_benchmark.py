"""One live cycle: 10,000 nodes, 50,000 pending jobs, EASY with placement.

`make bench ARGS="-k live"`; the figures are in docs/performance.md.
"""

from __future__ import annotations

import sys
from time import perf_counter, process_time

import numpy as np
import pytest

from headway.events import Event, JobStarted, JobSubmitted, in_order
from headway.model import ClusterDescription, JobDescription, NodeDescription, PoolDescription, Request
from headway.plugins import Catalogue, PluginConfig, Plugins
from headway.scheduler import Scheduler

pytestmark = pytest.mark.benchmark

NODES, PENDING, NOW = 10_000, 50_000, 1e9
GIB = 1 << 30


def request(rng: np.random.Generator, kind: int) -> Request:
    """Jobs of four shapes: whole nodes, single cores with memory, features, exclusive slices."""
    hours = float(rng.integers(1, 48)) * 3600
    width = int(2 ** rng.integers(0, 7))
    if kind == 0:
        return Request(64 * width, hours, nodes=width)
    if kind == 1:
        memory = int(rng.integers(1, 5)) * GIB
        return Request(int(rng.integers(1, 64)), hours, memory_per_processor=memory)
    if kind == 2:
        return Request(width, hours, features=("fast",))
    return Request(16 * width, hours, nodes=width, processors_per_node=16, exclusive=True)


def pools_of(node: int, pools: int) -> tuple[str, ...]:
    """The pools of a node where there are several: the first has all, each other one a stretch of a fifth."""
    if pools == 1:
        return ("batch",)
    begins = {at: at * NODES // pools for at in range(1, pools)}
    return ("p0", *(f"p{at}" for at, begin in begins.items() if begin <= node < begin + NODES // 5))


def loaded(placement: str, busy: float, pools: int = 1) -> Scheduler:
    """A scheduler that knows the queue and ``busy`` of the nodes taken, before its cycle; with several pools
    the jobs are sent to each of them in turn."""
    rng = np.random.default_rng(1)
    nodes = tuple(
        NodeDescription(
            f"n{i}", 64, 256 * GIB, features=("fast",) if i % 3 == 0 else (), pools=pools_of(i, pools)
        )
        for i in range(NODES)
    )
    names = ["batch"] if pools == 1 else [f"p{at}" for at in range(pools)]
    cluster = ClusterDescription("big", tuple(map(PoolDescription, names)), nodes)
    plugins = Plugins.load([PluginConfig("easy"), PluginConfig(placement)], Catalogue(), None)
    scheduler = Scheduler(cluster, plugins)
    events: list[Event] = []
    taken = number = 0
    while taken < busy * NODES:
        width = min(int(rng.integers(1, 9)), NODES - taken)
        hours = float(rng.integers(2, 48))
        asked = Request(64 * width, hours * 3600, nodes=width)
        job = JobDescription(f"r{number}", NOW - 5000, asked, pool=names[0])
        events.append(JobSubmitted(NOW - 5000, job))
        events.append(
            JobStarted(NOW - 4000, job.id, tuple((f"n{i}", 64) for i in range(taken, taken + width)))
        )
        taken += width
        number += 1
    for q in range(PENDING):
        submit = NOW - 3000 + q * 0.01
        job = JobDescription(f"q{q}", submit, request(rng, q % 4), pool=names[q // 4 % len(names)])
        events.append(JobSubmitted(submit, job))
    scheduler.state.now = NOW
    scheduler.state.apply(in_order(events))
    return scheduler


@pytest.mark.parametrize("placement", ["first-fit", "best-fit"])
@pytest.mark.parametrize("busy", [0.99, 0.9, 0.5, 0.0])
def test_live_cycle(placement: str, busy: float) -> None:
    seconds = []
    for _ in range(3):
        scheduler = loaded(placement, busy)
        began = perf_counter()
        decisions = scheduler.step(NOW, [])
        seconds.append(perf_counter() - began)
        assert decisions and not scheduler.problems
    print(
        f"\nlive cycle, {placement}, {busy:.0%} of the nodes busy: {len(decisions)} starts in "
        f"{1000 * min(seconds):.0f} ms",
        file=sys.__stderr__,
    )


@pytest.mark.parametrize("busy", [0.9, 0.5])
def test_live_cycle_of_pools_that_share_nodes(busy: float) -> None:
    """At most twice the cycle of one pool with the same jobs is aimed at."""
    seconds: dict[int, list[float]] = {1: [], 8: []}
    for _ in range(3):
        for pools, took in seconds.items():
            scheduler = loaded("first-fit", busy, pools)
            assert len(scheduler.state.domains) == 1
            began = process_time()
            decisions = scheduler.step(NOW, [])
            took.append(process_time() - began)
            assert decisions and not scheduler.problems
    one, eight = (min(took) for took in seconds.values())
    print(
        f"\nlive cycle, {busy:.0%} of the nodes busy: one pool {1000 * one:.0f} ms, eight pools that share "
        f"nodes {1000 * eight:.0f} ms: {eight / one:.2f} times",
        file=sys.__stderr__,
    )
