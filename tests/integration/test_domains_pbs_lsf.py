"""Two queues over the same hosts on the emulated commands of PBS and LSF: one queue, one set of bookings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from cases.shared_nodes import keeps_its_promise, plugins
from emulated_commands import Commands
from live_daemon import Daemon

from headway import events as ev
from headway_adapters.commands import Emulator, EmulatorOptions

pytestmark = pytest.mark.waits

QUEUES = ("workq", "hwtest")
SLEEP = "/bin/sleep"


class Site:
    """An emulated PBS or LSF of three hosts of four processors, and headway beside it."""

    nodes = 3

    def __init__(self, emulator: Emulator, system: str, directory: Path) -> None:
        self.system = system
        self.commands = Commands(emulator)
        options = {"queues": list(QUEUES), "bin_dir": str(emulator.bin), "poll_interval": 0.3}
        more = {"commands_per_minute": None} if system == "pbs" else {}
        self.daemon = Daemon(SimpleNamespace(conf="", options={}), directory)
        self.daemon.configure(cluster={"adapter": system, "options": {**options, **more}})

    def submit_to(
        self, queue: str, hosts: int, seconds: float, *, minutes: int = 20, user: str = "alice"
    ) -> str:
        """A job of so many whole hosts; its id."""
        if self.system == "pbs":
            words = ("-q", queue, "-l", f"select={hosts}:ncpus=4", "-l", f"walltime=0:{minutes}:0")
            return self.commands.ok("qsub", *words, "--", SLEEP, str(seconds), user=user).strip()
        words = ("-q", queue, "-n", str(4 * hosts), "-R", "span[ptile=4]", "-W", str(minutes))
        said = self.commands.ok("bsub", *words, SLEEP, str(seconds), user=user)
        return re.findall(r"Job <(\d+)>", said)[0]

    def cancel(self, job: str) -> None:
        self.commands.ok({"pbs": "qdel", "lsf": "bkill"}[self.system], job)

    def begun(self) -> Counter[str]:
        """How often each job was seen to start."""
        return Counter(event.job_id for event in self.daemon.events(ev.JobStarted))

    def runs(self, job: str) -> bool:
        return job in self.begun()


@pytest.fixture(params=["pbs", "lsf"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    options = EmulatorOptions(
        system=request.param, nodes=Site.nodes, processors=4, scheduling=False, queues=QUEUES
    )  # fmt: skip
    with Emulator(tmp_path / "commands", options) as emulator:
        one = Site(emulator, request.param, tmp_path)
        yield one
        one.daemon.clean_up()


@pytest.mark.parametrize("order", ["easy", "multifactor"])
def test_the_head_of_one_queue_starts_when_it_was_promised_whatever_comes_to_the_other(
    site: Site, order: str
) -> None:
    site.daemon.configure(plugins=plugins(order, *QUEUES))
    keeps_its_promise(site.daemon, site, *QUEUES)
