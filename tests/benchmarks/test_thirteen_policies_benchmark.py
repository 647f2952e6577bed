"""The thirteen policies of Chandio and others (2014) over a whole trace, jobs a second in the loop.

`make bench ARGS="-k thirteen"`; the figures are in docs/performance.md.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from time import process_time

import pytest

from headway.emulation import emulate
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig
from headway.workload import TraceJob, read_swf, trace_jobs

pytestmark = [pytest.mark.benchmark, pytest.mark.traces]

THIRTEEN = (
    "fcfs", "sjf", "ljf", "minet", "maxet", "fcfs-ff", "sjf-ff", "ljf-ff", "minet-ff", "maxet-ff",
    "window-k", "easy", "k-reserved",
)  # fmt: skip

#: How often each is run; the best counts.
ROUNDS = int(os.environ.get("HEADWAY_BENCH_ROUNDS", "2"))


@pytest.fixture(scope="module")
def workload(trace_dir: Path) -> tuple[list[TraceJob], int]:
    trace = read_swf(next(trace_dir.glob("SDSC-BLUE*")))
    assert trace.max_processors is not None
    jobs, _ = trace_jobs(trace, trace.max_processors)
    return jobs, trace.max_processors


@pytest.mark.parametrize("cycle", [None, 10.0], ids=["event-driven", "every-10-s"])
@pytest.mark.parametrize("policy", THIRTEEN)
def test_thirteen_over_a_whole_trace(
    workload: tuple[list[TraceJob], int], policy: str, cycle: float | None
) -> None:
    jobs, processors = workload
    catalogue = Catalogue()
    best = float("inf")
    for _ in range(ROUNDS):
        began = process_time()
        result = emulate(
            ClusterDescription.flat(processors),
            jobs,
            catalogue.enabled([PluginConfig(policy)]),
            catalogue,
            label=policy,
            cycle=cycle,
        )
        best = min(best, process_time() - began)
        assert len(result.jobs) == len(jobs)
        assert all(job.start_time is not None for job in result.jobs)
    print(
        f"\n{policy}, {'event-driven' if cycle is None else f'every {cycle:g} s'}: {len(jobs)} jobs in "
        f"{best:.2f} s = {len(jobs) / best:,.0f} jobs/s, {result.cycles} cycles",
        file=sys.__stderr__,
    )
