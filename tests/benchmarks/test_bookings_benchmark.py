"""What bookings cost: conservative backfilling on saturated traces, and in one live cycle on nodes.

`make bench ARGS="-k bookings"`; the figures are in docs/performance.md.
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import process_time

import msgspec
import pytest
import test_live_cycle_benchmark as live

from headway.emulation import emulate
from headway.model import ClusterDescription, Reservation
from headway.plugins import Catalogue, PluginConfig, Plugins
from headway.workload import read_swf, trace_jobs

pytestmark = pytest.mark.benchmark

JOBS = 10_000
KEPT = {"easy": 4_000, "conservative": 2_000}


@pytest.mark.traces
@pytest.mark.parametrize("factor", [1.0, 0.7, 0.4])
def test_bookings_on_a_saturated_flat_pool(trace_dir: Path, factor: float) -> None:
    trace = read_swf(next(trace_dir.glob("KTH-SP2*")))
    assert trace.max_processors is not None
    records, _ = trace_jobs(trace, trace.max_processors)
    jobs = [
        msgspec.structs.replace(
            record, job=msgspec.structs.replace(record.job, submit_time=record.job.submit_time * factor)
        )
        for record in records[:JOBS]
    ]
    speeds = {}
    for policy in ("easy", "conservative"):
        began = process_time()
        result = emulate(
            ClusterDescription.flat(trace.max_processors),
            jobs,
            [PluginConfig(policy)],
            Catalogue(),
            label=policy,
        )
        speeds[policy] = JOBS / (process_time() - began)
        assert all(job.start_time is not None for job in result.jobs)
    print(
        f"\nKTH-SP2, {JOBS} jobs, times between arrivals x {factor}: conservative "
        f"{speeds['conservative']:,.0f} jobs/s, easy {speeds['easy']:,.0f} jobs/s",
        file=sys.__stderr__,
    )


@pytest.mark.traces
def test_conservative_over_a_whole_trace(trace_dir: Path) -> None:
    """20,000 jobs/s are aimed at."""
    trace = read_swf(next(trace_dir.glob("KTH-SP2*")))
    assert trace.max_processors is not None
    jobs, _ = trace_jobs(trace, trace.max_processors)
    cluster, seconds = ClusterDescription.flat(trace.max_processors), []
    for _ in range(3):
        began = process_time()
        result = emulate(cluster, jobs, [PluginConfig("conservative")], Catalogue(), label="conservative")
        seconds.append(process_time() - began)
        assert all(job.start_time is not None for job in result.jobs)
    print(
        f"\nKTH-SP2, {len(jobs)} jobs, conservative: {len(jobs) / min(seconds):,.0f} jobs/s",
        file=sys.__stderr__,
    )


@pytest.mark.traces
@pytest.mark.parametrize("beside", ["dedicated jobs", "reservations"])
@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_bookings_beside_what_is_kept(trace_dir: Path, policy: str, beside: str) -> None:
    """Every twentieth job dedicated, four hours ahead; or 30 reservations of 20 processors and four hours."""
    trace = read_swf(next(trace_dir.glob("KTH-SP2*")))
    assert trace.max_processors is not None
    jobs = trace_jobs(trace, trace.max_processors)[0][: KEPT[policy]]
    cluster, plugins = ClusterDescription.flat(trace.max_processors), [PluginConfig(policy)]
    if beside == "dedicated jobs":
        plugins.insert(0, PluginConfig("dedicated"))
        for at in range(0, len(jobs), 20):
            job = jobs[at].job
            wish = {"requested_start": job.submit_time + 4 * 3600}
            jobs[at] = msgspec.structs.replace(jobs[at], job=msgspec.structs.replace(job, attributes=wish))
    else:
        first, last = jobs[0].job.submit_time, jobs[-1].job.submit_time
        starts = [first + (last - first) * (number + 1) / 32 for number in range(30)]
        pool = cluster.pools[0].name
        kept = (
            Reservation(f"r{number}", start, start + 4 * 3600, processors=20, pool=pool)
            for number, start in enumerate(starts)
        )
        cluster = msgspec.structs.replace(cluster, reservations=tuple(kept))
    seconds = []
    for _ in range(2):
        began = process_time()
        result = emulate(cluster, jobs, plugins, Catalogue(), label=policy)
        seconds.append(process_time() - began)
        assert all(job.start_time is not None for job in result.jobs)
    print(
        f"\nKTH-SP2, {len(jobs)} jobs, {policy} beside {beside}: {len(jobs) / min(seconds):,.0f} jobs/s",
        file=sys.__stderr__,
    )


@pytest.mark.parametrize(
    ("nodes", "pending", "depth"),
    [
        (1_000, 500, None),
        (1_000, 10_000, None),
        (1_000, 50_000, None),
        (10_000, 1_000, None),
        (10_000, 50_000, 1_000),
    ],
)
def test_bookings_of_a_live_cycle(
    nodes: int, pending: int, depth: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten times EASY's cycle is aimed at."""
    monkeypatch.setattr(live, "NODES", nodes)
    monkeypatch.setattr(live, "PENDING", pending)
    load, seconds = Plugins.load, dict[str, list[float]](easy=[], conservative=[])
    policies = {
        "easy": PluginConfig("easy"),
        "conservative": PluginConfig("conservative", {} if depth is None else {"depth": depth}),
    }
    for _ in range(3):
        for name, policy in policies.items():

            def loaded(configs: list[PluginConfig], *more: object, policy: PluginConfig = policy) -> Plugins:
                return load([policy, *configs[1:]], *more)

            monkeypatch.setattr(live.Plugins, "load", staticmethod(loaded))
            scheduler = live.loaded("first-fit", 0.9)
            began = process_time()
            decisions = scheduler.step(live.NOW, [])
            seconds[name].append(process_time() - began)
            assert decisions and not scheduler.problems
    told = ""
    if pending <= 10_000:
        # The owed bookings of a longer queue take half a minute.
        began = process_time()
        bookings = scheduler.views["batch"].bookings
        told = f"; all {len(bookings)} bookings then in {process_time() - began:.2f} s"
    easy, conservative = (1000 * min(took) for took in seconds.values())
    print(
        f"\nlive cycle, conservative{f' (depth {depth})' if depth else ''}, {nodes} nodes, {pending} "
        f"pending: {len(decisions)} starts in {conservative:.0f} ms, {conservative / easy:.1f} times EASY's "
        f"cycle{told}",
        file=sys.__stderr__,
    )
