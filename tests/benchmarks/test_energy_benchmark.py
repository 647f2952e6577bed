"""What energy costs: accounting over whole runs, and the plugins' cycles on 10,000 nodes.

`make bench ARGS="-k energy"`; the figures are in docs/performance.md.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pytest

from headway.decisions import Decision, SetFrequency
from headway.emulation import emulate
from headway.energy.profiles import load_profile, with_energy
from headway.events import (
    Event,
    JobEnded,
    JobFrequencyChanged,
    JobStarted,
    JobSubmitted,
    NodePowerChanged,
    in_order,
)
from headway.metrics import summarise
from headway.model import ClusterDescription, JobDescription, NodeDescription, PoolDescription, Request
from headway.plugins import Catalogue, PluginConfig, Plugins
from headway.results import RunResult
from headway.scheduler import Scheduler
from headway.workload import TraceJob, read_swf, trace_jobs
from headway_adapters.emulated import EmulatedAdapter

pytestmark = pytest.mark.benchmark

ROUNDS = 3
JOBS = 50_000
PRESENT = load_profile("present-day")


# ---------------------------------------------------------------------- accounting


def run_seconds(cluster: ClusterDescription, jobs: Sequence[TraceJob]) -> tuple[float, float]:
    """CPU seconds of the loop, and of its metrics."""
    catalogue = Catalogue()
    configs = [PluginConfig("easy"), PluginConfig("first-fit")]
    began = process_time()
    result = emulate(cluster, jobs, configs, catalogue, label="easy")
    between = process_time()
    summary = summarise(result)
    assert (summary["energy"] is None) == (cluster.energy is None)
    return between - began, process_time() - between


def machine(processors: int, per_node: int) -> ClusterDescription:
    """A flat machine, or one of nodes of so many processors."""
    if not per_node:
        return ClusterDescription.flat(processors)
    nodes = tuple(
        NodeDescription(f"n{at}", per_node, pools=("pool",)) for at in range(-(-processors // per_node))
    )
    return ClusterDescription("nodes", (PoolDescription("pool"),), nodes)


@pytest.mark.traces
@pytest.mark.parametrize(
    ("pattern", "per_node", "limit"),
    [("KTH-SP2*", 0, JOBS), ("SDSC-BLUE*", 0, JOBS), ("KTH-SP2*", 4, 10_000)],
    ids=["KTH-flat", "SDSC-flat", "KTH-nodes"],
)
def test_energy_accounting(trace_dir: Path, pattern: str, per_node: int, limit: int) -> None:
    trace = read_swf(next(trace_dir.glob(pattern)))
    assert trace.max_processors is not None
    jobs, _ = trace_jobs(trace, trace.max_processors, limit=limit)
    plain = machine(trace.max_processors, per_node)
    metered = with_energy(plain, PRESENT)
    without, with_ = [], []
    for _ in range(ROUNDS):
        without.append(run_seconds(plain, jobs))
        with_.append(run_seconds(metered, jobs))
    before, after = min(map(sum, without)), min(map(sum, with_))
    loops, metrics = (min(column) for column in zip(*with_, strict=True))
    print(
        f"\n{pattern} {'nodes' if per_node else 'flat'}, {len(jobs)} jobs: {before:.2f} s without a profile, "
        f"{after:.2f} s with one, {after / before - 1:+.1%} (loop {loops:.2f}, metrics {metrics:.2f} s)",
        file=sys.__stderr__,
    )


# ---------------------------------------------------------------------- one live cycle

NODES, PROCESSORS = 10_000, 64
HOUR = 3600.0
#: Midnight of a day, absolute seconds.
MIDNIGHT = 11_000 * 86_400.0


@pytest.fixture(autouse=True)
def _processor_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plugins are billed by the processor's clock: other work on the machine is not theirs."""
    monkeypatch.setattr("headway.plugins.calls.perf_counter", process_time)


def loaded(
    plugin: PluginConfig, *, running: int, waiting: int, asleep: int = 0, width: int = 0
) -> tuple[Scheduler, float]:
    """A scheduler with 10,000 nodes that knows what runs, waits and sleeps, and its clock.

    ``width``: nodes of a running job; 0: together they fill those that are on.
    """
    rng = np.random.default_rng(1)
    nodes = tuple(NodeDescription(f"n{at}", PROCESSORS, pools=("batch",)) for at in range(NODES))
    cluster = with_energy(ClusterDescription("big", (PoolDescription("batch"),), nodes), PRESENT)
    plugins = Plugins.load([PluginConfig("easy"), PluginConfig("first-fit"), plugin], Catalogue(), None)
    scheduler = Scheduler(cluster, plugins, capabilities=EmulatedAdapter.capable_of(cluster))
    now = MIDNIGHT + 7 * HOUR
    width = width or (NODES - asleep) // running
    events: list[Event] = []
    for at in range(running):
        request = Request(PROCESSORS * width, float(rng.integers(5, 48)) * HOUR, nodes=width)
        events.append(JobSubmitted(now - 2 * HOUR, JobDescription(f"r{at}", now - 2 * HOUR, request)))
        placement = tuple((f"n{node}", PROCESSORS) for node in range(at * width, (at + 1) * width))
        events.append(JobStarted(now - HOUR + at * 0.1, f"r{at}", placement))
    for at in range(waiting):
        submit = now - 2 * HOUR + at * 0.01
        request = Request(int(2 ** rng.integers(0, 10)), float(rng.integers(1, 20)) * HOUR)
        events.append(JobSubmitted(submit, JobDescription(f"q{at}", submit, request)))
    events += [NodePowerChanged(now - HOUR, f"n{NODES - 1 - at}", "asleep") for at in range(asleep)]
    scheduler.step(now, in_order(events))
    assert not scheduler.problems
    return scheduler, now


def _sets(decision: Decision) -> bool:
    return isinstance(decision, SetFrequency)


def of_plugin(scheduler: Scheduler, name: str, now: float, events: Sequence[Event]) -> tuple[float, Any]:
    """Seconds in the plugin during a step, and the decisions."""
    before = scheduler.seconds[name]
    decisions = scheduler.step(now, events)
    assert not scheduler.problems
    return scheduler.seconds[name] - before, decisions


def told(what: str, rounds: Sequence[float], detail: str) -> None:
    print(f"\n{what}: {1000 * min(rounds):.1f} ms ({detail})", file=sys.__stderr__)


WINDOWS = [
    {"from": "08:00", "to": "20:00", "watts": 2_000_000},
    {"from": "12:00", "to": "13:00", "days": ["mon", "tue", "wed", "thu", "fri"], "watts": 1_800_000},
]
CAP = PluginConfig("power-cap", {"watts": 6_000_000, "windows": WINDOWS})


@pytest.mark.parametrize("running", [1_000, 5_000])
def test_energy_a_power_cap_when_its_window_opens_and_closes(running: int) -> None:
    opened, closed, quiet = [], [], []
    for _ in range(ROUNDS):
        scheduler, _ = loaded(CAP, running=running, waiting=0)
        seconds, slowed = of_plugin(scheduler, "power-cap", MIDNIGHT + 8 * HOUR, [])
        assert len(slowed) >= running
        opened.append(seconds)
        done = MIDNIGHT + 8 * HOUR + 10
        scheduler.step(done, [JobFrequencyChanged(done, d.job_id, d.frequency) for d in slowed if _sets(d)])
        seconds, more = of_plugin(scheduler, "power-cap", MIDNIGHT + 9 * HOUR, [])
        assert not more
        quiet.append(seconds)
        seconds, restored = of_plugin(scheduler, "power-cap", MIDNIGHT + 20 * HOUR, [])
        assert len(restored) >= running
        closed.append(seconds)
    told(f"power cap, {running} running jobs, a window opens", opened, f"{len(slowed)} decisions")
    told(f"power cap, {running} running jobs slowed, nothing happens", quiet, "0 decisions")
    told(f"power cap, {running} running jobs, the window closes", closed, f"{len(restored)} decisions")


def arrivals(now: float, count: int) -> list[Event]:
    jobs = [JobDescription(f"s{at}", now, Request(PROCESSORS, HOUR + at, nodes=1)) for at in range(count)]
    return [JobSubmitted(now, job) for job in jobs]


def test_energy_a_power_cap_with_starts() -> None:
    first, common = [], []
    for _ in range(ROUNDS):
        scheduler, now = loaded(CAP, running=2_500, waiting=0)
        ended: list[Event] = [JobEnded(now + 1, f"r{at}", "completed") for at in range(250)]
        seconds, decisions = of_plugin(scheduler, "power-cap", now + 1, [*ended, *arrivals(now + 1, 1_000)])
        assert len(decisions) == 1_000
        first.append(seconds)
        ended = [JobEnded(now + 2, f"r{at}", "completed") for at in range(250, 260)]
        seconds, _ = of_plugin(scheduler, "power-cap", now + 2, ended)
        common.append(seconds)
    told("power cap, 2,500 running jobs, 250 end", first, "1,000 arrivals, which start")
    told("power cap, 2,500 running jobs, ten end", common, "a common cycle")


@pytest.mark.parametrize("overtake", [False, True])
def test_energy_a_power_cap_that_delays(overtake: bool) -> None:
    # What 2,000 running jobs on 8,000 of the nodes draw, and nearly what one more would.
    drawn = NODES * 170.8 + 8_000 * PROCESSORS * 4.0
    cap = PluginConfig("power-cap", {"watts": drawn + 50, "overtake": overtake})
    rounds = []
    for _ in range(ROUNDS):
        scheduler, now = loaded(cap, running=2_000, waiting=0, asleep=0, width=4)
        seconds, decisions = of_plugin(scheduler, "power-cap", now + 1, arrivals(now + 1, 1_000))
        assert not decisions
        rounds.append(seconds)
    told(f"power cap that delays 1,000 starts, overtake {overtake}", rounds, "0 decisions")


@pytest.mark.traces
def test_energy_a_tight_power_cap_on_nodes(trace_dir: Path) -> None:
    """What a cap costs that is a share of the highest power without one: the first 900 jobs of KTH-SP2."""
    trace = read_swf(next(trace_dir.glob("KTH-SP2*")))
    jobs, _ = trace_jobs(trace, 100, limit=900)
    cluster = with_energy(machine(100, 4), PRESENT)
    policies = ("easy", "conservative")

    def capped(policy: str, watts: float | None) -> tuple[float, RunResult]:
        cap = [PluginConfig("power-cap", {"watts": watts})] if watts else []
        configs = [PluginConfig(policy), PluginConfig("first-fit"), *cap]
        began = process_time()
        result = emulate(cluster, jobs, configs, Catalogue(), label=policy)
        return process_time() - began, result

    highest = summarise(capped("easy", None)[1])["energy"]["peak_power"]
    print(f"\nhighest power without a cap: {highest:,.0f} W", file=sys.__stderr__)
    for share in (None, 0.98, 0.96, 0.94):
        watts = share and share * highest
        seconds: dict[str, list[float]] = {policy: [] for policy in policies}
        waits = {}
        for _ in range(ROUNDS):
            for policy in policies:
                spent, result = capped(policy, watts)
                seconds[policy].append(spent)
                assert all(job.state == "completed" for job in result.jobs)
                waits[policy] = np.mean([job.start_time - job.job.submit_time for job in result.jobs])
        for policy in policies:
            least = min(seconds[policy])
            ratio = least / min(seconds["easy"])
            print(
                f"cap {share or 'none'}, {policy}: {least:.2f} s, {ratio:.1f} times EASY, "
                f"mean wait {waits[policy]:,.0f} s",
                file=sys.__stderr__,
            )


def test_energy_power_down_on_many_nodes() -> None:
    plugin = PluginConfig("power-down", {"idle": 600})
    first, common, queued = [], [], []
    for _ in range(ROUNDS):
        scheduler, now = loaded(plugin, running=2_000, waiting=0, asleep=4_000)
        seconds, _ = of_plugin(scheduler, "power-down", now + 1, [])
        common.append(seconds)
        events = [JobEnded(now + 2, f"r{at}", "completed") for at in range(1_000)]
        of_plugin(scheduler, "power-down", now + 2, events)
        seconds, slept = of_plugin(scheduler, "power-down", now + 700, [])
        assert slept
        first.append(seconds)
        jobs = [
            JobDescription(f"s{at}", now + 701, Request(PROCESSORS * 40, HOUR, nodes=40)) for at in range(500)
        ]
        seconds, woken = of_plugin(
            scheduler, "power-down", now + 701, [JobSubmitted(now + 701, job) for job in jobs]
        )
        assert woken
        queued.append(seconds)
    told("power-down, 4,000 nodes asleep, nothing happens", common, "0 decisions")
    told("power-down, 3,000 nodes fall asleep", first, f"{len(slept[0].nodes)} nodes")
    told("power-down, 500 jobs of 40 nodes wait", queued, f"{len(woken)} decisions")
