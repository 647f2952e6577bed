"""A real PBS or LSF of several hosts, and what tests do with it.

They are started by launchers that are not part of this project: ``../shared/pbs/launcher`` and
``../shared/lsf/launcher`` beside the checkout, or what ``HEADWAY_PBS_TESTSERVER`` and
``HEADWAY_LSF_TESTSERVER`` name. A launcher starts what an administrator has installed on this machine, and
says so where nothing is. The fixtures are in ``conftest.py``.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from waiting import HANG, until

SHARED = Path(__file__).parents[2] / "shared"
#: Readable for the servers' users, too, unlike one in root's home.
SYSTEM_PYTHON = "/usr/bin/python3"
#: Seconds for which the administrator of an LSF waits for a killed mbatchd.
_PATIENCE = 20.0


class BatchServer:
    """A running test server: ``system`` is "pbs" or "lsf"; jobs of the users ``alice`` and ``bob``.

    Its users and its host names exist inside only, so commands run inside (:meth:`run`), as does a daemon
    (:meth:`inside`). The file system is the same on both sides, but for a few system directories.
    """

    def __init__(self, system: str, launcher: Path, root: Path) -> None:
        self.system = system
        self.root = root
        self._launcher = _fast(launcher)

    def launcher(self, verb: str, *words: str, timeout: float = 300) -> str:
        """Call the launcher; what it printed."""
        done = subprocess.run(
            [*self._launcher, verb, str(self.root), *words],
            capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, f"{self._launcher[-1]} {verb}: {done.stdout}{done.stderr}"
        return done.stdout

    def inside(self, *argv: str, user: str = "headway", host: str = "", cwd: str = "") -> list[str]:
        """The argument vector that runs a command inside; "root" is a user, too."""
        words = [*self._launcher, "exec", str(self.root)]
        words += ["--host", host] if host else []
        words += ["--as", user] if user != "root" else []
        words += ["--cwd", cwd] if cwd else []
        return [*words, "--", *argv]

    def call(
        self, *argv: str, user: str = "headway", host: str = "", stdin: str = "",
        environment: Mapping[str, str] | None = None, timeout: float = HANG,
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """Run a command inside, whatever comes of it."""
        return subprocess.run(
            self.inside(*argv, user=user, host=host), capture_output=True, text=True,
            errors="surrogateescape", timeout=timeout, input=stdin, env={**os.environ, **(environment or {})},
        )  # fmt: skip

    def run(self, *argv: str, user: str = "headway", host: str = "", stdin: str = "") -> str:
        """Run a command inside that must succeed; what it printed."""
        done = self.call(*argv, user=user, host=host, stdin=stdin)
        assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def headway_notes(self) -> None:
        """Let jobs of this PBS be told something, as its manager does once."""
        if self.call("qmgr", "-c", "list resource headway_notes").returncode:
            self.run("qmgr", "-c", "create resource headway_notes type=string, flag=r")

    def until(self, condition: Callable[[], object], what: str = "", seconds: float = HANG) -> None:
        """Wait until ``condition`` holds."""
        until(condition, what, seconds, pause=0.2)

    def kill(self, daemon: str, *words: str) -> None:
        """End a daemon: PBS's "server", "mom", ...; LSF's "mbatchd", "sbatchd", ..."""
        self.launcher("kill", daemon, *words)

    def restart(self, daemon: str, *words: str) -> None:
        """Start it again and wait for it."""
        self.launcher("restart", daemon, *words)

    @contextlib.contextmanager
    def lsf_outage(self) -> Iterator[None]:
        """Nobody answers for so long: without its sbatchd, too, mbatchd is not started again meanwhile."""
        self.kill("sbatchd", "-9", "--host", "lsfa")
        self.kill("mbatchd", "-9")
        try:
            yield
        finally:
            self.restart("sbatchd", "--host", "lsfa")

    @contextlib.contextmanager
    def lsf_configuration(self, name: str, more: str) -> Iterator[None]:
        """So much more stands in a file of LSF's configuration meanwhile, such as ``lsb.queues``."""
        path = self.root / "etc" / name
        before = path.read_text()
        path.write_text(before + more)
        try:
            self.lsf_reconfigure()
            yield
        finally:
            path.write_text(before)
            self.lsf_reconfigure()

    def lsf_reconfigure(self) -> None:
        """Let mbatchd read its configuration, and wait until it answers again."""
        self.run("badmin", "reconfig", user="volclava")
        self.mbatchd_comes_back()

    def mbatchd_comes_back(self) -> None:
        """Wait until LSF answers after the death of its mbatchd.

        sbatchd starts it again by itself, but waits half a minute longer with each death by the same signal
        that it has seen, of other tests, too. An administrator who does not wait starts sbatchd again.
        """
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            with contextlib.suppress(subprocess.TimeoutExpired):
                if self.call("bhosts", timeout=5).returncode == 0:
                    return
            time.sleep(0.2)
        self.restart("sbatchd", "--host", "lsfa")

    def start(self, *words: str) -> None:
        """Start it, with the launcher's words.

        On a busy machine a daemon may not answer yet when it is first asked for something; the launcher then
        ends everything and says so. A second failure is one.
        """
        try:
            self.launcher("start", *words)
        except AssertionError:
            self.stop()
            self.launcher("start", *words)
        if self.system == "pbs":
            # After qdel, PBS gives a job of several hosts all of this time, even where nothing of the job is
            # left; it is 10 s by default.
            for queue in ("workq", "hwtest"):
                self.run("qmgr", "-c", f"set queue {queue} kill_delay = 2", user="root")

    def stop(self) -> None:
        self.launcher("stop")


def why_missing(system: str) -> str:
    """Why no such server can be started here; "" if one can."""
    launcher = find_launcher(system)
    if not launcher.is_file():
        where = f"no file {launcher}; set {_variable(system)} to one"
        return f"needs a launcher of a real {system.upper()}: {where}"
    if os.geteuid() != 0:
        return f"a real {system.upper()} on several hosts needs root, for its namespaces"
    done = subprocess.run([str(launcher), "check"], capture_output=True, text=True, timeout=HANG)
    if done.returncode != 0:
        said = " ".join((done.stdout + done.stderr).split())
        what = "needs packages" if done.stdout.strip() else "cannot be started"
        return f"a real {system.upper()} {what}: {said}"
    return ""


def find_launcher(system: str) -> Path:
    """Where the launcher of this system would be."""
    given = os.environ.get(_variable(system))
    return Path(given) if given else SHARED / system / "launcher"


def is_promised(system: str) -> bool:
    """Whether the environment names a launcher: then a server that cannot be started is a failure in CI."""
    return bool(os.environ.get(_variable(system)))


def _variable(system: str) -> str:
    return f"HEADWAY_{system.upper()}_TESTSERVER"


def _fast(launcher: Path) -> list[str]:
    """How a launcher is called: one in Python by the system's own, as those commands are that it makes, and
    not by a ``python3`` in PATH that first chooses among versions. The tests call it a thousand times.
    """
    with launcher.open("rb") as file:
        any_python = file.readline().strip() == b"#!/usr/bin/env python3"
    python = [SYSTEM_PYTHON, "-I"] if any_python and os.access(SYSTEM_PYTHON, os.X_OK) else []
    return [*python, str(launcher)]
