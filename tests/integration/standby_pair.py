"""Two daemons for one Slurm, of which one leads; and jobs that write down how often they began."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from live_daemon import HEADWAY, Daemon, Diary
from waiting import until

#: Seconds: of a leader that is silent, and within which a take-over is over.
PATIENCE, TAKE_OVER = 4.0, 10.0


@dataclass
class Pair:
    """The daemons, the cluster and its jobs."""

    cluster: Any
    daemons: list[Daemon]
    diary: Diary
    jobs: list[str] = field(default_factory=list)

    def start(self, daemon: Daemon) -> None:
        """Run it as a stand-by; returns when it stands by or leads."""
        before = len(daemon.said("standing by"))
        daemon.start("--standby", await_log=False)
        daemon.until(lambda: len(daemon.said("standing by")) > before, what="the daemon stands by")

    def leads(self, daemon: Daemon, runs: int = 1) -> None:
        """Wait until it has begun so many runs as the leader."""
        daemon.until(lambda: len(daemon.said("started")) >= runs, what="the daemon leads")

    def submit(self, processors: int = 1, seconds: float = 1.0) -> str:
        job: str = self.cluster.submit(processors, script=self.diary.script(seconds))
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
        return "\n".join(daemon.log_path.read_text() for daemon in self.daemons)

    def clean_up(self) -> None:
        for daemon in self.daemons:
            if daemon.process is not None and daemon.process.poll() is None:
                daemon.send(signal.SIGCONT)
            daemon.clean_up()


def took_over(daemon: Daemon) -> float:
    """When it said last that a run of its began, seconds since the epoch."""
    from datetime import datetime

    return datetime.fromisoformat(daemon.said("started")[-1]["timestamp"]).timestamp()


def led_since(daemon: Daemon, moment: float) -> float:
    """Seconds from ``moment`` to the beginning of its run."""
    return took_over(daemon) - moment


@contextlib.contextmanager
def pair(
    cluster: Any, directory: Path, shared: str | None, patience: float = PATIENCE, **config: Any
) -> Iterator[Pair]:
    """Two daemons; ``shared``: the URL of their journal, else each has its own and follows the other's."""
    daemons = []
    for name, other in (("one", "two"), ("two", "one")):
        folder = directory / name
        folder.mkdir()
        standby: dict[str, Any] = {"patience": patience}
        if shared is None:
            standby["follow"] = [
                str(HEADWAY), "journal", "follow", "-c", str(directory / other / "site.yaml")
            ]  # fmt: skip
        own = {"journal": shared} if shared is not None else {}
        service = {"socket": str(folder / "s")}
        daemons.append(Daemon(cluster, folder, standby=standby, service=service, **own, **config))
    made = Pair(cluster, daemons, Diary(cluster))
    try:
        yield made
    finally:
        made.clean_up()


def after(action: Callable[[], object]) -> float:
    """Do it; when that was, seconds since the epoch."""
    moment = time.time()
    action()
    return moment
