"""Several emulated clusters with one clock beside one cluster of their size with the same jobs."""

from __future__ import annotations

import time

import msgspec
import numpy as np
import pytest

from headway.emulation import emulate
from headway.model import ClusterDescription, JobDescription, PoolDescription, Request, Site, Sites
from headway.plugins import Catalogue, PluginConfig
from headway.results import RunResult
from headway.workload.jobs import TraceJob

pytestmark = pytest.mark.benchmark

JOBS, PROCESSORS, TURNS = 40_000, 256, 5


def workload(clusters: int, seed: int = 1) -> list[TraceJob]:
    """Jobs of 1 to 64 processors for clusters in turn, at a load of about 0.8."""
    rng = np.random.default_rng(seed)
    sizes, seconds = 2 ** rng.integers(0, 7, JOBS), rng.integers(60, 3600, JOBS)
    gap = float((sizes * seconds).mean()) / (0.8 * PROCESSORS * clusters)
    submits = np.cumsum(rng.exponential(gap, JOBS))
    return [
        TraceJob(
            JobDescription(f"c{at % clusters}:{at}", float(submit), Request(int(size), 2.0 * run),
                           pool=f"c{at % clusters}:q"),
            float(run),
        )
        for at, (submit, size, run) in enumerate(zip(submits, sizes, seconds, strict=True))
    ]  # fmt: skip


def federation(clusters: int) -> ClusterDescription:
    names = [f"c{at}" for at in range(clusters)]
    pools = tuple(PoolDescription(f"{name}:q", PROCESSORS) for name in names)
    return ClusterDescription("all", pools, sites=Sites(tuple(Site(name, (f"{name}:q",)) for name in names)))


def run(
    cluster: ClusterDescription, jobs: list[TraceJob], catalogue: Catalogue, *, direct: bool = True
) -> tuple[float, RunResult]:
    began = time.process_time()
    result = emulate(cluster, jobs, [PluginConfig("easy", {})], catalogue, label="easy", direct=direct)
    return time.process_time() - began, result


def test_eight_clusters_beside_one_with_the_same_jobs():
    catalogue = Catalogue()
    one = ClusterDescription.flat(8 * PROCESSORS, pool="q")
    jobs = workload(8)
    at_one = [msgspec.structs.replace(j, job=msgspec.structs.replace(j.job, pool="q")) for j in jobs]
    ratios, with_one_account, rates = [], [], []
    for _ in range(TURNS):
        alone, result = run(one, at_one, catalogue, direct=False)
        quick, _ = run(one, at_one, catalogue)
        several, federated = run(federation(8), jobs, catalogue)
        ratios.append(alone / several)
        with_one_account.append(quick / several)
        rates.append(JOBS / several)
        assert {job.state for job in (*result.jobs, *federated.jobs)} == {"completed"}
    print(
        f"\nEASY, {JOBS} jobs, eight emulated clusters: {np.median(rates):,.0f} jobs/s, "
        f"{np.median(ratios):.2f} of one cluster of their size with two accounts "
        f"({min(ratios):.2f} to {max(ratios):.2f}), {np.median(with_one_account):.2f} of it with one"
    )
