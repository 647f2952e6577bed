"""What estimates cost: a million jobs, and the study of a large trace; seconds of the processor."""

from __future__ import annotations

import time

import numpy as np
import pytest
from click.testing import CliRunner

from headway.cli.generate import command as generate
from headway.experiment.estimates import chosen_model
from headway.plugins import Catalogue
from headway.workload import RunJobs, read_trace
from headway.workload.analysis import study

pytestmark = pytest.mark.benchmark

JOBS = 1_000_000


def test_a_million_jobs_are_generated_with_estimates(tmp_path):
    """`headway generate`, the file written."""
    file = tmp_path / "log.swf"
    begun = time.process_time()
    found = CliRunner().invoke(
        generate, ["lublin", "--set", f"jobs={JOBS}", "--estimates", "tsafrir05", "-o", str(file)]
    )
    spent = time.process_time() - begun
    print(f"lublin with tsafrir05: {JOBS:,} jobs in {spent:.2f} s")
    assert found.exit_code == 0, found.output
    assert f"estimates of {JOBS:,} of {JOBS:,} jobs" in found.output
    assert spent < 20


def test_estimates_of_a_million_jobs():
    rng = np.random.default_rng(1)
    count = 1_000_000
    runtime = np.minimum(np.rint(rng.lognormal(6.5, 2.0, count)), 18 * 3600.0)
    jobs = RunJobs(runtime, np.full(count, np.nan), np.arange(count, dtype=np.float64), np.full(count, -1))
    chosen = chosen_model(Catalogue(), "tsafrir05", {"maximum": "18h"}, "benchmark")
    begun = time.process_time()
    found = chosen.model.estimates(np.random.default_rng(1), jobs, chosen.options)
    spent = time.process_time() - begun
    print(f"tsafrir05: {count:,} estimates in {spent:.2f} s")
    assert (found.seconds >= runtime).all()
    assert spent < 10


@pytest.mark.traces
def test_the_study_of_sdsc_blue(trace_dir):
    trace = read_trace(trace_dir / "SDSC-BLUE-2000-4.1-cln.swf.gz")
    begun = time.process_time()
    study(trace)
    spent = time.process_time() - begun
    print(f"study of SDSC-BLUE, {len(trace):,} jobs: {spent:.2f} s")
    assert spent < 5
