"""What was asked of the batch system and of headway, and what they answered: the torture's own diary."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from torture.stream import Wanted


@dataclass(frozen=True)
class Asked:
    """A command about a job: between the moments ``asked`` and ``answered`` it took effect, or did not.

    ``accepted`` None: nobody answered, so what became of it is open. ``id``: what a submission answered.
    """

    number: int
    kind: str
    elements: tuple[int, ...]
    asked: float
    answered: float
    accepted: bool | None
    text: str
    id: str = ""


@dataclass(frozen=True)
class Struck:
    """A SIGKILL: who (with the node, for a node's daemon), when, and when it was there again.

    ``saved``: of a server that forgets, how far back its saved state goes.
    """

    target: str
    at: float
    back: float
    saved: float | None = None

    def forgets(self, at: float) -> bool:
        """Whether the server had not saved yet, to a second, what happened at this moment.

        What begins while it is dead, it had decided just before.
        """
        return self.saved is not None and self.saved - 1.0 <= at <= max(self.at + 1.0, self.back)


class History:
    """Kept in memory and, line by line, in a file. Several threads write."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a")
        self._lock = threading.Lock()
        self.wanted: dict[int, Wanted] = {}
        self.asked: list[Asked] = []
        self.struck: list[Struck] = []
        #: What headway did without being told: (moment, what).
        self.notes: list[tuple[float, str]] = []

    def want(self, job: Wanted) -> None:
        self._add(self.wanted.setdefault, job.number, job, record={"want": asdict(job)})

    def ask(self, asked: Asked) -> None:
        self._add(self.asked.append, asked, record={"asked": asdict(asked)})

    def strike(self, struck: Struck) -> None:
        self._add(self.struck.append, struck, record={"struck": asdict(struck)})

    def note(self, text: str) -> None:
        self._add(self.notes.append, (time.time(), text), record={"note": text, "at": time.time()})

    def _add(self, add, *what: object, record: dict[str, object]) -> None:  # type: ignore[no-untyped-def]
        with self._lock:
            add(*what)
            self._file.write(json.dumps(record) + "\n")
            self._file.flush()

    def about(self, number: int, *kinds: str) -> Iterator[Asked]:
        """The commands of these kinds about a job, in order."""
        return (one for one in list(self.asked) if one.number == number and one.kind in kinds)

    def upon(self, number: int, *kinds: str) -> Iterator[Asked]:
        """The commands of these kinds that hit a job, in order.

        Also those meant for an earlier one, which the system had forgotten when it gave its id again.
        """
        mine = self.submission(number)
        for one in list(self.asked) if mine is not None else ():
            meant = self.submission(one.number) if one.kind in kinds else None
            if meant is not None and meant.id == mine.id and one.asked >= mine.asked:
                yield one

    def submission(self, number: int) -> Asked | None:
        return next(self.about(number, "submit"), None)

    def job_of(self, job_id: str, at: float) -> Wanted | None:
        """Whose id this was at a moment: a system that forgot a submission may give its id again."""
        before = [
            one for one in self.asked if one.kind == "submit" and one.id == job_id and one.asked <= at + 1
        ]
        return self.wanted[before[-1].number] if before else None

    def present_id(self, number: int) -> str:
        """A job's id as long as the system has not given it to another one; "" else."""
        mine = self.submission(number)
        if mine is None or self.job_of(mine.id, time.time()) is not self.wanted[number]:
            return ""
        return mine.id

    def kills(self, target: str) -> list[Struck]:
        return [one for one in self.struck if one.target.split(":")[0] == target]
