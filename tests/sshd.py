"""A real sshd on a loopback port, run by the present user with keys of its own.

Fixtures ``sshd`` (one server) and ``sshd_factory`` (several, with settings) are in ``conftest.py``.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
from waiting import HANG, limit

SYSTEM = ":/usr/sbin:/usr/bin:/sbin:/bin"


def missing() -> list[str]:
    """Debian packages that are needed and not there."""
    path = os.environ.get("PATH", "") + SYSTEM
    programs = {"sshd": "openssh-server", "ssh-keygen": "openssh-client"}
    return sorted({package for program, package in programs.items() if not shutil.which(program, path=path)})


def make_key(path: Path, *, kind: str = "ed25519", passphrase: str = "") -> Path:
    """A key pair; the private half's path."""
    argv = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", path.name, "-f", str(path)]
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)
    return path


class Sshd:
    """One server."""

    def __init__(self, root: Path, *, key: Path | None = None, **settings: str) -> None:
        """``key``: the user's key that it takes; else it makes one. ``settings``: of sshd_config."""
        root.mkdir(parents=True, exist_ok=True)
        self.root = root
        self.user = psutil.Process().username()
        self.host_key = root / "host_key"
        if not self.host_key.exists():
            make_key(self.host_key)
        self.key = key or make_key(root / "user_key")
        shutil.copy(f"{self.key}.pub", root / "authorized_keys")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.known_hosts = root / "known_hosts"
        self.know()
        lines = {
            "ListenAddress": "127.0.0.1", "Port": str(self.port), "HostKey": str(self.host_key),
            "PidFile": "none", "AuthorizedKeysFile": str(root / "authorized_keys"), "StrictModes": "no",
            "UsePAM": "no", "PasswordAuthentication": "no", "KbdInteractiveAuthentication": "no",
            "PermitRootLogin": "prohibit-password", "LogLevel": "VERBOSE", "MaxStartups": "100",
            # A bash that is not the first shell leaves the user's own .bashrc alone, which may do anything.
            "SetEnv": "SHLVL=2",
            **settings,
        }  # fmt: skip
        config = root / "sshd_config"
        config.write_text("".join(f"{name} {value}\n" for name, value in lines.items()))
        self._config = config
        self._server: subprocess.Popen[bytes] | None = None
        self.start()

    def know(self) -> None:
        """Write the host key into this server's known_hosts file."""
        words = Path(f"{self.host_key}.pub").read_text().split()
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {words[0]} {words[1]}\n")

    def fingerprint(self) -> str:
        argv = ["ssh-keygen", "-lf", f"{self.host_key}.pub"]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split()[1]

    def start(self) -> None:
        if os.geteuid() == 0:
            # Where a server of root's shuts its unprivileged half in.
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        program = shutil.which("sshd", path=os.environ.get("PATH", "") + SYSTEM)
        assert program is not None
        # Its own environment reaches the commands: nothing of a test's may be in it by chance.
        with (self.root / "log").open("ab") as log:
            self._server = subprocess.Popen(
                [program, "-D", "-e", "-f", str(self._config)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={"PATH": "/usr/bin:/bin"},
            )  # fmt: skip
        end = time.monotonic() + limit()
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                assert self._server.poll() is None and time.monotonic() < end, self.log()
                time.sleep(0.02)

    def log(self) -> str:
        return (self.root / "log").read_text(errors="replace")

    def connections(self) -> list[psutil.Process]:
        """The server's children: a process for each connection."""
        assert self._server is not None
        return psutil.Process(self._server.pid).children()

    def cut(self) -> None:
        """End every connection as a crash would, and leave what runs in them."""
        for connection in self.connections():
            # A session's own process speaks to the client, as a child of the one that watches it.
            for process in [*connection.children(), connection]:
                if process.name().startswith("sshd"):
                    process.kill()

    def stop(self) -> None:
        """End the server and its connections."""
        if self._server is not None and self._server.poll() is None:
            processes = psutil.Process(self._server.pid).children(recursive=True)
            self._server.terminate()
            self._server.wait(HANG)
            for process in processes:
                if process.is_running():
                    process.kill()

    def options(self, **more: Any) -> dict[str, Any]:
        """What stands under ``ssh:`` to reach it."""
        return {
            "host": "127.0.0.1", "port": self.port, "user": self.user, "key_file": str(self.key),
            "known_hosts": str(self.known_hosts), "agent": False, **more,
        }  # fmt: skip
