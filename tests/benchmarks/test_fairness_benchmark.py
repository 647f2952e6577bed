"""What it takes to say how unfair a run of a whole trace was: seconds by the clock, and of a processor."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from time import perf_counter

import numpy as np
import pytest

from headway.emulation import emulate
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig
from headway.results import RunResult
from headway.workload import read_swf, trace_jobs
from headway_plugins.fairness.starts import by_definition

pytestmark = [pytest.mark.benchmark, pytest.mark.traces]

BLUE = "SDSC-BLUE-2000-4.1-cln.swf.gz"
#: Jobs whose fair starts are held against a run of all that came before them.
CHECKED = (1_000, 5_000, 20_000)
HEADWAY = (sys.executable, "-c", "from headway.cli import main; main()")


def dry_run(what: str, trace: Path, out: Path, kept: Path, *more: str) -> None:
    """As a user's command: the tests' own environment would have nothing compiled."""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_DISABLE_JIT"}
    words = ["dry-run", "--trace", str(trace), "--policy", "easy", *more, "--out", str(out)]
    used, began = getrusage(RUSAGE_CHILDREN), perf_counter()
    subprocess.run(
        [*HEADWAY, *words], check=True, stdout=subprocess.DEVNULL, timeout=600,
        env={**environment, "NUMBA_CACHE_DIR": str(kept)},
    )  # fmt: skip
    took, now = perf_counter() - began, getrusage(RUSAGE_CHILDREN)
    spent = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    print(f"\n{what}: {took:.1f} s by the clock, {spent:.1f} s of a processor", end="", flush=True)


def easy(trace_file: Path) -> RunResult:
    trace = read_swf(trace_file)
    assert trace.max_processors is not None
    jobs, _ = trace_jobs(trace, trace.max_processors)
    cluster = ClusterDescription.flat(trace.max_processors)
    return emulate(cluster, jobs, [PluginConfig("easy")], Catalogue(), label="easy")


def test_all_measures_of_sdsc_blue_under_easy(trace_dir: Path, tmp_path: Path) -> None:
    trace, kept = trace_dir / BLUE, tmp_path / "compiled"
    dry_run("without fairness", trace, tmp_path / "without", kept)
    for what in ("with it, compiling included", "with it, compiled before"):
        dry_run(what, trace, tmp_path / "out", kept, "--with", "fairness")
    with open(tmp_path / "out" / "jobs.csv", newline="") as stream:
        told = {row["job_id"]: row for row in csv.DictReader(stream)}
    result = easy(trace)
    assert len(told) == len(result.jobs)
    exact = by_definition(result, only=CHECKED)
    known = np.flatnonzero(~np.isnan(exact.strict))
    assert len(known) == len(CHECKED)
    for at in known:
        row = told[result.jobs[at].job.id]
        assert float(row["fair_start_strict"]) == exact.strict[at]
        assert float(row["fair_start_relaxed"]) == exact.relaxed[at]
