"""``dmtcp``: jobs that run under DMTCP are saved through their coordinator.

Ansel, Arya, Cooperman: DMTCP: Transparent Checkpointing for Cluster Computations and the Desktop
(IPDPS 2009). The job is started with ``dmtcp_launch --new-coordinator --port-file DIRECTORY/JOB/port
--ckptdir DIRECTORY/JOB``; begun anew, it runs ``dmtcp_restart_script.sh`` where there is one. Jobs on several
nodes are saved as a whole.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace

from pydantic import Field

from headway.adapter.migration import Move
from headway.errors import Failure
from headway_plugins.migration.dumping import Dumping
from headway_plugins.migration.programs import ProgramOptions
from headway_plugins.migration.relocation import Way

_PORT = re.compile(rb"\s*([0-9]{4,5})\s*")
_PORT_FILE = "port"
_SCRIPT = "dmtcp_restart_script.sh"


class DmtcpOptions(ProgramOptions):
    """The options of programs, and these."""

    program: str = Field(
        default="dmtcp_command", description="the program dmtcp_command, a name or an absolute path"
    )
    complete: str = Field(default=_SCRIPT, description="file that says that an image is complete")


class Dmtcp(Dumping):
    """Moves a job that runs under DMTCP: saves it through its coordinator, restarts it on the target.

    Needs DMTCP on the nodes, and jobs that were started with `dmtcp_launch`.
    """

    name = "dmtcp"
    Options = DmtcpOptions
    options: DmtcpOptions
    traits = replace(
        Dumping.traits, paper="Ansel, Arya, Cooperman: DMTCP: Transparent Checkpointing (IPDPS 2009)"
    )
    works = ("--version",)
    remedy = "install DMTCP, or disable this plugin"

    def suits(self, move: Move) -> str:
        if why := super().suits(move):
            return why
        place = self.images.place(move.job.id)
        return "" if (place / _PORT_FILE).is_file() else f"it has no coordinator ({place / _PORT_FILE})"

    def way(self) -> Way:
        return self.options.way("dump")

    def argv(self, node: str, port: int) -> tuple[str, ...]:
        """Save all processes of a coordinator; returns once their images are written."""
        return (self.options.program, "--coord-host", node, "--coord-port", str(port), "--bcheckpoint")

    def dump(self, move: Move) -> None:
        node = move.source[0][0]
        self._programs.run(node, move.job.user, self.argv(node, self._port(move.job.id)))

    def _port(self, job: str) -> int:
        """The coordinator's, which the job's user wrote down."""
        path = self.images.place(job) / _PORT_FILE
        try:
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            raise Failure(f"{path}: {error.strerror}") from error
        with os.fdopen(file, "rb") as opened:
            text = opened.read(20)
        found = _PORT.fullmatch(text)
        if found is None or not 1024 <= int(found[1]) <= 65535:
            raise Failure(f"{path}: expected a port of 1024 to 65535, found {text!r}")
        return int(found[1])
