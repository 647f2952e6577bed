"""A page of ``etc/`` followed literally on a real server by its root; what is installed is this checkout."""

from __future__ import annotations

import re
import sys
import sysconfig
from pathlib import Path
from typing import Any

import yaml
from batch_servers import BatchServer
from real_systems import InsideDaemon
from waiting import until

ROOT = Path(__file__).parents[2]
#: How daily questions are asked, for all systems.
DRIVE = (ROOT / "docs" / "operators" / "drive.md").read_text(encoding="utf-8")
_HEADWAY = "from headway.cli import main; main()"


class Guide:
    """``etc/SYSTEM/README.md``, and a site that was installed as it says."""

    def __init__(self, server: BatchServer, directory: Path, places: dict[str, str], **config: Any) -> None:
        """``places``: what a site writes for the guide's own paths. ``config``: in the shipped file."""
        self.server = server
        self.text = (ROOT / "etc" / server.system / "README.md").read_text(encoding="utf-8")
        directory.chmod(0o755)
        state = directory / "state"
        state.mkdir()
        server.run("chown", "headway", str(state), user="root")
        self.as_headway, programs = _installed(server, directory)
        #: The daemon of the unit.
        self.daemon = InsideDaemon(server, state, {})
        self.places = {
            **programs, "/etc/headway/headway.yaml": str(self.daemon.config_path),
            "/var/lib/headway": str(state), **places,
        }  # fmt: skip
        self.daemon.program = server.inside(
            programs["/opt/headway/bin/headway"], user="headway" if self.as_headway else "root"
        )
        shipped = (ROOT / "etc" / server.system / "headway.yaml").read_text(encoding="utf-8")
        self.daemon.config = yaml.safe_load(self._here(shipped))
        self.daemon.configure(log={"format": "json"}, **config)
        self.daemon.config_path.chmod(0o644)

    def _here(self, text: str) -> str:
        for there, here in self.places.items():
            text = text.replace(there, here)
        return text

    def block(self, after: str, text: str = "") -> list[str]:
        """The lines of the first block of commands behind these words."""
        text = text or self.text
        return re.search(r"```sh\n(.*?)```", text[text.index(after) :], re.DOTALL)[1].splitlines()  # type: ignore[index]

    def follow(self, lines: list[str]) -> str:
        """Carry out these lines, one by one; what they printed."""
        return "".join(self._line(line) for line in lines)

    def _line(self, line: str) -> str:
        if line in ("systemctl stop headway", "systemctl restart headway"):
            if self.daemon.process is not None:
                assert self.daemon.stop() == 0
            if "restart" in line:
                self.daemon.start()
            return ""
        if not self.as_headway:
            line = line.removeprefix("runuser -u headway -- ")
        done = self.server.call("bash", "-c", self._here(line), user="root", timeout=120)
        # A check's exit code is its verdict.
        assert done.returncode in ((0, 1) if " check " in line else (0,)), (line, done)
        return done.stdout + done.stderr

    def until(self, condition: Any, what: str) -> None:
        until(condition, what, pause=0.3, said=self.daemon.log_path.read_text)


def failed(said: str, mark: str = "FAIL") -> list[str]:
    """The subjects of a check's lines that are not in order, or have to be before headway drives; ``mark``
    "?": that cannot be found out."""
    marks = (mark, "later") if mark == "FAIL" else (mark,)
    lines = [line for line in said.splitlines() if line.startswith(marks)]
    return [line.split(maxsplit=1)[1].split("  ")[0] for line in lines]


def _installed(server: BatchServer, directory: Path) -> tuple[bool, dict[str, str]]:
    """Whether the user headway can run this checkout, and programs of the names of an installation.

    Not with an interpreter in root's home; the system's own of the same version does.
    """
    packages = [ROOT / "framework", ROOT / "plugins", ROOT / "adapters", sysconfig.get_path("purelib")]
    here = ":".join(map(str, packages))
    for python, user in (
        (sys.executable, "headway"),
        ("/usr/bin/python3", "headway"),
        (sys.executable, "root"),
    ):
        start = ("env", f"PYTHONPATH={here}", python)
        if server.call(*start, "-c", _HEADWAY, "--version", user=user).returncode == 0:
            break
    bin_ = directory / "bin"
    bin_.mkdir()
    for name, more in (("headway", f" -c '{_HEADWAY}'"), ("python", "")):
        (bin_ / name).write_text(f'#!/bin/sh\nexec {" ".join(start)}{more} "$@"\n')
        (bin_ / name).chmod(0o755)
    return user == "headway", {f"/opt/headway/bin/{name}": str(bin_ / name) for name in ("headway", "python")}
