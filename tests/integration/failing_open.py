"""A site that fails open: a Slurm behind the submit filter, a daemon with a heartbeat, and the timer.

systemd's timer is a loop here that runs the command of its service: ``headway give-back --all --if-silent``.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from live_daemon import Daemon, Diary
from waiting import HANG

from headway.inputs.shipped import shipped
from headway_adapters.polling.heartbeat import read_word

#: Seconds: after so many without a sign of life jobs are Slurm's, and between two runs of the timer.
PATIENCE, TIMER = 6, 2.0


def filter_with(heartbeat: Path, patience: int = PATIENCE) -> str:
    """The shipped submit filter that reads this heartbeat."""
    text = shipped("slurm/job_submit.lua").read_text()
    for old, new in (
        ('HEARTBEAT = "/run/headway/heartbeat"', f'HEARTBEAT = "{heartbeat}"'),
        ("PATIENCE = 300", f"PATIENCE = {patience}"),
    ):
        assert old in text
        text = text.replace(old, new)
    return text


class Timer(threading.Thread):
    """What systemd does with headway-give-back.timer, more often."""

    def __init__(self, daemon: Daemon) -> None:
        super().__init__(name="give-back timer", daemon=True)
        self._argv = [*daemon.program, "give-back", "--all", "--if-silent", "-c", str(daemon.config_path)]
        self._over = threading.Event()
        #: What it said, when it gave back.
        self.said: list[str] = []

    def run(self) -> None:
        while not self._over.wait(TIMER):
            done = subprocess.run(self._argv, capture_output=True, text=True, timeout=HANG)
            if done.stdout or done.stderr:
                self.said.append(done.stdout + done.stderr)

    def end(self) -> None:
        self._over.set()
        self.join(HANG)


@dataclass
class Round:
    """What one round showed, seconds from the kill."""

    #: Until Slurm started a job that was held when the daemon was killed.
    held: float
    #: And a job that came while the daemon was away.
    new: float
    #: From the start of the daemon until it had started a job.
    back: float
    #: slurmctld was restarted meanwhile; the daemon came back about when control was given back.
    restarted: bool
    early: bool


@dataclass
class Site:
    """The cluster, the daemon, the timer; and all jobs that were submitted."""

    cluster: Any
    daemon: Daemon
    timer: Timer
    heartbeat: Path
    diary: Diary
    jobs: list[str] = field(default_factory=list)

    def submit(self, processors: int, seconds: float) -> str:
        job: str = self.cluster.submit(processors, hold=False, script=self.diary.script(seconds))
        self.jobs.append(job)
        return job

    def reason(self, job: str) -> str:
        return str(self.cluster.jobs()[job]["state_reason"])

    def restart_slurmctld(self) -> None:
        self.cluster.saved()
        self.cluster.kill("slurmctld", "TERM")
        self.cluster.up("slurmctld")

    def began(self, job: str) -> float:
        return next(float(at) for what, name, at in self.diary.lines() if (what, name) == ("begin", job))

    def until(self, condition: Callable[[], object], what: str) -> None:
        self.cluster.until(condition, what=what)

    def round(self, rng: random.Random) -> Round:
        """The daemon drives, is killed for good, comes back and drives again."""
        restarts, early = rng.random() < 0.4, rng.random() < 0.3
        for _ in range(4):
            self.submit(4, round(rng.uniform(4.0, 6.0), 1))
        self.daemon.until(lambda: len(self.running()) >= 4, what="the cluster is full")
        held = self.submit(4, 0.5)
        self.daemon.until(
            # On a slow machine a processor may be free before.
            lambda: self.reason(held) == "JobHeldAdmin" or self.diary.begun()[held],
            what="the job is taken over",
        )
        time.sleep(rng.uniform(0.0, 1.0))
        killed = time.time()
        self.daemon.kill()
        if restarts:
            time.sleep(rng.uniform(0.0, PATIENCE + TIMER))
            self.restart_slurmctld()
        new = self.submit(1, 0.5)
        if early:
            # It comes back about when the timer gives back.
            time.sleep(max(0.0, killed + PATIENCE + rng.uniform(-0.5, TIMER) - time.time()))
        else:
            self.until(lambda: self.diary.begun()[held] and self.diary.begun()[new], "Slurm starts them")
        came = time.time()
        self.start_again()
        self.daemon.until(lambda: self.says_that_it_drives(came), what="the filter can know of it")
        mine = self.submit(1, 0.5)
        self.daemon.until(lambda: self.diary.begun()[mine], what="headway leads again")
        assert mine in {start.job_id for _, start in self.daemon.starts()}
        self.until(lambda: self.diary.begun()[held] and self.diary.begun()[new], "all have begun")
        waited = (self.began(held) - killed, self.began(new) - killed)
        return Round(*waited, self.began(mine) - came, restarts, early)

    def says_that_it_drives(self, since: float) -> bool:
        word = read_word(self.heartbeat.read_text())
        return word is not None and word.drives and word.at > since

    def start_again(self) -> None:
        """As systemd does: a daemon that ends because the timer has the journal is started again."""
        while not self._started():
            time.sleep(TIMER)

    def _started(self) -> bool:
        already = len(self.daemon.said("started"))
        self.daemon.start(await_log=False)
        process = self.daemon.process
        assert process is not None
        self.until(
            lambda: len(self.daemon.said("started")) > already or process.poll() is not None,
            "the daemon starts or ends",
        )
        assert process.poll() in (None, 1), self.daemon.log_path.read_text()
        return process.poll() is None

    def running(self) -> list[str]:
        return [job for job, record in self.cluster.jobs().items() if record["job_state"] == "RUNNING"]

    def finish(self) -> None:
        """All jobs have run, each once."""
        self.until(lambda: all(self.diary.ended()[job] for job in self.jobs), "all jobs come to their end")
        twice = {job: times for job, times in self.diary.begun().items() if times != 1}
        assert not twice, twice


@contextlib.contextmanager
def site(slurm_factory: Callable[..., Any], directory: Path) -> Iterator[Site]:
    """The site with its daemon and its timer."""
    # Where a Slurm in another system sees it.
    place = Path(tempfile.mkdtemp(prefix="hw-run-"))
    place.chmod(0o755)
    heartbeat = place / "heartbeat"
    script = directory / "job_submit.lua"
    script.write_text(filter_with(heartbeat))
    cluster = slurm_factory("--lua", str(script), "--set", "JobSubmitPlugins=lua")
    # By its comment it is seen when slurmctld has saved its state: its user holds it all along.
    cluster.submit(1, 1, administrator=False)
    daemon = Daemon(cluster, directory, options={"heartbeat": str(heartbeat), "patience": PATIENCE})
    timer = Timer(daemon)
    try:
        daemon.start()
        daemon.until(heartbeat.exists, what="the heartbeat")
        timer.start()
        yield Site(cluster, daemon, timer, heartbeat, Diary(cluster))
    finally:
        if timer.is_alive():
            timer.end()
        daemon.clean_up()
        shutil.rmtree(place, ignore_errors=True)
