"""Two daemons for one Slurm, of which one leads; and jobs that write down how often they began."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
from live_daemon import HEADWAY, Daemon, Diary
from waiting import HANG, until

#: Seconds: of a leader that is silent, and within which a take-over is over.
PATIENCE, TAKE_OVER = 4.0, 10.0


@dataclass
class Pair:
    """The daemons, the cluster and its jobs."""

    cluster: Any
    daemons: list[Daemon]
    diary: Diary
    #: While this file is there, no connection to the other machine can be made.
    cut: Path
    jobs: list[str] = field(default_factory=list)
    #: Whether jobs are submitted on hold: a submit filter does it otherwise.
    hold: bool = True

    def start(self, daemon: Daemon) -> None:
        """Run it as a stand-by; returns when it stands by or leads."""
        before = len(daemon.said("standing by"))
        daemon.start("--standby", await_log=False)
        daemon.until(lambda: len(daemon.said("standing by")) > before, what="the daemon stands by")

    def follows(self, daemon: Daemon) -> None:
        """Wait until it knows the leader and its journal."""
        daemon.until(lambda: knows_the_leader(daemon), what="the stand-by follows")

    def leads(self, daemon: Daemon, runs: int = 1) -> None:
        """Wait until it has begun so many runs as the leader."""
        daemon.until(lambda: len(daemon.said("started")) >= runs, what="the daemon leads")

    def submit(self, processors: int = 1, seconds: float = 1.0) -> str:
        job: str = self.cluster.submit(processors, hold=self.hold, script=self.diary.script(seconds))
        self.jobs.append(job)
        return job

    def begins(self, job: str, seconds: float = 60.0) -> None:
        until(lambda: self.diary.begun()[job], f"job {job} begins", seconds, said=self.said)

    def finish(self) -> None:
        """All jobs have run, each once."""
        until(lambda: all(self.diary.ended()[job] for job in self.jobs), "all jobs end", said=self.said)
        twice = {job: times for job, times in self.diary.begun().items() if times != 1}
        assert not twice, twice

    def said(self) -> str:
        return "\n".join(daemon.log_path.read_text() for daemon in self.daemons if daemon.log_path.exists())

    def restart_slurmctld(self) -> None:
        self.cluster.saved()
        self.cluster.kill("slurmctld", "TERM")
        self.cluster.up("slurmctld")

    @contextlib.contextmanager
    def cut_off(self) -> Iterator[None]:
        """No daemon reaches the other's machine meanwhile."""
        self.cut.touch()
        for daemon in self.daemons:
            if daemon.process is not None:
                for child in psutil.Process(daemon.process.pid).children():
                    with contextlib.suppress(psutil.NoSuchProcess):
                        if "follow" in child.cmdline():
                            child.kill()
        try:
            yield
        finally:
            self.cut.unlink()

    def clean_up(self) -> None:
        for daemon in self.daemons:
            if daemon.process is not None and daemon.process.poll() is None:
                daemon.send(signal.SIGCONT)
            daemon.clean_up()


def leadership(daemon: Daemon) -> dict[str, Any]:
    """What it tells of itself."""
    known: dict[str, Any] = json.loads(daemon.command("status", "--json").stdout)["leadership"]
    return known


def knows_the_leader(standby: Daemon) -> bool:
    """Whether it knows the leader, and its journal."""
    done = standby.command("status", "--json")
    if done.returncode:
        # It has just ended.
        return False
    told = json.loads(done.stdout)["leadership"]
    return bool(told["leader"]) and told["lag"] is not None and told["lag"] < PATIENCE


def led_since(daemon: Daemon, moment: float) -> float:
    """Seconds from ``moment`` to the beginning of its last run."""
    began = datetime.fromisoformat(daemon.said("started")[-1]["timestamp"]).timestamp()
    return began - moment


def follow_command(config: Path, cut: Path) -> list[str]:
    """``standby.follow`` on one machine, through a shell that stands for the network."""
    script = '[ ! -e "$0" ] || exit 255; exec "$@"'
    return ["sh", "-c", script, str(cut), str(HEADWAY), "journal", "follow", "-c", str(config)]


@contextlib.contextmanager
def pair(
    cluster: Any,
    directory: Path,
    shared: str | None,
    *,
    patience: float = PATIENCE,
    hold: bool = True,
    follow: Callable[[Path, Path], Sequence[str]] = follow_command,
    **config: Any,
) -> Iterator[Pair]:
    """Two daemons; ``shared``: the URL of their journal, else each has its own and follows the other's by
    the command that ``follow`` makes."""
    daemons = []
    cut = directory / "cut"
    for name, other in (("one", "two"), ("two", "one")):
        folder = directory / name
        folder.mkdir()
        standby: dict[str, Any] = {"patience": patience}
        if shared is None:
            standby["follow"] = list(follow(directory / other / "site.yaml", cut))
        own = {"journal": shared} if shared is not None else {}
        service = {"socket": str(folder / "s")}
        daemons.append(Daemon(cluster, folder, standby=standby, service=service, **own, **config))
    made = Pair(cluster, daemons, Diary(cluster), cut, hold=hold)
    try:
        yield made
    finally:
        made.clean_up()


def after(action: Callable[[], object]) -> float:
    """Do it; when that was, seconds since the epoch."""
    moment = time.time()
    action()
    return moment


def over_ssh(server: Any) -> Callable[[Path, Path], Sequence[str]]:
    """``standby.follow`` over a real SSH."""
    ssh = shutil.which("ssh")
    assert ssh is not None

    def command(config: Path, cut: Path) -> Sequence[str]:
        return [
            ssh, "-F", "none", "-i", str(server.key), "-p", str(server.port),
            "-o", f"UserKnownHostsFile={server.known_hosts}", "-o", "BatchMode=yes",
            f"{server.user}@127.0.0.1", f"PATH={os.environ['PATH']}", str(HEADWAY), "journal", "follow",
            "-c", str(config),
        ]  # fmt: skip

    return command


def ended(daemon: Daemon) -> int:
    """Its exit code, once it has ended by itself."""
    return daemon.ended(HANG)
