"""The packing at its largest, and Delayed-LOS over whole traces.

`make bench ARGS="-k los"`; the figures are in docs/papers/los.md.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import pytest

from headway.emulation import emulate
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig
from headway.results import JobResult
from headway.workload import TraceJob, read_swf, trace_jobs
from headway_plugins.policies.packing import basic, pack

pytestmark = pytest.mark.benchmark


def tell(text: str) -> None:
    print(f"\n{text}", file=sys.__stderr__)


@pytest.mark.parametrize("shape", ["any sizes", "small sizes", "halves"])
def test_a_reservation_dp_of_fifty_jobs_on_100000_processors_takes_less_than_5_ms(shape: str) -> None:
    rng = np.random.default_rng(1)
    largest = {"any sizes": 100_000, "small sizes": 2_000, "halves": 50_000}[shape]
    free, room = 99_991, 49_999
    times: dict[str, list[float]] = {"basic": [], "one freeze": [], "two freezes": []}
    for _ in range(50):
        sizes = rng.integers(1, largest, 50).tolist()
        once, twice = rng.integers(0, 2, 50).tolist(), rng.integers(0, 3, 50).tolist()
        began = perf_counter()
        basic(sizes, free)
        times["basic"].append(perf_counter() - began)
        began = perf_counter()
        pack(sizes, once, free, [room])
        times["one freeze"].append(perf_counter() - began)
        began = perf_counter()
        pack(sizes, twice, free, [room, room // 2])
        times["two freezes"].append(perf_counter() - began)
    figures = ", ".join(
        f"{name} {1e3 * float(np.median(taken)):.2f} (longest {1e3 * max(taken):.2f})"
        for name, taken in times.items()
    )
    tell(f"packing 50 jobs, {shape}, ms: {figures}")
    assert np.median(times["basic"]) < 5e-3
    assert np.median(times["one freeze"]) < 5e-3


def workload(trace_dir: Path, pattern: str) -> tuple[list[TraceJob], int]:
    trace = read_swf(next(trace_dir.glob(pattern)))
    assert trace.max_processors is not None
    jobs, _ = trace_jobs(trace, trace.max_processors)
    return jobs, trace.max_processors


def seconds_of(jobs: Sequence[TraceJob], processors: int, policy: str) -> tuple[float, Sequence[JobResult]]:
    """CPU seconds of the loop alone, reading excluded, and the schedule."""
    catalogue = Catalogue()
    began = process_time()
    result = emulate(
        ClusterDescription.flat(processors), jobs, [PluginConfig(policy)], catalogue, label=policy
    )
    return process_time() - began, result.jobs


@pytest.mark.traces
@pytest.mark.parametrize("policy", ["los", "delayed-los", "hybrid-los"])
@pytest.mark.parametrize("pattern", ["KTH-SP2*", "SDSC-BLUE*"])
def test_over_a_whole_trace(trace_dir: Path, pattern: str, policy: str) -> None:
    jobs, processors = workload(trace_dir, pattern)
    points = []
    for share in (0.25, 0.5, 1.0):
        part = jobs[: int(len(jobs) * share)]
        seconds, results = seconds_of(part, processors, policy)
        assert len(results) == len(part)
        points.append((len(part), seconds))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    count, seconds = points[-1]
    tell(
        f"{policy}, {pattern}: {count} jobs in {seconds:.2f} s = {count / seconds:,.0f} jobs/s; microseconds "
        f"a job: {', '.join(f'{n}: {1e6 * s / n:.0f}' for n, s in points)}; peak memory {peak:.0f} MB"
    )
    if pattern == "KTH-SP2*" and policy != "hybrid-los":
        assert count / seconds >= 5000
    assert peak < 500
