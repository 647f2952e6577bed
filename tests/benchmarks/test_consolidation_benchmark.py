"""KEASY, REASY and MEASY over generated workloads, 320 processors, sharing and moves emulated.

`make bench ARGS="-s -k consolidation"` tells the figures. A machine that is busy makes all of them worse, so
each has beside it how often the time of EASY without a framework it is, measured right before over the same
jobs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from time import process_time

import numpy as np
import pytest
from bare_easy import tuned_easy

from headway.emulation import emulate
from headway.experiment.campaign import workload_models
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig
from headway.results import JobResult
from headway.workload import TraceJob

pytestmark = pytest.mark.benchmark

PROCESSORS = 320
LOAD = 0.7


def tell(text: str) -> None:
    print(f"\n{text}", file=sys.__stderr__)


def workload(name: str, count: int, load: float) -> list[TraceJob]:
    """As in ``headway reproduce measy``: estimates up to five times the runtimes."""
    model = workload_models(Catalogue())[name]
    options = model.Options(jobs=count, processors=PROCESSORS, load=load, f=4.0)
    return list(model.generate(np.random.default_rng(1), options).jobs)


def seconds_of(jobs: Sequence[TraceJob], policy: str) -> tuple[float, Sequence[JobResult]]:
    """CPU seconds of the emulation alone, and its schedule."""
    catalogue = Catalogue()
    configs = catalogue.enabled([PluginConfig(policy)])
    began = process_time()
    result = emulate(ClusterDescription.flat(PROCESSORS), jobs, configs, catalogue, label=policy, seed=1)
    return process_time() - began, result.jobs


def measured(model: str, policy: str, count: int) -> tuple[float, float]:
    """CPU seconds of the emulation, and of the bare loop over the same jobs."""
    jobs = workload(model, count, LOAD)
    began = process_time()
    tuned_easy(jobs, PROCESSORS)
    bare = process_time() - began
    seconds, results = seconds_of(jobs, policy)
    assert len(results) == count
    assert all(result.end_time is not None for result in results)
    return seconds, bare


@pytest.mark.parametrize("policy", ["easy", "keasy", "reasy", "measy"])
@pytest.mark.parametrize("model", ["feitelson96", "jann97"])
def test_over_generated_jobs(model: str, policy: str) -> None:
    for count in (2_500, 10_000):
        say(model, policy, count, *measured(model, policy, count))


@pytest.mark.parametrize("model", ["feitelson96", "jann97"])
def test_measy_over_a_hundred_thousand_jobs(model: str) -> None:
    """5,000 jobs/s are aimed at."""
    say(model, "measy", 100_000, *measured(model, "measy", 100_000))


def say(model: str, policy: str, count: int, seconds: float, bare: float) -> None:
    tell(
        f"{policy}, {model}, load {LOAD}: {count} jobs in {seconds:.2f} s = {count / seconds:,.0f} jobs/s, "
        f"{1e6 * seconds / count:.0f} microseconds a job, {seconds / bare:.1f} times bare EASY"
    )
