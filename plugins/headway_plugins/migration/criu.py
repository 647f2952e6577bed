"""``criu``: the processes of a job on one node are dumped by CRIU, and restored by the job begun anew.

Emelyanov et al., Checkpoint/Restore In Userspace, https://criu.org. The dump leaves the processes
stopped, so that what they write fits the image; they go on if the move is given up. The job's first
line restores the image where there is one: see the operators' guide.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from headway.adapter.migration import Move
from headway.errors import Failure
from headway_plugins.migration.dumping import Dumping
from headway_plugins.migration.programs import ProgramOptions
from headway_plugins.migration.relocation import Way

_NUMBER = re.compile(r"\s*([1-9][0-9]{0,9})\s*")
#: CRIU's last word, in its log.
_DONE = "Dumping finished successfully"


class CriuOptions(ProgramOptions):
    """The options of programs, and these."""

    program: str = Field(default="criu", description="the program criu, a name or an absolute path")
    finder: tuple[str, ...] = Field(
        default=("headway", "node-agent", "first-process"),
        description="command that prints the number of a job's first process on a node",
    )
    words: tuple[Annotated[str, Field(pattern=r"^--[a-z][a-z0-9=:/._-]*$")], ...] = Field(
        default=("--file-locks",),
        description="further arguments of `criu dump`",
    )
    complete: Annotated[str, Field(pattern=r"^$")] = Field(
        default="", description="always empty: `criu dump` itself reports that an image is complete"
    )
    settle: Annotated[float, Field(ge=0)] = Field(
        default=0.0, description="seconds without a change after which an image counts as complete"
    )


class Criu(Dumping):
    """Moves a job of one node by dumping its processes with CRIU and restoring them on the target.

    Needs CRIU on the nodes, with the rights that `criu check` wants, and a shared file system. It does
    not know jobs on several nodes, whose connections it would cut.
    """

    name = "criu"
    Options = CriuOptions
    options: CriuOptions
    traits = replace(
        Dumping.traits, paper="Emelyanov et al.: CRIU, Checkpoint/Restore In Userspace (criu.org)"
    )
    works = ("check",)
    remedy = "install criu (and a kernel that it supports), or disable this plugin"

    def suits(self, move: Move) -> str:
        if why := super().suits(move):
            return why
        if len({node for node, _ in move.source}) != 1 or len({node for node, _ in move.target}) > 1:
            return "it runs on several nodes"
        return ""

    def way(self) -> Way:
        return self.options.way("dump", leaves_stopped=True)

    def argv(self, process: int, directory: str) -> tuple[str, ...]:
        """The dump of a tree of processes."""
        return (
            self.options.program, "dump", "--tree", str(process), "--images-dir", directory,
            "--leave-stopped", "--shell-job", "--log-file", "dump.log", *self.options.words,
        )  # fmt: skip

    def dump(self, move: Move) -> None:
        job, user = move.job.id, move.job.user
        node = move.source[0][0]
        finder = [*self.options.finder, "--job", job, *(["--user", user] if user else [])]
        said = self._programs.run(node, user, finder)
        found = _NUMBER.fullmatch(said)
        if found is None:
            raise Failure(f"{finder[0]} on {node}: expected the number of a process, found {said[:80]!r}")
        place = self.images.place(job)
        self._programs.run(node, user, self.argv(int(found[1]), str(place)))
        log = place / "dump.log"
        try:
            last = log.read_text(errors="replace")[-2000:]
        except OSError as error:
            raise Failure(f"{log}: {error.strerror}") from error
        if _DONE not in last:
            raise Failure(f"{log}: expected {_DONE!r} at its end, found {last[-80:]!r}")
