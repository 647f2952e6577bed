"""A journal's events, given to a new scheduler, give the recorded decisions, whatever happened."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from building import alike, node_cluster, traced
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.config import parse_config
from headway.daemon.replay import replay
from headway.decisions import PowerDown, SetFrequency
from headway.emulation import emulate
from headway.energy.profiles import load_profile, with_energy
from headway.events import JobFrequencyChanged, NodePowerChanged
from headway.journal import Journal
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig

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


#: Plugins that save energy, in an order in which each has something to do to the work of those before it.
SAVING = """
- {policy}
- dvfs: {{slack: 1.5, deadlines: {deadlines}}}
- power-down: {{idle: 5, stay: 10, reserve: {reserve}, retry: 20}}
- power-cap: {{watts: 1100, windows: [{{from: "00:01", to: "00:02", watts: 700}}]}}
"""


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "greedy"])
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    jobs=workloads(),
    seed=st.integers(0, 9),
    latency=st.sampled_from([0, 2]),
    failing=st.sampled_from([0, 0.3]),
    deadlines=st.sampled_from(["slack", "random"]),
    reserve=st.integers(0, 1),
)
def test_replay_of_runs_that_save_energy_is_identical(
    tmp_path_factory, policy, jobs, seed, latency, failing, deadlines, reserve
):
    path: Path = tmp_path_factory.mktemp("replay") / "run.db"
    cluster = with_energy(node_cluster(*alike(3, 4)), load_profile("present-day"))
    plugins = yaml.safe_load(SAVING.format(policy=policy, deadlines=deadlines, reserve=reserve))
    configs = parse_config(yaml.safe_dump({"plugins": plugins})).plugin_configs()
    with Journal.open(path) as journal:
        result = emulate(
            cluster,
            jobs,
            configs,
            CATALOGUE,
            label=policy,
            seed=seed,
            faults={
                "latency": latency, "failure_rate": failing, "wake_failure_rate": failing,
                "node_mtbf": 200, "node_repair": 10, "requeue": True,
            },
            journal=journal,
            config_text=yaml.safe_dump({"mode": "dry-run", "plugins": plugins}),
        )  # fmt: skip
    with Journal.open(path, create=False, read_only=True) as journal:
        (run,) = journal.runs()
        assert run.info.cluster.energy == cluster.energy, "the energy profile is in the journal"
        again = replay(journal, CATALOGUE)
        events = [event for cycle in journal.cycles(run.id) for event in cycle.events]
        decisions = [decision for cycle in journal.cycles(run.id) for decision in cycle.decisions]
    assert again.differences == []
    assert again.cycles == result.cycles
    told = [event for event in events if isinstance(event, NodePowerChanged)]
    assert [(event.time, event.node, event.power) for event in told] == [
        (change.time, change.node, change.power) for change in result.power
    ]
    ordered = sum(isinstance(decision, SetFrequency) for decision in decisions)
    assert sum(isinstance(event, JobFrequencyChanged) for event in events) <= ordered
    assert not told or any(isinstance(decision, PowerDown) for decision in decisions)
