"""Systems whose launcher gives them hosts of their own, which are namespaces; headway runs on the first."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from batch_servers import BatchServer, find_launcher
from live_daemon import Daemon

from torture.stream import Wanted
from torture.system import TIMEOUT, System


class InsideSystem(System):
    """A server of several equal hosts, started by its launcher under ``root``, with two users."""

    users: ClassVar[tuple[str, ...]] = ("alice", "bob")
    #: The launcher's hosts, and the processors of each.
    hosts: ClassVar[Mapping[str, int]]

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.nodes = self.hosts
        self.server = BatchServer(self.name, find_launcher(self.name), root)
        self.server.start("--hosts", str(len(self.hosts)), "--cpus", str(max(self.hosts.values())))

    def stop(self) -> None:
        self.server.stop()

    def call(self, *argv: str, user: str = "headway") -> subprocess.CompletedProcess[str]:
        """Run a command inside, whatever comes of it."""
        return self.server.call(*argv, user=user, timeout=TIMEOUT)

    def as_user(self, job: Wanted, *argv: str) -> subprocess.CompletedProcess[str]:
        """The same as the user of a job."""
        return self.call(*argv, user=self.users[job.user])

    def kill_daemon(self, daemon: Daemon) -> None:
        # The launcher's child dies with it, but not if it is killed in the moment of the child's birth.
        super().kill_daemon(daemon)
        command = f"\0run\0-c\0{daemon.config_path}\0".encode()
        while alive := [path for path in Path("/proc").glob("[0-9]*") if _calls(path, command)]:
            for path in alive:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(path.name), signal.SIGKILL)
            time.sleep(0.02)


def _calls(process: Path, command: bytes) -> bool:
    try:
        return process.joinpath("cmdline").read_bytes().endswith(command)
    except OSError:
        return False
