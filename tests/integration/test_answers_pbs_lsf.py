"""The daemon's answer about a job is what a fresh look at the cluster says, on the emulated commands of PBS
and LSF."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import structlog
from emulated_commands import Commands
from live_daemon import Daemon

from headway import events as ev
from headway.cli import main
from headway_adapters.commands import Emulator, EmulatorOptions

pytestmark = pytest.mark.waits

#: What only the daemon says, or only a fresh look.
OF_ONE_SIDE = (
    "So says the daemon, ", "The daemon has planned no start ", "Its planned start has stood since ",
    "It is expected to start at ",
)  # fmt: skip


class Site:
    """An emulated PBS or LSF of two hosts of four processors, and headway beside it."""

    def __init__(
        self, emulator: Emulator, system: str, directory: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.system = system
        self.capsys = capsys
        self.commands = Commands(emulator)
        self.daemon = Daemon(SimpleNamespace(conf="", options={}), directory)
        options = {"queues": ["workq"], "bin_dir": str(emulator.bin), "poll_interval": 0.3}
        more = {"commands_per_minute": None} if system == "pbs" else {}
        self.daemon.configure(
            cluster={"adapter": system, "options": {**options, **more}}, plugins=["conservative", "first-fit"]
        )

    def submit(self, hosts: int, *words: str, user: str = "alice") -> str:
        if self.system == "pbs":
            size = ("-q", "workq", "-l", f"select={hosts}:ncpus=4", "-l", "walltime=0:20:0")
            return self.commands.ok("qsub", *size, *words, "--", "/bin/sleep", "900", user=user).strip()
        size = ("-q", "workq", "-n", str(4 * hosts), "-R", "span[ptile=4]", "-W", "20")
        said = self.commands.ok("bsub", *size, *words, "/bin/sleep", "900", user=user)
        return re.findall(r"Job <(\d+)>", said)[0]

    def array(self) -> str:
        """An array of three elements, and the id of the whole."""
        if self.system == "pbs":
            return self.submit(1, "-J", "1-3")
        return self.submit(1, "-J", "many[1-3]")

    def told(self, job: str, *words: str) -> list[str]:
        """What explain, called in this process, says of a job, without what only one side says."""
        self.capsys.readouterr()
        main(["explain", "-c", str(self.daemon.config_path), job, *words])
        out, err = self.capsys.readouterr()
        assert "Looking at the cluster" not in err
        assert ("So says the daemon, " in out) == (not words)
        if self.system == "lsf":
            # LSF tells a fresh look the minutes in which jobs came and started; the daemon saw the seconds.
            out = re.sub(r"\d+-\d+-\d+ \d+:\d+:\d+", "TIME", out)
        return [line for line in out.splitlines() if not line.startswith(OF_ONE_SIDE)]


@pytest.fixture(params=["pbs", "lsf"])
def site(
    request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Iterator[Site]:
    options = EmulatorOptions(
        system=request.param, nodes=2, processors=4, scheduling=False, queues=("workq",)
    )  # fmt: skip
    with Emulator(tmp_path / "commands", options) as emulator:
        one = Site(emulator, request.param, tmp_path, capsys)
        yield one
        one.daemon.clean_up()
    structlog.reset_defaults()


def test_the_daemon_says_of_each_job_what_a_fresh_look_says(site: Site) -> None:
    daemon = site.daemon
    daemon.start()
    runs = site.submit(1)
    daemon.until(lambda: [one.job_id for one in daemon.events(ev.JobStarted)] == [runs], what="it runs")
    hold = ("-h",) if site.system == "pbs" else ("-H",)
    depends = ("-W", f"depend=afterok:{runs}") if site.system == "pbs" else ("-w", f"done({runs})")
    jobs = [
        runs, site.submit(2, user="bob"), site.submit(2), site.submit(1, *hold), site.submit(1, *depends),
        site.submit(3), site.array(),
    ]  # fmt: skip
    ids = {runs, *jobs[1:-1]}

    def known() -> bool:
        seen = [one.job for one in daemon.events(ev.JobSubmitted)]
        return ids <= {job.id for job in seen} and sum(bool(job.array_id) for job in seen) == 3

    daemon.until(known, what="all are known")
    told = {job: site.told(job) for job in jobs}
    assert told == {job: site.told(job, "--fresh") for job in jobs}
    assert f"It waits for the end of job {runs} (by " in " ".join(told[jobs[1]])
    assert "held" in " ".join(told[jobs[3]]) and "it waits for job" in " ".join(told[jobs[4]])
    assert "It cannot start: it can never run as it is" in " ".join(told[jobs[5]])
    assert daemon.stop() == 0
