"""Two queues over the same hosts on the emulated commands of PBS and LSF: one queue, one set of bookings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from cases.shared_nodes import plugins, promise
from emulated_commands import Commands
from live_daemon import Daemon
from waiting import bound

from headway import events as ev
from headway_adapters.commands import Emulator, EmulatorOptions

QUEUES = ("workq", "hwtest")
SLEEP = "/bin/sleep"


class Site:
    """An emulated PBS or LSF of three hosts of four processors, and headway beside it."""

    def __init__(self, emulator: Emulator, system: str, directory: Path) -> None:
        self.system = system
        self.commands = Commands(emulator)
        options = {"queues": list(QUEUES), "bin_dir": str(emulator.bin), "poll_interval": 0.3}
        more = {"commands_per_minute": None} if system == "pbs" else {}
        self.daemon = Daemon(SimpleNamespace(conf="", options={}), directory)
        self.daemon.configure(cluster={"adapter": system, "options": {**options, **more}})

    def submit(self, queue: str, hosts: int, seconds: int, *, minutes: int = 20, user: str = "alice") -> str:
        """A job of so many whole hosts; its id."""
        if self.system == "pbs":
            words = ("-q", queue, "-l", f"select={hosts}:ncpus=4", "-l", f"walltime=0:{minutes}:0")
            return self.commands.ok("qsub", *words, "--", SLEEP, str(seconds), user=user).strip()
        words = ("-q", queue, "-n", str(4 * hosts), "-R", "span[ptile=4]", "-W", str(minutes))
        said = self.commands.ok("bsub", *words, SLEEP, str(seconds), user=user)
        return re.findall(r"Job <(\d+)>", said)[0]

    def started(self) -> list[str]:
        """The jobs that were seen to start, in this order."""
        return [event.job_id for event in self.daemon.events(ev.JobStarted)]


@pytest.fixture(params=["pbs", "lsf"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    options = EmulatorOptions(
        system=request.param, nodes=3, processors=4, scheduling=False, queues=QUEUES
    )  # fmt: skip
    with Emulator(tmp_path / "commands", options) as emulator:
        one = Site(emulator, request.param, tmp_path)
        yield one
        one.daemon.clean_up()


@pytest.mark.parametrize("order", ["easy", "multifactor"])
def test_the_head_of_one_queue_starts_when_it_was_promised_whatever_comes_to_the_other(
    site: Site, order: str
) -> None:
    daemon = site.daemon
    daemon.configure(plugins=plugins(order, *QUEUES))
    daemon.start()
    # It is ended as soon as all has been seen, and by itself when it was promised.
    first = site.submit("workq", 1, 115, minutes=2)
    daemon.until(lambda: first in site.started(), what="the first job runs")
    bob = site.submit("hwtest", 3, 1, minutes=5, user="bob")
    daemon.until(lambda: promise(daemon, bob), what="a time is promised")
    promised = promise(daemon, bob)
    alice = [site.submit("workq", 1, 600) for _ in range(6)]
    said = f"job {bob} of pool 'hwtest'"
    daemon.until(lambda: said in daemon.command("explain", alice[0]).stdout, what=said)
    alice += [site.submit("workq", 1, 600) for _ in range(6)]
    site.commands.ok({"pbs": "qdel", "lsf": "bkill"}[site.system], first)
    daemon.until(lambda: set(alice) & set(site.started()), what="one of alice's runs")
    starts = {start.job_id: at for at, start in daemon.starts()}
    assert daemon.stop() == 0
    assert [start.job_id for _, start in daemon.starts()][:2] == [first, bob]
    assert starts[bob] <= promised + bound(2)
    daemon.assert_replays()
