"""Switches on a real Slurm with topology/tree: what is told of them, and jobs that wait for few."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from building import plugged
from driven_slurm import Driven
from slurm_cluster import SlurmCluster
from waiting import until

from headway import events as ev
from headway.inquiry import explain
from headway.model import Request, SwitchDescription
from headway.scheduler import Scheduler
from headway_plugins.placement.topology.plugin import Tree, TreeOptions
from headway_plugins.policies.easy import Easy

pytestmark = pytest.mark.slurm

TOPOLOGY = """
SwitchName=leaf1 Nodes=node[1-2]
SwitchName=leaf2 Nodes=node[3-4]
SwitchName=top Switches=leaf[1-2]
"""


@pytest.fixture
def cluster(slurm_factory: Callable[..., SlurmCluster], tmp_path: Path) -> SlurmCluster:
    """Two leaf switches of two nodes with two processors each."""
    (tmp_path / "topology.conf").write_text(TOPOLOGY)
    words = ("--set", "TopologyPlugin=topology/tree", "--file", f"topology.conf={tmp_path / 'topology.conf'}")
    return slurm_factory(*words, nodes=4, cpus=2)


@pytest.fixture
def driven(cluster: SlurmCluster) -> Iterator[Driven]:
    driven = Driven(cluster, start_timeout=60.0)
    yield driven
    driven.adapter.close()


def driving(
    driven: Driven, **options: object
) -> tuple[Scheduler, Callable[[Callable[[], object], str], None]]:
    """A scheduler with ``tree`` that drives the cluster until something holds."""
    plugins = plugged(Easy(), Tree(TreeOptions(**options)))
    scheduler = Scheduler(driven.description, plugins, capabilities=driven.adapter.capabilities)

    def drive(condition: Callable[[], object], what: str) -> None:
        def holds() -> object:
            moment = driven.adapter.wait(time.time() + 0.2)
            assert moment is not None
            now, events = moment
            driven.events += events
            driven.adapter.apply(now, scheduler.step(now, events))
            return condition()

        until(holds, what, pause=0.0)

    return scheduler, drive


def test_slurms_switches_and_its_jobs_bounds(driven: Driven) -> None:
    assert driven.description.switches == (
        SwitchDescription("leaf1", ("node1", "node2")),
        SwitchDescription("leaf2", ("node3", "node4")),
        SwitchDescription("top", (), ("leaf1", "leaf2")),
    )
    bound = driven.cluster.submit(2, nodes=2, switches="1@00:03:00", exclusive=True)
    free = driven.cluster.submit(2, nodes=2, exclusive=True)

    def submitted() -> dict[str, Request]:
        return {
            event.job.id: event.job.request for event in driven.events if isinstance(event, ev.JobSubmitted)
        }

    driven.meanwhile(lambda: {bound, free} <= submitted().keys(), "both jobs are known")
    told = submitted()
    assert (told[bound].switches, told[bound].switches_wait) == (1, 180.0)
    assert (told[free].switches, told[free].switches_wait) == (0, None)
    # Slurm would let it wait for its switches: the start gives them up.
    driven.start(bound, (("node1", 2), ("node3", 2)))
    assert driven.cluster.jobs()[bound]["nodes"] == "node[1,3]"
    assert "Switches=1@00:00:00" in driven.cluster.scontrol("show", "job", bound)


def test_a_job_waits_for_its_switch_and_another_gives_up(driven: Driven) -> None:
    cluster = driven.cluster
    scheduler, drive = driving(driven, max_wait=None)
    held = [
        cluster.submit(2, 3600, nodes=1, exclusive=True, minutes=60, nodelist=node)
        for node in ("node1", "node3")
    ]
    drive(lambda: all(cluster.state(job) == "RUNNING" for job in held), "a job runs on each switch")
    few = cluster.submit(4, 3600, nodes=2, exclusive=True, minutes=60, switches="1@01:00:00")
    drive(lambda: few in scheduler.state.jobs, "the job is known")
    said = "\n".join(explain(scheduler, few, "{:.0f}".format))
    assert "It waits for nodes on at most 1 switch until" in said
    assert "on the nodes that are free now it would need 2 switches" in said
    # It waits for its switch, and has it once the switch is free.
    cluster.run("scancel", held[1])
    drive(lambda: cluster.state(few) == "RUNNING", "the job has its switch")
    assert cluster.jobs()[few]["nodes"] == "node[3-4]"
    cluster.run("scancel", few)
    held.append(cluster.submit(2, 3600, nodes=1, exclusive=True, minutes=60, nodelist="node4"))
    drive(lambda: cluster.state(held[2]) == "RUNNING", "both switches are in use again")
    soon = cluster.submit(4, 3600, nodes=2, exclusive=True, minutes=60, switches="1@00:00:01")
    drive(lambda: cluster.state(soon) == "RUNNING", "the job takes any switches")
    assert cluster.jobs()[soon]["nodes"] == "node[2-3]"
