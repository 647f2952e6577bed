"""A real throw-away Slurm, and what tests do with it.

Which Slurm that can be stands in ``slurm_releases.py``. The fixtures that start one are in
``integration/conftest.py``.
"""

from __future__ import annotations

import getpass
import json
import os
import pwd
import signal
import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from slurm_releases import INSTALLED, SYSTEM, Release
from waiting import HANG, until

#: Commands that change nothing.
_READERS = frozenset({"squeue", "sinfo", "sacct"})


class SlurmCluster:
    """A running test cluster and what tests do with it."""

    def __init__(self, root: Path, release: Release = INSTALLED) -> None:
        self.root = root
        self.release = release
        conf = str(root / "etc" / "slurm.conf")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "SBATCH_", "SQUEUE_"))}
        commands = [release.commands] if release.commands else []
        path = ":".join([*commands, kept.get("PATH", "")]) + SYSTEM
        #: The environment that points Slurm's commands at this cluster.
        self.env: dict[str, str] = {**kept, "SLURM_CONF": conf, "PATH": path}
        self.conf = conf
        #: The adapter's options that do so.
        self.options: dict[str, Any] = {
            "slurm_conf": conf, **({"bin_dir": release.commands} if release.commands else {}),
        }  # fmt: skip

    def launcher(self, verb: str, *words: str) -> str:
        done = subprocess.run(
            [*self.release.launcher, verb, str(self.root), *words],
            capture_output=True, text=True, timeout=HANG,
        )  # fmt: skip
        assert done.returncode == 0, f"testcluster {verb}: {done.stderr}"
        return done.stdout

    def within(self, *argv: str) -> list[str]:
        """A command line that runs a program beside this Slurm's daemons, which may be in another system."""
        if self.release == INSTALLED:
            return list(argv)
        return [*self.release.launcher, "exec", str(self.root), "--", *argv]

    def call(
        self, *argv: str, user: str | None = None, timeout: float = HANG
    ) -> subprocess.CompletedProcess[str]:
        """Run a command against the cluster, whatever comes of it."""
        env = {**self.env, "LC_ALL": "C.UTF-8"}
        switch: dict[str, Any] = {}
        if user is not None and user != getpass.getuser():
            entry = pwd.getpwnam(user)
            env |= {"HOME": entry.pw_dir, "USER": user, "LOGNAME": user}
            switch = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": [], "cwd": "/"}
        try:
            return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=timeout, **switch)
        except OSError as error:
            # As a shell says of a program that the user cannot run.
            return subprocess.CompletedProcess(argv, 126, "", str(error))

    def run(self, *argv: str, user: str | None = None, check: bool = True) -> str:
        """Run a command against the cluster; what it printed."""
        done = self.call(*argv, user=user)
        if done.returncode == -signal.SIGPIPE and argv[0] in _READERS:
            # A busy server may hang up on a question.
            done = self.call(*argv, user=user)
        assert not check or done.returncode == 0, f"{argv}: {done.returncode} {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def scontrol(self, *words: str) -> str:
        return self.run("scontrol", *words)

    def submit(
        self,
        processors: int = 1,
        seconds: float = 60,
        *,
        nodes: int | None = None,
        hold: bool = True,
        administrator: bool = True,
        user: str | None = None,
        minutes: int = 5,
        script: str | None = None,
        **options: str | int | bool,
    ) -> str:
        """Submit a job that sleeps; its id.

        ``hold``: it enters held, as administrator if ``administrator``, which is how a job waits
        for headway; else as its user. More options of sbatch by name: ``exclusive=True``, ``array="1-4"``.
        """
        argv = ["sbatch", "--parsable", "-o", "/dev/null", "-D", "/", f"-n{processors}", f"-t{minutes}"]
        argv += [f"-N{nodes}"] if nodes is not None else []
        argv += ["--hold"] if hold else []
        for key, value in options.items():
            word = "--" + key.replace("_", "-")
            argv.append(word if value is True else f"{word}={value}")
        argv += ["--wrap", script or f"sleep {seconds}"]
        job_id = self.run(*argv, user=user).split(";")[0]
        if hold and administrator:
            self.scontrol("update", f"JobId={job_id}", "Priority=0")
        return job_id

    def jobs(self) -> dict[str, dict[str, Any]]:
        """Every job's record by id (array elements as ``12_3``), as ``squeue --json`` of 22.05 has it."""
        found = {}
        for written in json.loads(self.run("squeue", "--json", "-a", "-t", "all"))["jobs"]:
            record = {key: _plain(value) for key, value in written.items()}
            task = record["array_task_id"]
            key = str(record["job_id"]) if task is None else f"{record['array_job_id']}_{task}"
            found[key] = record
        return found

    def state(self, job_id: str) -> str:
        """A job's state, such as "RUNNING"; "" if Slurm does not list it."""
        return self.jobs().get(job_id, {}).get("job_state", "")

    def until(self, condition: Callable[[], object], seconds: float = HANG, what: str = "") -> None:
        """Wait until ``condition`` holds."""
        until(condition, what, seconds)

    def saved(self) -> None:
        """Wait until slurmctld has saved its state as it is now: it does so some seconds after a change,
        and forgets what is younger (submissions too) when it is killed.

        The comment of a job that is not over says when; without one there is nothing to wait for.
        """
        stays = {"PENDING", "RUNNING", "SUSPENDED"}
        jobs = {job: record for job, record in self.jobs().items() if record["job_state"] in stays}
        if not jobs:
            return
        job, record = min(jobs.items())
        mark = f"saved-{uuid.uuid4().hex}"
        self.scontrol("update", f"JobId={job}", f"Comment={mark}{record['comment']}")

        def written() -> bool:
            try:
                return mark.encode() in (self.root / "state" / "job_state").read_bytes()
            except FileNotFoundError:
                # It is being replaced.
                return False

        self.until(written, what="slurmctld has saved its state")

    def kill(self, daemon: str, signal: str = "KILL") -> None:
        """End a daemon ("slurmctld", "munged", a node's name), or send it another signal.

        Before killing slurmctld see :meth:`saved`.
        """
        self.launcher("kill", daemon, "--signal", signal)

    def up(self, daemon: str) -> None:
        """Start a daemon again with its saved state."""
        self.launcher("up", daemon)

    def stop(self) -> None:
        self.launcher("stop", "--purge")


def _plain(value: Any) -> Any:
    """A number or a state as 22.05 writes it: later versions write objects, and lists of words."""
    if isinstance(value, dict) and {"set", "infinite", "number"} <= value.keys():
        return value["number"] if value["set"] and not value["infinite"] else None
    if isinstance(value, list) and value and all(isinstance(word, str) and word.isupper() for word in value):
        # Slurm shows the flag for a job that has it.
        return "COMPLETING" if "COMPLETING" in value else value[0]
    return value
