"""The partition manager on a real Slurm: nodes are booted on demand, or as blocks of a fat tree, through
Slurm's power saving, and sleep again.

A Slurm of 4 nodes with 2 CPUs on two leaf switches; see sleeping_slurm.py for how its nodes sleep.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_daemon import Daemon, Diary
from sleeping_slurm import Programs, begin, called, node_state

from headway.decisions import Decision, PowerDown, PowerUp

pytestmark = pytest.mark.slurm

TOPOLOGY = """
SwitchName=leaf1 Nodes=node[1-2]
SwitchName=leaf2 Nodes=node[3-4]
SwitchName=top Switches=leaf[1-2]
"""
NODES = [f"node{n}" for n in (1, 2, 3, 4)]


@pytest.fixture
def programs() -> Iterator[Programs]:
    directory = Path(tempfile.mkdtemp(prefix="hw-partitions-"))
    directory.chmod(0o755)
    yield Programs(directory)
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def resume_timeout() -> int:
    return 100


@pytest.fixture
def cluster(
    slurm_factory: Callable[..., Any], programs: Programs, tmp_path: Path, resume_timeout: int
) -> Any:
    """The fat tree."""
    (tmp_path / "topology.conf").write_text(TOPOLOGY)
    words = ("--set", "TopologyPlugin=topology/tree", "--file", f"topology.conf={tmp_path / 'topology.conf'}")
    return begin(slurm_factory, programs, resume_timeout, *words)


@pytest.fixture
def daemon(cluster: Any, tmp_path: Path) -> Iterator[Callable[..., Daemon]]:
    made: list[Daemon] = []

    def drive(**options: Any) -> Daemon:
        made.append(
            Daemon(
                cluster,
                tmp_path,
                options={"power": True, "poll_interval": 0.3},
                plugins=["easy", {"partitions": options}],
            )
        )
        return made[-1]

    yield drive
    for one in made:
        one.clean_up()


def asleep(cluster: Any) -> set[str]:
    return {node for node in NODES if "POWERED_DOWN" in node_state(cluster, node)}


def of(daemon: Daemon, kind: type[Decision]) -> list[Any]:
    return [decision for _, decision in daemon.decisions() if isinstance(decision, kind)]


def places(daemon: Daemon) -> dict[str, list[str]]:
    return {start.job_id: [node for node, _ in start.placement] for _, start in daemon.starts()}


def test_nodes_are_booted_on_demand_for_each_job_and_sleep_after_it(
    cluster: Any, daemon: Callable[..., Daemon]
) -> None:
    driven, diary = daemon(blocks="on-demand"), Diary(cluster)
    driven.start()
    driven.until(lambda: asleep(cluster) == set(NODES), what="nobody needs a node, so all sleep")
    job = cluster.submit(4, nodes=2, script=diary.script(2.0))
    driven.until(lambda: diary.begun()[job] == 1, seconds=120, what="its partition is booted, and it runs")
    assert asleep(cluster) == {"node3", "node4"}, "nobody but its nodes is on, below one switch"
    driven.until(lambda: asleep(cluster) == set(NODES), seconds=60, what="all sleep again")
    assert diary.ended() == {job: 1} and driven.stop() == 0
    assert places(driven) == {job: ["node1", "node2"]}
    assert [decision.nodes for decision in of(driven, PowerUp)] == [("node1", "node2")]
    driven.assert_replays()


def test_prepared_blocks_stay_on_and_a_job_has_its_block_alone(
    cluster: Any, daemon: Callable[..., Daemon]
) -> None:
    for node in NODES:
        cluster.scontrol("update", f"NodeName={node}", "State=POWER_DOWN")
    cluster.until(lambda: asleep(cluster) == set(NODES), seconds=60)
    driven, diary = daemon(blocks="prepared", unit=2), Diary(cluster)
    driven.start()
    one = cluster.submit(1, script=diary.script(3.0))
    other = cluster.submit(1, script=diary.script(0.5))
    driven.until(lambda: sum(diary.ended().values()) == 2, seconds=180, what="both have run")
    third = cluster.submit(3, nodes=2, script=diary.script(0.5))
    driven.until(lambda: diary.ended()[third] == 1, seconds=60, what="the third needs no boot")
    found = places(driven)
    assert {found[one][0], found[other][0]} == {"node1", "node3"}, "each has a leaf switch for itself"
    assert asleep(cluster) == set() and of(driven, PowerDown) == []
    assert sorted(node for up in of(driven, PowerUp) for node in up.nodes) == NODES
    assert driven.stop() == 0
    driven.assert_replays()


@pytest.mark.parametrize("resume_timeout", [20])
def test_a_boot_that_fails_and_a_daemon_that_is_killed_meanwhile_cost_no_job(
    cluster: Any, daemon: Callable[..., Daemon]
) -> None:
    driven, diary = daemon(blocks="on-demand"), Diary(cluster)
    driven.start()
    driven.until(lambda: asleep(cluster) == set(NODES), what="all sleep")
    (cluster.root / "broken" / "node1").touch()
    jobs = [cluster.submit(2, nodes=1, script=diary.script(1.0)) for _ in range(3)]
    driven.until(lambda: any("resume" in call for call in called(cluster)), what="nodes are booted")
    driven.kill()
    driven.start()
    driven.until(lambda: sum(diary.ended().values()) == 3, seconds=180, what="all jobs run")
    assert diary.ended() == dict.fromkeys(jobs, 1) == diary.begun()
    driven.until(lambda: "DRAIN" in node_state(cluster, "node1"), seconds=60)
    driven.until(lambda: asleep(cluster) >= set(NODES[1:]), seconds=60, what="all others sleep again")
    assert driven.stop() == 0
    assert not any("node1" in nodes for nodes in places(driven).values())
    driven.assert_replays()
