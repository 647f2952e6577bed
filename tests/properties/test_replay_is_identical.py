"""A journal's events, given to a new scheduler, give the recorded decisions, whatever happened."""

from __future__ import annotations

from pathlib import Path

import pytest
from building import alike, node_cluster, traced
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.emulation import emulate
from headway.journal import Journal
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig
from headway.replay import replay

CATALOGUE = Catalogue()


@st.composite
def workloads(draw):
    """Up to 15 jobs of up to 8 processors; some run less, some longer than estimated, some begin later."""
    jobs, submit = [], 0
    for number in range(draw(st.integers(1, 15))):
        submit += draw(st.sampled_from([0, 0, 1, 3, 8]))
        jobs.append(
            traced(
                str(number),
                draw(st.integers(1, 8)),
                draw(st.integers(1, 20)),
                submit,
                runtime=draw(st.integers(0, 25)),
                begin_time=draw(st.sampled_from([None, None, None, submit + 5])),
            )
        )
    return jobs


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "delayed-los"])
@pytest.mark.parametrize("kind", ["flat", "nodes"])
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    jobs=workloads(),
    seed=st.integers(0, 9),
    latency=st.sampled_from([0, 2]),
    failing=st.sampled_from([0, 0.3]),
)
def test_replay_is_identical(tmp_path_factory, policy, kind, jobs, seed, latency, failing):
    path: Path = tmp_path_factory.mktemp("replay") / "run.db"
    cluster = ClusterDescription.flat(8) if kind == "flat" else node_cluster(*alike(2, 4))
    faults = {"latency": latency, "failure_rate": failing}
    if kind == "nodes":
        faults |= {"node_mtbf": 60, "node_repair": 10, "requeue": True}
    plugins = [policy, "best-fit"]
    with Journal.open(path) as journal:
        result = emulate(
            cluster,
            jobs,
            [PluginConfig(name) for name in plugins],
            CATALOGUE,
            label=policy,
            seed=seed,
            faults=faults,
            journal=journal,
            config_text=f"mode: dry-run\nplugins: [{', '.join(plugins)}]\n",
        )
    with Journal.open(path, create=False, read_only=True) as journal:
        again = replay(journal, CATALOGUE)
    assert again.differences == []
    assert again.cycles == result.cycles
    assert again.decisions >= sum(job.starts for job in result.jobs)
