"""Slurm's commands for one daemon, of which one is stopped on its way: after the daemon has looked whether it
may still act, and before slurmctld hears of it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import psutil
from waiting import until

#: What the adapter runs.
_PROGRAMS = (
    "sacct", "sacctmgr", "sbatch", "scancel", "scontrol", "sdiag", "sinfo", "sprio", "squeue", "sshare",
)  # fmt: skip
#: The daemon is stopped first, so it does nothing that it would do after this command.
_SCONTROL = """#!/bin/sh
if [ "$1" = update ] && read -r leader words 2>/dev/null <"{folder}/trap"; then
   case "$PPID $*" in
   "$leader "*"$words"*)
      if mv "{folder}/trap" "{folder}/sprung" 2>/dev/null; then
         kill -STOP "$leader"
         echo "$$ $*" >"{folder}/writing" && mv "{folder}/writing" "{folder}/caught"
         kill -STOP $$
         "{real}" "$@"
         code=$?
         echo "$code" >"{folder}/writing" && mv "{folder}/writing" "{folder}/came"
         exit $code
      fi ;;
   esac
fi
exec "{real}" "$@"
"""


class Trap:
    """A folder of commands, for ``bin_dir``."""

    def __init__(self, folder: Path, cluster: Any) -> None:
        folder.mkdir()
        self.folder = folder
        for name in _PROGRAMS:
            real = shutil.which(name, path=cluster.env["PATH"])
            assert real is not None, name
            if name != "scontrol":
                (folder / name).symlink_to(real)
                continue
            program = folder / name
            program.write_text(_SCONTROL.format(folder=folder, real=real))
            program.chmod(0o755)

    def set(self, leader: int, words: str) -> None:
        """Stop the next write of the process ``leader`` that has these words in it, and the process."""
        for name in ("sprung", "caught", "came"):
            (self.folder / name).unlink(missing_ok=True)
        ready = self.folder / "ready"
        ready.write_text(f"{leader} {words}\n")
        ready.rename(self.folder / "trap")

    def caught(self) -> tuple[int, str]:
        """The stopped command's process and its words; waits for it."""
        place = self.folder / "caught"
        until(place.exists, "a command is caught")
        number, _, words = place.read_text().strip().partition(" ")
        process = psutil.Process(int(number))
        until(lambda: process.status() == psutil.STATUS_STOPPED, "it is stopped")
        return int(number), words

    def let_go(self, number: int) -> None:
        """The command goes on."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGCONT)

    def came(self, number: int, seconds: float) -> int | None:
        """The command's exit code, within so many seconds; None if it was ended before it came to Slurm."""
        place, end = self.folder / "came", time.monotonic() + seconds
        while not place.exists() and psutil.pid_exists(number) and time.monotonic() < end:
            time.sleep(0.02)
        return int(place.read_text()) if place.exists() else None

    def clean_up(self) -> None:
        """No command stays stopped."""
        place = self.folder / "caught"
        if place.exists() and not (self.folder / "came").exists():
            self.let_go(int(place.read_text().partition(" ")[0]))
