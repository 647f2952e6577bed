"""AnthillSched: how long it takes to size a pipeline, by its filters and its profiles, and how many jobs of
pipelines a second run in emulation.

`make bench ARGS="-s -k pipelines"` tells the figures.
"""

import sys
from time import process_time

import numpy as np
import pytest

from headway.emulation import emulate
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig
from headway_plugins.pipelines.pipeline import Filter, Pipeline
from headway_plugins.pipelines.profiles import Profile
from headway_plugins.pipelines.sizing import anthill
from headway_plugins.pipelines.strategies import STRATEGIES, Rules, size
from headway_plugins.pipelines.tamandua import TamanduaModel, TamanduaOptions

pytestmark = pytest.mark.benchmark
#: Processors of the paper's machine, and of the larger one.
PROCESSORS = 8, 1024


def say(text):
    print(f"\npipelines: {text}", file=sys.__stderr__)


def best_of_three(work, count):
    """Seconds of CPU time of one of ``count`` calls, the least of three rounds."""
    found = []
    for _ in range(3):
        began = process_time()
        for _ in range(count):
            work()
        found.append((process_time() - began) / count)
    return min(found)


@pytest.mark.parametrize("filters", [3, 10, 100])
@pytest.mark.parametrize("processors", PROCESSORS)
def test_copies(filters, processors):
    """One profile; each second stream is a broadcast, so all iterations are made."""
    rng = np.random.default_rng(1)
    received, seconds = rng.random(filters).tolist(), rng.random(filters).tolist()
    broadcast = [at % 2 == 0 for at in range(filters)]
    took = best_of_three(lambda: anthill(received, seconds, processors, broadcast), 20)
    say(f"{filters} filters on {processors} processors: {took * 1e6:,.0f} us a profile")
    assert sum(anthill(received, seconds, processors, broadcast)) == max(filters, processors)


@pytest.mark.parametrize("runs", [100, 10_000])
def test_a_combination_between_many_controlled_runs(runs):
    rng = np.random.default_rng(1)
    pipeline = Pipeline("mine", tuple(Filter(f"f{at}") for at in range(5)), {"a": (), "b": ()})
    profiles = [
        Profile({"a": a, "b": b}, tuple(rng.random(5).tolist()), tuple(rng.random(5).tolist()), 60.0)
        for a, b in rng.random((runs, 2)).tolist()
    ]
    took = best_of_three(lambda: size(pipeline, {"a": 0.5, "b": 0.5}, 64, profiles, Rules()), 3)
    say(f"a combination between {runs:,} controlled runs: {took * 1e3:.2f} ms")
    assert sum(size(pipeline, {"a": 0.5, "b": 0.5}, 64, profiles, Rules()).copies) == 64


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("arrivals", ["medium", "heavy"])
def test_jobs_of_the_service(arrivals, strategy):
    """The paper's workload, ten times as long: decision trees one at a time on eight processors."""
    options = TamanduaOptions(jobs=10_000, arrivals=arrivals)
    jobs = TamanduaModel().generate(np.random.default_rng(1), options).jobs
    configs, catalogue = [PluginConfig("pipelines", {"strategy": strategy})], Catalogue()
    began = process_time()
    result = emulate(ClusterDescription.flat(8), jobs, configs, catalogue, label=strategy)
    took = process_time() - began
    say(f"{arrivals}, {strategy}: {len(jobs) / took:,.0f} jobs/s")
    assert all(one.state == "completed" for one in result.jobs)
