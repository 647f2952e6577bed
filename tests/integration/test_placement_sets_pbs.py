"""Placement sets of a real PBS: vnodes by the value of a resource, and jobs that want those of one value."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from batch_servers import BatchServer
from real_systems import Pbs

pytestmark = pytest.mark.pbs
NAME = "hwswitch"
#: pbsa and pbsb are on one switch, pbsc is on another.
SETS = {"pbsa": "s1", "pbsb": "s1", "pbsc": "s2"}


@pytest.fixture
def site(pbs_server: BatchServer) -> Iterator[Pbs]:
    def manage(line: str) -> None:
        pbs_server.run("qmgr", "-c", line)

    if pbs_server.call("qmgr", "-c", f"list resource {NAME}").returncode:
        manage(f"create resource {NAME} type=string_array,flag=h")
    for node, value in SETS.items():
        manage(f"set node {node} resources_available.{NAME}={value}")
    manage(f"set server node_group_key={NAME}")
    manage("set server node_group_enable=True")
    with tempfile.TemporaryDirectory(prefix="hw-pbs-") as directory:
        one = Pbs(pbs_server, Path(directory))
        yield one
        one.close()
    manage("unset server node_group_enable")
    manage("unset server node_group_key")
    for node in SETS:
        manage(f"unset node {node} resources_available.{NAME}")


def test_jobs_lie_on_one_set_if_they_say_so_and_on_the_fewest_if_not(site: Pbs) -> None:
    """Of two whole hosts that are free on two switches nobody takes both who asks for one switch."""
    holder = site.qsub("1:ncpus=8:host=pbsb", seconds=600, minutes=30)
    daemon = site.daemon(plugins=["easy", {"tree": {"max_wait": None}}])
    daemon.start()
    daemon.until(lambda: site.runs(holder), what="pbsb is taken")
    grouped = site.qsub("2:ncpus=8", "-l", f"place=scatter:group={NAME}", seconds=0.5)
    daemon.until(
        lambda: "at most 1 switch" in daemon.command("explain", grouped).stdout,
        what="it waits for one switch",
    )
    anywhere = site.qsub("2:ncpus=4", "-l", "place=scatter", seconds=0.5, minutes=1)
    daemon.until(lambda: anywhere in site.ended(), what="who asks for none takes two")
    site.cancel(holder)
    daemon.until(lambda: grouped in site.ended(), what="its switch is free")
    where = {start.job_id: sorted(name for name, *_ in start.placement) for _, start in daemon.starts()}
    assert where[grouped] == ["pbsa", "pbsb"]
    assert where[anywhere] == ["pbsa", "pbsc"]
    assert daemon.stop() == 0
    daemon.assert_replays()
