"""What nodes cost: KTH-SP2 with its sizes scaled, on so many nodes of one processor.

`make bench ARGS="-k scaled_nodes"`; the figures are in docs/performance.md. HEADWAY_JOBS: how many jobs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from time import process_time

import msgspec
import pytest

from headway.emulation import emulate
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig
from headway.workload import read_swf, trace_jobs
from headway.workload.jobs import TraceJob

pytestmark = [pytest.mark.benchmark, pytest.mark.traces]

JOBS = int(os.environ.get("HEADWAY_JOBS", "4000"))
SIZES = (25, 100, 1_000, 10_000)


def scaled(jobs: Sequence[TraceJob], factor: float) -> list[TraceJob]:
    """The jobs with so many times their processors."""
    return [
        msgspec.structs.replace(
            one,
            job=msgspec.structs.replace(
                one.job,
                request=msgspec.structs.replace(
                    one.job.request, processors=max(1, round(one.job.request.processors * factor))
                ),
            ),
        )
        for one in jobs
    ]


@pytest.mark.parametrize(
    ("policy", "placement"),
    [
        ("easy", "first-fit"),
        ("easy", "best-fit"),
        ("easy", "tree"),
        ("conservative", "first-fit"),
        ("conservative", "best-fit"),
        ("conservative", "tree"),
    ],
)
def test_scaled_nodes(trace_dir: Path, policy: str, placement: str) -> None:
    """At 10,000 nodes at most four times the cost of 100 nodes is aimed at."""
    trace = read_swf(next(trace_dir.glob("KTH-SP2*")))
    assert trace.max_processors is not None
    jobs, _ = trace_jobs(trace, trace.max_processors)
    costs = []
    for nodes in SIZES:
        cluster = ClusterDescription.flat(nodes).in_nodes()
        workload = scaled(jobs[:JOBS], nodes / trace.max_processors)
        plugins = [PluginConfig(policy), PluginConfig(placement)]
        began = process_time()
        result = emulate(cluster, workload, plugins, Catalogue(), label=policy)
        costs.append((process_time() - began) / len(workload) * 1e6)
        assert all(job.start_time is not None for job in result.jobs)
    told = ", ".join(f"{nodes:,} nodes {cost:,.0f}" for nodes, cost in zip(SIZES, costs, strict=True))
    print(
        f"\nKTH-SP2 scaled, {policy}, {placement}: us a job: {told}; 10,000 nodes / 100 nodes: "
        f"{costs[3] / costs[1]:.1f}",
        file=sys.__stderr__,
    )
