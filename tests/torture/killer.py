"""The killer at work, and what stands in for the service manager: a daemon that ended is started again."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from live_daemon import Daemon

from torture.history import History, Struck
from torture.kills import Kill
from torture.system import System

#: Seconds after which the killer strikes although headway decides no start, or has not started.
PATIENCE = {"deciding": 2.5, "running": 30.0}
#: Seconds after which a daemon that ended by itself is started again.
RESTART = 2.0
_WORDS = {"deciding": b'"decided"', "running": b'"event": "started"'}


class Killer:
    """Drives the daemon's process, the system's server and the nodes' daemons through a list of kills."""

    def __init__(self, system: System, daemon: Daemon, history: History) -> None:
        self.system, self.daemon, self.history = system, daemon, history
        self._log = _Tail(daemon.log_path)
        #: The process said that it has started.
        self._started = False
        #: Exits that nobody asked for: when, and with which code.
        self.ended: list[tuple[float, int]] = []
        self._ended_at = 0.0

    # -- the service manager ---------------------------------------------------------------------------

    def up(self) -> None:
        """The daemon runs, or is started; to be called often."""
        process = self.daemon.process
        if process is not None and process.poll() is not None:
            self.ended.append((time.time(), process.returncode))
            self.history.note(f"headway ended by itself: exit code {process.returncode}")
            self.daemon.process, self._ended_at = None, time.monotonic()
        elif process is None and time.monotonic() - self._ended_at > RESTART:
            self._started = False
            self._log.skip()
            self.daemon.start(await_log=False)

    def watch(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.up()
            time.sleep(min(left, 0.1))

    # -- the kills -----------------------------------------------------------------------------------

    def strike(self, kill: Kill) -> None:
        """Wait as it says, kill, wait, and start everything again."""
        self.up()
        if kill.moment != "starting":
            self._await("running")
        if kill.moment == "deciding":
            self._log.skip()
            self._await("deciding")
        self.watch(kill.wait)
        node = sorted(self.system.nodes)[kill.node % len(self.system.nodes)]
        at, saved = time.time(), None
        if "headway" in kill.targets:
            self._kill_daemon()
        if "server" in kill.targets:
            self.system.kill_server()
            saved = self.system.saved()
        if "node" in kill.targets:
            self.system.kill_node(node)
        if "headway" in kill.targets:
            time.sleep(kill.pause)
        else:
            self.watch(kill.pause)
        back = time.time()
        if "headway" in kill.targets:
            self._ended_at = 0.0
            self.up()
            self.history.strike(Struck("headway", at, back))
        if "server" in kill.targets:
            self.system.restart_server()
            self.history.strike(Struck("server", at, time.time(), saved))
        if "node" in kill.targets:
            self.system.restart_node(node)
            self.history.strike(Struck(f"node:{node}", at, time.time()))

    def _await(self, moment: str) -> None:
        end = time.monotonic() + PATIENCE[moment]
        while time.monotonic() < end and not (moment == "running" and self._started):
            self.up()
            if self._log.has(_WORDS[moment]):
                self._started = True
                return
            time.sleep(0.05)

    def _kill_daemon(self) -> None:
        process = self.daemon.process
        if process is None:
            return
        self.system.kill_daemon(self.daemon)
        process.wait(60)
        self.daemon.process = None

    def unexplained(self) -> Iterator[str]:
        """Exits of the daemon's own while the batch system was there."""
        for at, code in self.ended:
            outages = [one for one in self.history.struck if one.target == "server"]
            if not any(one.at - 1 <= at <= one.back + 30 for one in outages):
                yield f"exit code {code} at {at:.1f}"

    def stop(self) -> int:
        """End it in good order; its exit code."""
        self.watch(0.5)
        while self.daemon.process is None:
            self.watch(0.5)
        try:
            return self.daemon.stop(seconds=60)
        except subprocess.TimeoutExpired:
            self._kill_daemon()
            return -1


class _Tail:
    """Whether new lines of a log hold a word; reads each byte once."""

    def __init__(self, path: Path) -> None:
        self._path, self._at = path, 0

    def skip(self) -> None:
        self._at = self._path.stat().st_size if self._path.exists() else 0

    def has(self, word: bytes) -> bool:
        if not self._path.exists():
            return False
        with self._path.open("rb") as log:
            log.seek(self._at)
            text = log.read()
        self._at += len(text)
        return word in text
