"""The Slurms that tests can start: this machine's own packages, and 24.11 where a launcher of it is there.

The launcher of 24.11 is not part of this project: ``../shared/slurm/slurm24`` beside the checkout, or what
``HEADWAY_SLURM24`` names. Its ``prepare`` makes a small Debian 13 in a folder once; its other verbs are those
of ``integration/slurm/testcluster``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest
from waiting import HANG

from headway_adapters.lab.slurm import PACKAGES

#: Where administration commands are, for a PATH.
SYSTEM = ":/usr/sbin:/usr/bin:/sbin:/bin"
_TESTCLUSTER = Path(__file__).parent / "integration" / "slurm" / "testcluster"
_SHARED = Path(__file__).parents[2] / "shared"
_SLURM24 = Path(os.environ.get("HEADWAY_SLURM24") or _SHARED / "slurm" / "slurm24")


@dataclass(frozen=True)
class Release:
    """A Slurm that tests can start, and how."""

    name: str
    #: The command line that starts clusters, before its verb.
    launcher: tuple[str, ...]
    #: Why none can be started here; "" if one can.
    why_missing: Callable[[], str] = field(compare=False)
    #: Tests cannot do without it in CI.
    wanted: bool = True
    #: A Python that its jobs can run: they may be in another system.
    python: str = sys.executable
    #: Finds the directory of its commands; "": they are in PATH.
    find_commands: Callable[[], str] = field(default=lambda: "", compare=False)

    @property
    def commands(self) -> str:
        """The directory of its commands; "": they are in PATH."""
        return self.find_commands()

    def plugin(self, name: str) -> Path | None:
        """One of Slurm's plugins, such as ``auth_jwt.so``; None: it is not installed."""
        system = Path(self.commands).parent if self.commands else Path("/")
        return next(system.glob(f"usr/lib/*/slurm*/{name}"), None)

    def require(self) -> None:
        """Skips the test where this Slurm cannot be started; fails in CI where it is wanted."""
        if why := self.why_missing():
            if self.wanted and os.environ.get("CI", "").lower() == "true":
                pytest.fail(why)
            pytest.skip(why)

    def require_accounting(self) -> None:
        """Skips the test where this Slurm has no accounting: 24.11's launcher always has it."""
        programs = ("slurmdbd", "mariadbd") if self.name == "installed" else ()
        missing = [name for name in programs if shutil.which(name, path=SYSTEM) is None]
        if missing:
            packages = "slurmdbd, mariadb-server"
            pytest.skip(f"Slurm's accounting is not installed: {' '.join(missing)} ({packages})")


def _packages_missing() -> str:
    path = os.environ.get("PATH", "") + SYSTEM
    gone = sorted({pkg for program, pkg in PACKAGES.items() if shutil.which(program, path=path) is None})
    return f"Slurm is not installed; missing Debian packages: {' '.join(gone)}" if gone else ""


@cache
def _commands24() -> str:
    """The directory of 24.11's commands, as its launcher says it; "" where there is no launcher."""
    if not _SLURM24.is_file():
        return ""
    done = subprocess.run(
        [str(_SLURM24), "env", "/nowhere"], capture_output=True, text=True, timeout=HANG, check=True
    )
    return done.stdout.partition("PATH=")[2].partition(":")[0]


def _slurm24_missing() -> str:
    if not _SLURM24.is_file():
        return f"needs a launcher of Slurm 24.11: no file {_SLURM24}; set HEADWAY_SLURM24 to one"
    if os.geteuid() != 0:
        return "Slurm 24.11 needs root, for its folder of another Debian"
    if not Path(_commands24(), "scontrol").is_file():
        return f"Slurm 24.11 is not there yet: call {_SLURM24} prepare once"
    return ""


#: This machine's own.
INSTALLED = Release("installed", (sys.executable, str(_TESTCLUSTER)), _packages_missing)
SLURM24 = Release(
    "slurm24", (str(_SLURM24),), _slurm24_missing,
    wanted=_SLURM24.is_file(), python="/usr/bin/python3", find_commands=_commands24,
)  # fmt: skip
RELEASES = (INSTALLED, SLURM24)
