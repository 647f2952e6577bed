"""What limits cost where most of the queue is over one, against EASY without any.

`make bench ARGS="-s -k limits"`; the figures are in docs/performance.md.
"""

from __future__ import annotations

from pathlib import Path
from time import process_time
from typing import Any

import pytest

from headway.emulation import emulate
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig
from headway.workload import read_trace, trace_jobs

pytestmark = pytest.mark.benchmark

JOBS = 3000
LIMITS: dict[str, Any] = {
    "of": {
        "user": {"*": {"jobs": 10, "processors": 64}},
        "group": {"*": {"processors": 90}},
    }
}


@pytest.mark.traces
def test_limits_that_keep_most_of_a_queue_out(trace_dir: Path) -> None:
    trace = read_trace(trace_dir / "SDSC-BLUE-2000-4.1-cln.swf.gz")
    jobs = trace_jobs(trace, trace.max_processors)[0][:JOBS]
    cluster = ClusterDescription.flat(trace.max_processors)
    took = {}
    for label, plugins in {"easy": [], "limits": [PluginConfig("limits", LIMITS)]}.items():
        began = process_time()
        emulate(cluster, jobs, [*plugins, PluginConfig("easy")], Catalogue(), label=label)
        took[label] = process_time() - began
        print(f"{label}: {took[label]:.2f} s of CPU, {JOBS / took[label]:,.0f} jobs/s")
    assert took["limits"] < 60 * took["easy"]


#: Jobs of the trace under a whole site's policy, and what there is of it.
WHOLE = 10_000
POLICY: dict[str, list[PluginConfig]] = {
    "easy": [],
    "limits": [PluginConfig("limits", {"of": {
        "user": {"*": {"jobs": 10, "processors": 576}}, "group": {"*": {"processors": 864}},
    }})],
    "priorities": [
        PluginConfig("multifactor", {"weights": {
            "age": 1000, "fairshare": 10_000, "size": 1000, "pool": 1000, "qos": 1000,
        }}),
        PluginConfig("fair-tree"),
    ],
}  # fmt: skip


@pytest.mark.traces
def test_a_whole_policy_over_a_trace(trace_dir: Path) -> None:
    trace = read_trace(trace_dir / "SDSC-BLUE-2000-4.1-cln.swf.gz")
    jobs = trace_jobs(trace, trace.max_processors)[0][:WHOLE]
    cluster = ClusterDescription.flat(trace.max_processors)
    configured = {**POLICY, "limits and priorities": POLICY["limits"] + POLICY["priorities"]}
    for label, plugins in configured.items():
        took = float("inf")
        for _ in range(2):
            began = process_time()
            result = emulate(cluster, jobs, [*plugins, PluginConfig("easy")], Catalogue(), label=label)
            took = min(took, process_time() - began)
            assert len(result.jobs) == WHOLE
        print(f"{label}: {took:.2f} s of CPU, {WHOLE / took:,.0f} jobs/s")


@pytest.mark.traces
def test_a_whole_policy_over_four_times_the_jobs(trace_dir: Path) -> None:
    """Whether a job costs more in a longer run: each quarter is run by itself, too, since quarters differ."""
    trace = read_trace(trace_dir / "SDSC-BLUE-2000-4.1-cln.swf.gz")
    jobs = trace_jobs(trace, trace.max_processors)[0]
    cluster = ClusterDescription.flat(trace.max_processors)
    plugins = [*POLICY["limits"], *POLICY["priorities"], PluginConfig("easy")]
    quarters = [(at * WHOLE, (at + 1) * WHOLE) for at in range(4)]
    took = dict.fromkeys([*quarters, (0, 4 * WHOLE)], float("inf"))
    for _ in range(2):
        for begin, end in took:
            began = process_time()
            result = emulate(cluster, jobs[begin:end], plugins, Catalogue(), label="whole")
            took[begin, end] = min(took[begin, end], process_time() - began)
            assert len(result.jobs) == end - begin
    for (begin, end), seconds in took.items():
        each = 1e6 * seconds / (end - begin)
        print(f"jobs {begin:,} to {end:,}: {seconds:.2f} s of CPU, {each:.0f} microseconds a job")
