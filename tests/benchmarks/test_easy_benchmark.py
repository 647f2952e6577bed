"""EASY over whole traces: jobs a second in the loop, against the bare loop in the same run.

`make bench ARGS="-k easy"`; the figures are in docs/performance.md.
"""

from __future__ import annotations

import gc
import resource
import sys
from collections.abc import Sequence
from pathlib import Path
from time import process_time

import pytest
from bare_easy import bare_easy

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


def bare_seconds(jobs: Sequence[TraceJob], processors: int) -> tuple[float, Sequence[JobResult]]:
    gc.collect()
    began = process_time()
    results = bare_easy(jobs, processors)
    return process_time() - began, results


@pytest.mark.parametrize("pattern", ["SDSC-BLUE*", "KTH-SP2*", "HPC2N*"])
def test_easy_over_a_whole_trace(trace_dir: Path, pattern: str, record_property: pytest.FixtureRequest) -> None:
    jobs, processors = workload(trace_dir, pattern)
    ours, bare = [], []
    for _ in range(ROUNDS):
        seconds, expected = bare_seconds(jobs, processors)
        bare.append(seconds)
        seconds, schedule = headway_seconds(jobs, processors)
        ours.append(seconds)
        assert [(r.job.id, r.start_time, r.end_time, r.state) for r in schedule] == [
            (r.job.id, r.start_time, r.end_time, r.state) for r in expected
        ]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"\n{pattern}: {len(jobs)} jobs; headway {min(ours):.2f} s = {len(jobs) / min(ours):,.0f} jobs/s; "
        f"bare {min(bare):.2f} s; speed against bare {min(bare) / min(ours):.2f}; peak memory {peak:.0f} MB",
        file=sys.__stderr__,
    )


def test_time_is_linear_in_the_number_of_jobs(trace_dir: Path) -> None:
    jobs, processors = workload(trace_dir, "SDSC-BLUE*")
    points = []
    for share in (0.25, 0.5, 1.0):
        part = jobs[: int(len(jobs) * share)]
        seconds = min(headway_seconds(part, processors)[0] for _ in range(2))
        points.append((len(part), seconds))
    print(
        "\nSDSC-BLUE, microseconds a job: "
        + ", ".join(f"{n} jobs: {1e6 * s / n:.1f}" for n, s in points),
        file=sys.__stderr__,
    )
