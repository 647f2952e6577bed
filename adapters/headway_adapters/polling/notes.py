"""What is odd, and what goes wrong beside the point: each is logged once, and nothing ends by it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from headway.errors import UserError

#: Characters of one note that are logged, and how many notes are remembered as logged.
_LONGEST = 300
_MOST = 10_000


class Notes:
    """What was logged once."""

    def __init__(self, system: str, log: Any) -> None:
        self._system = system
        self._log = log
        self._noted: set[str] = set()

    def odd(self, notes: Iterable[str]) -> None:
        """Log what is odd, each once. Users write parts of it: so it is shortened, and not all is kept."""
        short = {note if len(note) <= _LONGEST else f"{note[: _LONGEST - 3]}..." for note in notes}
        if len(self._noted) > _MOST:
            self._noted &= short
        for note in sorted(short - self._noted):
            self._noted.add(note)
            self._log.warning(f"odd in {self._system}'s output", what=note)

    @contextmanager
    def unforeseen(self, what: str, **about: str) -> Iterator[None]:
        """What goes wrong in here is logged, each mistake once, and has no effect elsewhere."""
        try:
            yield
        except UserError:
            raise
        except Exception as error:
            said = f"{what}: {type(error).__name__}: {error}"[:_LONGEST]
            if (key := f"{sorted(about.items())} {said}") not in self._noted:
                self._noted.add(key)
                self._log.error("a step failed; the other steps go on", what=said, **about, exc_info=error)
