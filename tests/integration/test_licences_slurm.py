"""Licences on a real Slurm: none is given twice, whoever started the jobs that have them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_daemon import Daemon, Diary

from headway import events as ev

pytestmark = pytest.mark.slurm

#: Two partitions that share no node; headway sees and drives the first.
WORDS = (
    "--set", "Licenses=matlab:4,fluent:1",
    "--line", "PartitionName=near Nodes=node1 State=UP MaxTime=60",
    "--line", "PartitionName=far Nodes=node2 State=UP MaxTime=60",
)  # fmt: skip


@pytest.fixture
def site(slurm_factory: Callable[..., Any], tmp_path: Path) -> Iterator[Daemon]:
    """2 nodes of 8 CPUs."""
    daemon = Daemon(slurm_factory(*WORDS, nodes=2, cpus=8), tmp_path, options={"partitions": ["near"]})
    yield daemon
    daemon.clean_up()


def until_there(diary: Diary, name: str) -> str:
    """A script that runs until that file is there."""
    return diary.script(f"0; while ! [ -e {diary.path.with_name(name)} ]; do sleep 0.1; done")


def configure(site: Daemon, licences: str) -> None:
    conf = Path(site.cluster.conf)
    lines = [line for line in conf.read_text().splitlines() if not line.startswith("Licenses=")]
    conf.write_text("\n".join([*lines, f"Licenses={licences}", ""]))
    site.cluster.scontrol("reconfigure")


def test_no_licence_is_given_twice(site: Daemon) -> None:
    cluster, diary = site.cluster, Diary(site.cluster)

    def near(amount: int, script: str) -> str:
        return str(cluster.submit(script=script, partition="near", licenses=f"matlab:{amount}"))

    outside = cluster.submit(
        script=until_there(diary, "outside"), partition="far", licenses="matlab:1", hold=False
    )
    cluster.until(lambda: diary.begun()[outside] == 1, what="the job outside runs")
    asked = {near(amount, diary.script(0.5)): amount for amount in (1, 2, 1, 3, 2, 1)}
    site.start()
    all_four = near(4, until_there(diary, "all"))
    site.until(lambda: set(asked) <= set(diary.ended()), what="all have run for whom three are enough")
    assert diary.begun()[all_four] == 0
    assert "and there are 3" in site.command("explain", all_four).stdout

    diary.path.with_name("outside").touch()
    site.until(lambda: diary.begun()[all_four] == 1, what="the fourth licence is back")
    refused = [event.message for event in site.events(ev.DecisionFailed) if "Licenses" in event.message]
    assert refused == [], "Slurm had the licences of all that was started"
    configure(site, "matlab:2,fluent:1")
    site.until(lambda: told(site) == 1, what="it is told that there are fewer than are in use")
    waits, other = near(1, diary.script(0)), cluster.submit(script=diary.script(0), partition="near")
    site.until(lambda: diary.ended()[other] == 1, what="who needs none goes on")
    assert diary.begun()[waits] == 0
    diary.path.with_name("all").touch()
    site.until(lambda: diary.ended()[waits] == 1, what="two are back")

    assert told(site) == 1
    amounts = {**asked, outside: 1, all_four: 4, waits: 1}
    executions = diary.executions()
    for now in (one.begin for one in executions.values()):
        at_once = [job for job, one in executions.items() if one.begin <= now < one.end]
        assert sum(amounts.get(job, 0) for job in at_once) <= 4, at_once
    assert site.said("a plugin failed") == []
    assert site.stop() == 0
    site.assert_replays()


def told(site: Daemon) -> int:
    """How often it was said that more are in use than there are."""
    return sum("'matlab': 4 are in use and there are only 2" in str(entry) for entry in site.log())
