"""What handlers share that save a job by running a program on its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from headway.adapter import Check
from headway_plugins.migration.programs import ProgramOptions, Programs
from headway_plugins.migration.saving import Saving


class Dumping(Saving):
    """A handler that dumps with a program. A subclass also says what :class:`Saving` wants."""

    #: The words with which the program says whether it can work.
    works: ClassVar[tuple[str, ...]]
    #: What to do if it cannot.
    remedy: ClassVar[str]

    def __init__(self, options: ProgramOptions) -> None:
        super().__init__(options)
        self._program = options.program
        self._programs = Programs(options.through, options.timeout)

    def check(self) -> Sequence[Check]:
        words = (self._program, *self.works)
        found = self._programs.check(f"migration: {self.name}", self._program, words, self.remedy)
        return [found, *super().check()]

    def stop(self) -> None:
        super().stop()
        self._programs.stop()
