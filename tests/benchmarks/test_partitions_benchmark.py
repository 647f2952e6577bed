"""Where a partition fits on 128 midplanes in under 1 ms a question; how many jobs of KTH-SP2 a second run on
a torus of as many.

`make bench ARGS="-s -k partitions"` tells the figures.
"""

import sys
from pathlib import Path
from time import process_time

import numpy as np
import pytest

from headway.emulation import emulate
from headway.model.wiring import Torus
from headway.partitions.description import TorusConfig
from headway.partitions.torus import Geometry, Wires
from headway.plugins import Catalogue, PluginConfig
from headway.workload import read_swf, trace_jobs
from headway.workload.filters import scale_sizes
from headway_plugins.partitions.allocator import Allocator

pytestmark = pytest.mark.benchmark
SHAPE = (8, 4, 4)
NODES = 65_536


def say(text):
    print(f"\npartitions: {text}", file=sys.__stderr__)


@pytest.mark.parametrize("best", [False, True], ids=["first fit", "best fit"])
@pytest.mark.parametrize("connection", ["mesh", "torus"])
def test_questions(connection, best):
    """Random sizes on a machine that fills and empties."""
    rng = np.random.default_rng(1)
    geometry = Geometry(Torus(SHAPE))
    allocator, wires, held = Allocator(geometry, connection), Wires(geometry), []
    allocator.fit(1)
    took, found = [], 0
    for size in rng.integers(1, 33, 5000).tolist():
        began = process_time()
        box = allocator.fit(size, wires.busy, wires.full, best=best)
        took.append(process_time() - began)
        if box is None:
            for _ in range(len(held) // 2):
                wires.give_back(*held.pop(int(rng.integers(len(held)))))
        else:
            found += 1
            held.append(geometry.masks(box))
            wires.take(*held[-1])
    say(f"{connection}, {'best' if best else 'first'} fit: {np.mean(took) * 1e6:.0f} us a question, "
        f"99 % below {np.quantile(took, 0.99) * 1e6:.0f} us; {found} of {len(took)} found one")  # fmt: skip
    assert np.mean(took) < 1e-3


@pytest.mark.traces
@pytest.mark.parametrize("blocks", ["on-demand", "prepared"])
@pytest.mark.parametrize("policy", ["fcfs", "easy"])
def test_a_year_of_kth(trace_dir: Path, policy, blocks):
    trace = read_swf(next(trace_dir.glob("KTH-SP2*")))
    jobs, _ = trace_jobs(scale_sizes(trace, NODES / 100, NODES), NODES)
    cluster = TorusConfig(shape=SHAPE).description()
    plugins = [PluginConfig(policy), PluginConfig("partitions", {"blocks": blocks})]
    catalogue = Catalogue()
    began = process_time()
    result = emulate(cluster, jobs, plugins, catalogue, label=policy)
    took = process_time() - began
    boots = result.contributed["partitions"](result)["boots"]
    rate = len(jobs) / took
    say(f"{policy}, {blocks}: {len(jobs):,} jobs in {took:.1f} s, {rate:,.0f} jobs/s; {boots:,} boots")
    assert all(one.state == "completed" or one.state == "timed out" for one in result.jobs)
