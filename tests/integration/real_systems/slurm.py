"""A real Slurm of four nodes with four processors each; its user is nobody, an account of every Debian."""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from live_daemon import Daemon
from slurm_cluster import SlurmCluster
from waiting import HANG

from real_systems.base import EXECUTED, RealSystem

ETC = Path(__file__).parents[3] / "etc" / "slurm"
#: Words of its launcher: jobs enter held for headway.
FILTER = ("--lua", str(ETC / "job_submit.lua"), "--set", "JobSubmitPlugins=lua")
#: What would be another job's record in Slurm's text form, in one line and in several.
_RECORD = (
    "x JobId={job} JobName=x UserId=root(0) JobState=RUNNING NodeList=node1 NumCPUs=4",
    "x\n\nJobId={job} JobName=x\n   UserId=root(0) GroupId=root(0)\n   JobState=RUNNING Reason=None\n",
    'x","job_id":{job},"job_state":"RUNNING","name":"y',
)
#: The users that other systems' tests have -> accounts of every Debian.
ACCOUNTS = {"alice": "nobody", "bob": "bin"}
#: In a name, a comment, a key of a workload.
TEXTS = (
    "two words", "it's", 'say "hello"', EXECUTED, "ümläut ☃", "a<b>c,d|e", "back\\slash", "tab\there",
    "x" * 1000, "\x1b[2J\x07", "headway:pin=node1;cpus=4", "headway:held", "(null)", "%j %A\\n",
)  # fmt: skip


class Slurm(RealSystem):
    name = "slurm"
    nodes = 4
    processors = 4
    own_id = "$SLURM_JOB_ID"
    user = "nobody"
    queues = "partitions"

    def __init__(self, cluster: SlurmCluster, directory: Path) -> None:
        super().__init__(directory)
        self.cluster = cluster
        self.history = f"SLURM_CONF={cluster.conf} scontrol -d show job"

    def new_daemon(self, directory: Path, options: dict[str, Any], config: dict[str, Any]) -> Daemon:
        return Daemon(self.cluster, directory, options={"start_timeout": 60.0, **options}, **config)

    # -- users -------------------------------------------------------------------------------------

    def sbatch(self, *words: str, seconds: float = 600, user: str = user) -> str:
        """A job of the user's; its id."""
        argv = ("sbatch", "--parsable", "-o", "/dev/null", "-D", "/", *words, str(self.script(seconds)))
        return self.cluster.run(*argv, user=user).split(";")[0]

    def submit(
        self,
        processors: int = 1,
        seconds: float = 600,
        *,
        minutes: int = 10,
        nodes: int = 0,
        held: bool = False,
    ) -> str:
        words = [f"-n{processors}", f"-t{minutes}", *(["--hold"] if held else [])]
        words += [f"-N{nodes}", f"--ntasks-per-node={processors // nodes}"] if nodes else []
        return self.sbatch(*words, seconds=seconds)

    def impossible(self) -> list[str]:
        asked = (
            ("-n100000",),
            ("-N5", "-n5"),
            ("--mem=100000M",),
            ("--mem-per-cpu=100000M",),
            ("--tmp=9000M",),
        )
        return [self.sbatch(*words, "-t5") for words in asked]

    def hostile(self, victim: str) -> list[str]:
        texts = [*TEXTS, *(record.format(job=victim) for record in _RECORD)]
        found = [
            self.sbatch("-t5", "-J", text, f"--comment={text}", f"--wckey={text}", seconds=0.2)
            for text in texts
        ]
        # Where its output would be, and what it would be told of itself.
        record = _RECORD[0].format(job=victim).replace("/", "")
        return [*found, self.sbatch("-t5", "-o", f"/tmp/{record}", f"--export=A={record}", seconds=0.2)]

    def cancel(self, job: str) -> None:
        self.cluster.run("scancel", job)

    def _state(self, job: str, what: str = "%T") -> str:
        return self.cluster.run("squeue", "-h", "-a", "-j", job, "-o", what, check=False)

    def runs(self, job: str) -> bool:
        return self._state(job) == "RUNNING"

    def waits(self, job: str) -> bool:
        return self._state(job) == "PENDING"

    def taken_over(self, job: str) -> bool:
        return self._state(job, "%r") == "JobHeldAdmin"

    # -- its operator --------------------------------------------------------------------------------

    def everything(self) -> list[str]:
        # Why a job waits is found out when slurmctld looks at it first.
        reasons = ("squeue", "-h", "-a", "-t", "PD", "-o", "%r")
        self.cluster.until(lambda: "None" not in self.cluster.run(*reasons).split(), what="all are looked at")
        lines = self.cluster.scontrol("-d", "-o", "show", "job").splitlines()
        return [re.sub(r" (LastSchedEval|RunTime)=\S+", "", line).strip() for line in lines]

    def node_down(self) -> None:
        self.cluster.scontrol("update", "NodeName=node4", "State=DRAIN", "Reason=test")

    def node_up(self) -> None:
        # Slurm refuses it for a node that is not out of service.
        self.cluster.run("scontrol", "update", "NodeName=node4", "State=RESUME", check=False)

    @contextlib.contextmanager
    def another_pool(self) -> Iterator[str]:
        """A partition that the operator makes, on all nodes; it is deleted afterwards."""
        self.cluster.scontrol("create", "PartitionName=extra", "Nodes=ALL", "State=UP")
        try:
            yield "extra"
        finally:
            self.cluster.scontrol("delete", "PartitionName=extra")

    @contextlib.contextmanager
    def two_queues(self) -> Iterator[tuple[str, str]]:
        """Two partitions of headway's on all nodes, of the same tier."""
        with self.another_pool() as extra:
            try:
                yield "batch", extra
            finally:
                # Slurm does not delete a partition of which it knows a job.
                self.clean()

    def submit_to(
        self, queue: str, nodes: int, seconds: float, *, minutes: int = 20, user: str = "alice"
    ) -> str:
        """A job of so many whole nodes in this partition, held as by the filter; its id."""
        words = ("-p", queue, "--hold", f"-N{nodes}", f"--ntasks-per-node={self.processors}", f"-t{minutes}")
        job = self.sbatch(*words, seconds=seconds, user=ACCOUNTS[user])
        self.cluster.scontrol("update", f"JobId={job}", "Priority=0")
        return job

    def run_elsewhere(self, pool: str, processors: int) -> str:
        """A job that runs in a pool that is not headway's; its id."""
        job = self.sbatch("-p", pool, f"-n{processors}", "-t30")
        # The filter holds it as any job.
        self.cluster.run("scontrol", "release", job)
        self.cluster.until(lambda: self.runs(job), what="it runs")
        return job

    @contextlib.contextmanager
    def outage(self) -> Iterator[None]:
        # In good order: killed at once it forgets what it said last.
        self.cluster.kill("slurmctld", "TERM")
        try:
            yield
        finally:
            self.cluster.up("slurmctld")

    def clean(self) -> None:
        if left := self.cluster.run("squeue", "-h", "-a", "-o", "%A").split():
            self.cluster.run("scancel", *left)
        self.cluster.until(lambda: not self.cluster.run("squeue", "-h", "-a"), what="no job is left")
        self.node_up()

    def shell(self, line: str) -> str:
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=HANG)
        return done.stdout + done.stderr
