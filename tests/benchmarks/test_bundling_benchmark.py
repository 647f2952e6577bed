"""KTH-SP2 whole with every job of 8 processors or more elastic: under a minute on one core.

`make bench ARGS="-s -k bundling"` tells the figures.
"""

import sys
from time import process_time

import pytest

from headway.emulation import emulate
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig
from headway.workload import read_swf, trace_jobs

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
