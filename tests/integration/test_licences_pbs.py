"""What a real PBS counts for the whole server: nothing is given twice, whoever started who has it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from batch_servers import BatchServer
from real_systems import Pbs

from headway import events as ev

pytestmark = pytest.mark.pbs
#: The resource, and the server's amount of it.
NAME = "hwlicence"
AMOUNT = f"set server resources_available.{NAME}"


@pytest.fixture
def site(pbs_server: BatchServer) -> Iterator[Pbs]:
    """A PBS with four licences, that a queue which headway does not drive may use as well."""
    if pbs_server.call("qmgr", "-c", f"list resource {NAME}").returncode:
        pbs_server.run("qmgr", "-c", f"create resource {NAME} type=long,flag=q")
    pbs_server.run("qmgr", "-c", f"{AMOUNT}=4")
    with tempfile.TemporaryDirectory(prefix="hw-pbs-") as directory:
        one = Pbs(pbs_server, Path(directory))
        yield one
        one.close()
    pbs_server.run("qmgr", "-c", f"unset server resources_available.{NAME}")


def test_no_licence_is_given_twice(site: Pbs) -> None:
    def wants(amount: int, seconds: float, *words: str) -> str:
        return site.qsub("1:ncpus=1", "-l", f"{NAME}={amount}", *words, seconds=seconds)

    outside = wants(1, 600, "-q", "hwtest")
    site.server.run("qrun", "-H", "(pbsc:ncpus=1)", outside)
    asked = {wants(amount, 0.5): amount for amount in (1, 2, 1, 3, 2, 1)}
    odd = site.server.run(
        "qsub", "-l", f"{NAME}=-5", "-o", "/dev/null", "-e", "/dev/null", "--", "/bin/true", user="alice"
    )
    daemon = site.daemon(plugins=["easy"])
    daemon.start()
    daemon.until(lambda: set(asked) <= set(site.ended()), what="all have run for whom three are enough")
    all_four, none = wants(4, 1), site.submit(1, 0.5)
    daemon.until(lambda: none in site.ended(), what="who needs none goes on")
    assert site.waits(all_four) and site.waits(odd)
    assert "no amount that can be counted" in " ".join(daemon.command("explain", odd).stdout.split())
    assert NAME in daemon.command("explain", all_four).stdout

    site.cancel(outside)
    daemon.until(lambda: all_four in site.ended(), what="the fourth licence is back")
    site.server.run("qmgr", "-c", f"{AMOUNT}=1")
    daemon.until(lambda: any(e.total == 1 for e in daemon.events(ev.LicencesChanged)), what="there is one")
    two, one = wants(2, 1), wants(1, 0.5)
    daemon.until(lambda: one in site.ended(), what="one may start")
    assert site.waits(two)
    assert never_more(site, asked) <= 3
    assert never_more(site, {**asked, all_four: 4, one: 1}) <= 4
    assert daemon.said("a plugin failed") == []
    assert daemon.stop() == 0
    daemon.assert_replays()


def never_more(site: Pbs, amounts: dict[str, int]) -> int:
    """The most that ran at once, by what the jobs wrote down."""
    now = most = 0
    for what, job in (line.split() for line in site.diary.read_text().splitlines()):
        now += amounts.get(job, 0) if what == "begin" else -amounts.get(job, 0)
        most = max(most, now)
    return most
