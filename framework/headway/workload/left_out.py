"""What a reader leaves out of a file, line by line, so that nothing is lost in silence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headway.errors import UserError
from headway.workload.trace import RECORD, Issue


class WholeFile(UserError):
    """What is wrong with all of a file: no line of it may count, whatever the others say."""


class LeftOut:
    """The lines of a file that gave no job, and the lines that were corrected."""

    def __init__(self, source: str, strict: bool = False, unit: str = "line") -> None:
        """``source`` is the file, for messages. With ``strict`` a broken line is a :class:`UserError`.
        ``unit``: what is counted where a file has no lines."""
        self.source = source
        self.strict = strict
        self.unit = unit
        self.issues: list[Issue] = []

    def place(self, line: int) -> str:
        """Where a line is, for messages; ``line`` counts from 1."""
        return f"{self.source}, {self.unit} {line}"

    def note(self, line: int, kind: str, text: str) -> None:
        """Note something about a line; ``kind`` is one of :mod:`headway.workload.trace`."""
        self.issues.append(Issue(line, kind, text))

    @contextmanager
    def line(self, number: int) -> Iterator[None]:
        """Read one line: a :class:`UserError` says that it is broken, and it is left out unless
        ``strict``."""
        try:
            yield
        except UserError as error:
            if self.strict or isinstance(error, WholeFile):
                raise
            self.note(number, RECORD, str(error).removeprefix(f"{self.place(number)}: "))

    def nothing(self, expected: str) -> UserError:
        """The error of a file in which nothing was found, with the first line that was broken."""
        broken = next((issue for issue in self.issues if issue.kind == RECORD), None)
        first = f"; {self.unit} {broken.line_number}: {broken.text}" if broken else ""
        return UserError(f"{self.source}: expected {expected}, found none{first}")
