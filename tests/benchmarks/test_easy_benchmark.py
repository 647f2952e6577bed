"""EASY over whole traces: jobs a second in the loop, against the bare loop in the same run.

`make bench ARGS="-k easy"`; the figures are in docs/performance.md.
"""

from __future__ import annotations

import gc
import resource
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time

import pytest
from bare_easy import plain_easy, tuned_easy

from headway.emulation import emulate
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig
from headway.results import JobResult
from headway.workload import TraceJob, read_swf, trace_jobs

pytestmark = [pytest.mark.benchmark, pytest.mark.traces]

ROUNDS = 3


def workload(trace_dir: Path, pattern: str) -> tuple[list[TraceJob], int]:
    trace = read_swf(next(trace_dir.glob(pattern)))
    assert trace.max_processors is not None
    jobs, _ = trace_jobs(trace, trace.max_processors)
    return jobs, trace.max_processors


def headway_seconds(jobs: Sequence[TraceJob], processors: int) -> tuple[float, Sequence[JobResult]]:
    """CPU seconds of the loop alone, reading excluded, and the schedule."""
    catalogue = Catalogue()
    began = process_time()
    result = emulate(
        ClusterDescription.flat(processors), jobs, [PluginConfig("easy")], catalogue, label="easy"
    )
    return process_time() - began, result.jobs


def bare_seconds(
    bare: Callable[[Sequence[TraceJob], int], list[JobResult]], jobs: Sequence[TraceJob], processors: int
) -> tuple[float, Sequence[JobResult]]:
    """CPU seconds of a loop without framework, and its schedule."""
    gc.collect()
    began = process_time()
    results = bare(jobs, processors)
    return process_time() - began, results


@pytest.mark.parametrize("pattern", ["SDSC-BLUE*", "HPC2N*", "CTC-SP2*", "SDSC-SP2*", "KTH-SP2*"])
def test_easy_over_a_whole_trace(trace_dir: Path, pattern: str) -> None:
    jobs, processors = workload(trace_dir, pattern)
    ours, plain, tuned = [], [], []
    for _ in range(ROUNDS):
        seconds, expected = bare_seconds(plain_easy, jobs, processors)
        plain.append(seconds)
        seconds, same = bare_seconds(tuned_easy, jobs, processors)
        tuned.append(seconds)
        seconds, schedule = headway_seconds(jobs, processors)
        ours.append(seconds)
        rows = [(r.job.id, r.start_time, r.end_time, r.state) for r in expected]
        assert [(r.job.id, r.start_time, r.end_time, r.state) for r in same] == rows
        assert [(r.job.id, r.start_time, r.end_time, r.state) for r in schedule] == rows
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"\n{pattern}: {len(jobs)} jobs; headway {min(ours):.2f} s = {len(jobs) / min(ours):,.0f} jobs/s; "
        f"plain loop {min(plain):.2f} s, speed against it {min(plain) / min(ours):.2f}; "
        f"tuned loop {min(tuned):.2f} s, speed against it {min(tuned) / min(ours):.2f}; "
        f"peak memory of the process {peak:.0f} MB",
        file=sys.__stderr__,
    )


def test_time_is_linear_in_the_number_of_jobs(trace_dir: Path) -> None:
    jobs, processors = workload(trace_dir, "SDSC-BLUE*")
    points = []
    for share in (0.25, 0.5, 1.0):
        part = jobs[: int(len(jobs) * share)]
        seconds = min(headway_seconds(part, processors)[0] for _ in range(2))
        points.append((len(part), seconds))
    figures = ", ".join(f"{n} jobs: {1e6 * s / n:.1f}" for n, s in points)
    print(f"\nSDSC-BLUE, microseconds a job: {figures}", file=sys.__stderr__)
