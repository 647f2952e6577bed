"""How often which program was run for the batch system, how long that took, and what became of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence

from headway.adapter import CommandCount
from headway_adapters.transport import Result

#: Programs that are told apart; the rest is counted as one. A site's own commands are few.
MOST_PROGRAMS = 50
REST = "other"


class CountedCommands:
    """Counts commands. Written and read by any thread."""

    def __init__(self, is_silence: Callable[[Result], bool]) -> None:
        """``is_silence``: whether a failed command failed because the batch system did not answer."""
        self._is_silence = is_silence
        self._lock = threading.Lock()
        #: Program -> outcome -> how many, and seconds of them all.
        self._counts: dict[str, dict[str, tuple[int, float]]] = {}

    def count(self, results: Iterable[Result]) -> None:
        """These have been run."""
        told = [(_program(one.argv), self._outcome(one), one.seconds) for one in results]
        with self._lock:
            for program, outcome, seconds in told:
                if program not in self._counts and len(self._counts) >= MOST_PROGRAMS:
                    program = REST
                known = self._counts.setdefault(program, {})
                number, spent = known.get(outcome, (0, 0.0))
                known[outcome] = number + 1, spent + seconds

    def _outcome(self, result: Result) -> str:
        if result.ok:
            return "done"
        if result.unanswered:
            return "unknown"
        return "silent" if self._is_silence(result) else "failed"

    def told(self, cluster: str) -> Sequence[CommandCount]:
        """All that was counted."""
        with self._lock:
            return [
                CommandCount(cluster, program, outcome, number, seconds)
                for program, known in self._counts.items()
                for outcome, (number, seconds) in known.items()
            ]


def _program(argv: Sequence[str]) -> str:
    """A program's name without its folder."""
    return argv[0].rpartition("/")[2] if argv else REST
