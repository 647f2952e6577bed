"""Where a partition fits on 128 midplanes in under 1 ms a question; how many jobs of KTH-SP2 a second run on
a torus of as many; what a cycle costs on thousands of nodes that sleep.

`make bench ARGS="-s -k partitions"` tells the figures.
"""

import sys
from pathlib import Path
from time import process_time

import numpy as np
import pytest

from headway.decisions import PowerDown, PowerUp
from headway.emulation import emulate
from headway.events import Event, JobSubmitted, NodePowerChanged
from headway.model import ClusterDescription, JobDescription, NodeDescription, PoolDescription, Request
from headway.model.wiring import Torus
from headway.partitions.description import TorusConfig
from headway.partitions.torus import Geometry, Wires
from headway.plugins import Catalogue, PluginConfig, Plugins
from headway.scheduler import Scheduler
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


@pytest.mark.parametrize("blocks", ["on-demand", "prepared"])
def test_a_cycle_on_nodes_that_sleep(blocks):
    """5,000 nodes in a row, all asleep; 50 jobs of 8 nodes wait, and their nodes have been woken."""
    names = [f"n{at}" for at in range(5000)]
    nodes = tuple(NodeDescription(name, 4, pools=("pool",), wake_time=60.0) for name in names)
    cluster = ClusterDescription("sleepers", (PoolDescription("pool"),), nodes)
    configs = [PluginConfig("easy"), PluginConfig("partitions", {"blocks": blocks})]
    able = frozenset({PowerUp, PowerDown})
    plugins = Plugins.load(configs, Catalogue(), able)
    scheduler = Scheduler(cluster, plugins, capabilities=able)
    events: list[Event] = [NodePowerChanged(0.0, name, "asleep") for name in names]
    request = Request(processors=32, walltime=600.0)
    events += [
        JobSubmitted(0.0, JobDescription(f"J{at}", submit_time=0.0, request=request)) for at in range(50)
    ]
    [order] = scheduler.step(0.0, events)
    assert len(order.nodes) >= 400
    control = plugins.by_name["partitions"].control
    took = []
    for _ in range(20):
        began = process_time()
        assert control(scheduler.state) == []
        took.append(process_time() - began)
    say(f"{blocks}: `control` on 5,000 sleeping nodes {np.median(took) * 1e3:.1f} ms a cycle")
