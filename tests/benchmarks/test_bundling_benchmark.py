"""KTH-SP2 whole with every job of 8 processors or more elastic: under a minute on one core; and single
elastic jobs forked from one run: at least 20 a second on two.

`make bench ARGS="-s -k bundling"` tells the figures.
"""

import os
import sys
from time import perf_counter, process_time

import numpy as np
import pytest

from headway.emulation import emulate
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig
from headway.workload import read_swf, trace_jobs
from headway_plugins.reproductions.ejb_measures import LEAST, counted, load, run_all
from headway_plugins.reproductions.ejb_single import run_singles

pytestmark = [pytest.mark.benchmark, pytest.mark.traces]


def test_kth_with_every_job_elastic(trace_dir):
    trace = read_swf(next(trace_dir.glob("KTH*")))
    jobs, _ = trace_jobs(trace, 100)
    catalogue = Catalogue()
    configs = catalogue.enabled([PluginConfig("ejb", {})])
    began = process_time()
    result = emulate(ClusterDescription.flat(100), jobs, configs, catalogue, label="ejb")
    seconds = process_time() - began
    bundled = sum(bool(job.members) for job in result.jobs)
    print(f"\nejb, KTH-SP2: {len(jobs)} jobs, {bundled} bundles in {seconds:.1f} s", file=sys.__stderr__)
    assert seconds < 60


def test_single_elastic_jobs(trace_dir):
    """The replay that they are forked from is in it, as in the experiments."""
    jobs, size = load(next(trace_dir.glob("KTH*")))
    before = run_all(jobs, size, "easy")
    waited = (before.start > before.submit) & (before.processors >= LEAST) & counted(before)
    rows = np.random.default_rng(1).choice(np.flatnonzero(waited), 400, replace=False)
    targets = [jobs[row].job.id for row in rows.tolist()]
    began, used = perf_counter(), sum(os.times()[:4])
    found = run_singles(size, jobs, targets, {"defaults": {}}, 2)
    wall, cpu = perf_counter() - began, sum(os.times()[:4]) - used
    print(
        f"\nsingle elastic jobs, KTH-SP2: {len(found)} runs in {wall:.1f} s by two processes, {cpu:.1f} s of "
        f"CPU: {len(found) / wall:.0f} a second; two cores of their own: {2 * len(found) / cpu:.0f} a second",
        file=sys.__stderr__,
    )  # fmt: skip
    assert len({single.job_id for single in found}) == 400
