"""What a batch system of the lab is to the lab, and how its daemons are started and ended."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from headway.adapter.descendants import end_descendants, with_its_parent
from headway.errors import Failure

#: Seconds until a daemon that was asked to end is killed.
_PATIENCE = 10.0
#: Lines of a log that an error quotes.
_QUOTED = 15


@dataclass(frozen=True)
class Shape:
    """The cluster that is wanted."""

    nodes: int = 8
    #: Processors of each node.
    processors: int = 16
    #: Its own scheduler decides until a person gives the jobs to headway.
    fresh: bool = False


@dataclass(frozen=True)
class Access:
    """How the batch system is reached."""

    #: Name of the adapter, and of the user's side.
    adapter: str
    #: Options of the adapter, without its queues.
    options: Mapping[str, Any]
    #: The adapter's option that names the queues (partitions), and the queue.
    queues: str
    queue: str
    #: What a shell must export to reach it.
    environment: Mapping[str, str] = field(default_factory=dict)
    #: Commands of the batch system that are worth a try.
    commands: Sequence[str] = ()


class LabSystem(Protocol):
    """A batch system that lives as long as the lab does."""

    def start(self) -> Access:
        """Start it; it takes jobs then. Raises :class:`Failure` if it does not come up."""

    def stop(self) -> None:
        """End what is no process of :class:`Processes`."""


class Stopped(Exception):
    """The lab is to end now, since a signal says so."""


class Processes:
    """What was started, by name, in that order. Each ends with this process, however that ends."""

    def __init__(self, logs: Path, stop: threading.Event) -> None:
        """``logs`` receives what each process says. Once ``stop`` is set, :meth:`check` raises
        :class:`Stopped`: a signal's handler sets it, since an exception that a handler raises can be lost."""
        self.logs = logs
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._stop = stop

    def start(self, name: str, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start a program that stays in the foreground. Raises :class:`Failure`."""
        with self._log(name).open("ab") as log:
            try:
                self._running[name] = subprocess.Popen(
                    list(argv), env=dict(environment), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    cwd=self.logs, start_new_session=True, preexec_fn=with_its_parent(),
                )  # fmt: skip
            except OSError as error:
                raise Failure(f"{argv[0]} cannot be started: {error.strerror or error}") from error

    def check(self) -> None:
        """Raises :class:`Failure` with the end of its log if one of them has ended by itself, and
        :class:`Stopped`."""
        if self._stop.is_set():
            raise Stopped
        for name, process in self._running.items():
            code = process.poll()
            if code is not None:
                said = f":\n{tail}" if (tail := self.tail(name)) else ""
                raise Failure(f"{name} has ended by itself, with exit code {code}{said}")

    def tail(self, name: str) -> str:
        """The last lines of its log."""
        try:
            lines = self._log(name).read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return ""
        return "\n".join(f"  {line}" for line in lines[-_QUOTED:])

    def end(self) -> None:
        """End the last one first, each after it was asked to; then all that they left behind."""
        for process in reversed(self._running.values()):
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(_PATIENCE)
                except subprocess.TimeoutExpired:
                    process.kill()
        end_descendants()
        for process in self._running.values():
            process.wait()

    def _log(self, name: str) -> Path:
        return self.logs / f"{name}.log"
