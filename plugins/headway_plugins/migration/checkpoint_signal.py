"""``checkpoint-signal``: applications that save themselves on a signal and go on from their file."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from headway.adapter.migration import Move, Reported
from headway_plugins.migration.options import ImageOptions
from headway_plugins.migration.ready import Ready
from headway_plugins.migration.relocation import Way
from headway_plugins.migration.saving import Saving


class SignalOptions(ImageOptions):
    """The options of images, and these."""

    signal: Annotated[str, Field(pattern=r"^(USR1|USR2|TERM|INT|HUP|URG)$")] = Field(
        default="USR1",
        description="signal on which a job saves itself",
    )
    ready: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$|^$")] = Field(
        default="ready",
        description=(
            "file in the image directory by which each execution says that it catches the signal; empty: "
            "every job always catches it. The signal ends a job that does not catch it yet"
        ),
    )


class CheckpointSignal(Saving):
    """Moves a job that saves itself on a signal and, started again, goes on from its file.

    The most common practice on supercomputers. The job writes into DIRECTORY/JOB and then the file
    `complete`, best with the checksums of `sha256sum`; begun anew it looks there first.
    """

    name = "checkpoint-signal"
    Options = SignalOptions
    options: SignalOptions

    def __init__(self, options: SignalOptions) -> None:
        super().__init__(options, (options.ready,) if options.ready else ())
        self._ready = Ready(self.images, options.ready) if options.ready else None

    def prepare(self, move: Move) -> None:
        super().prepare(move)
        if self._ready is not None:
            self._ready.accept(move)

    def perform(self, move: Move, task: str) -> Reported:
        if task == "verify" and self._ready is not None:
            self._ready.withdraw(move.job.id)
        return super().perform(move, task)

    def way(self) -> Way:
        return self.options.way("signal", signal=self.options.signal)
