"""``checkpoint-signal``: applications that save themselves on a signal and go on from their file."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from headway.decisions import Checkpoint, Migrate, Requeue, Start
from headway.hookspecs import hookimpl
from headway.migration import MigrationHandler, Move, Reported
from headway_plugins.migration.options import ImageOptions
from headway_plugins.migration.ready import Ready
from headway_plugins.migration.relocation import Way
from headway_plugins.migration.saving import Saving


class SignalOptions(ImageOptions):
    """Those of images, and these."""

    signal: Annotated[str, Field(pattern=r"^(USR1|USR2|TERM|INT|HUP|URG)$")] = Field(
        default="USR1",
        description="what makes a job save itself",
    )
    ready: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$|^$")] = Field(
        default="ready",
        description=(
            "the file in its image directory with which each execution says that it can be "
            "signalled; empty: it always can. A job that is signalled before it catches the "
            "signal is ended by it"
        ),
    )
    attribute: str = Field(
        default="",
        description=("only jobs with this attribute (such as one that a submit filter sets); empty: all"),
    )


class CheckpointSignal(Saving):
    """Moves a job that saves itself on a signal and, started again, goes on from its file.

    The most common practice on supercomputers. The job writes into DIRECTORY/JOB and then the file
    `complete`, best with the checksums of `sha256sum`; begun anew it looks there first.
    """

    name = "checkpoint-signal"
    Options = SignalOptions
    needs = (Requeue, Start)
    gives = (Migrate, Checkpoint)

    def __init__(self, options: SignalOptions) -> None:
        super().__init__(options, (options.ready,) if options.ready else ())
        self.options = options
        self._ready = Ready(self.images, options.ready) if options.ready else None

    @hookimpl
    def migrate(self) -> MigrationHandler:
        return self

    def suits(self, move: Move) -> str:
        if why := super().suits(move):
            return why
        wanted = self.options.attribute
        if wanted and not (move.job.attributes or {}).get(wanted):
            return f"the job does not say {wanted!r}"
        return ""

    def prepare(self, move: Move) -> None:
        super().prepare(move)
        if self._ready is not None:
            self._ready.accept(move)

    def perform(self, move: Move, task: str) -> Reported:
        if task == "verify" and self._ready is not None:
            self._ready.withdraw(move.job.id)
        return super().perform(move, task)

    def way(self) -> Way:
        options = self.options
        return Way(
            saves="signal", signal=options.signal, save_seconds=options.timeout, ask_seconds=options.ask,
            leave_seconds=options.leave,
        )  # fmt: skip
