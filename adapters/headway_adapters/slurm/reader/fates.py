"""What has become of the jobs that dependencies name, by the listing that shows the dependencies.

Slurm looks at the dependencies of a held job once a minute, and at the dependencies of a released job at
once, by the same rules as here. A job that it does not list any more (``MinJobAge``) is no condition for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from headway_adapters.slurm.reader.arrays import elements_in
from headway_adapters.slurm.reader.brief import Brief

#: What runs of namesakes, and what waits with the smallest number.
_Turns = tuple[Sequence[Brief], Brief | None]
#: More elements than any array has.
_ALL = 1 << 32


@dataclass(frozen=True)
class Fate:
    """What has become of a job, or of an array as a whole."""

    #: It has not started, or not all of the array has.
    waits: bool
    #: It is over, and so is all of the array.
    over: bool
    #: What is over of it was successful.
    well: bool
    #: When it, or the last of the array, started (absolute seconds); of a job that never did, when it was
    #: cancelled. None: Slurm does not say.
    start: float | None
    #: All of it is in partitions of which headway tells the scheduler.
    told: bool


class Fates:
    """The jobs of one listing, as dependencies name them."""

    def __init__(self, records: Sequence[Brief], told: frozenset[str]) -> None:
        """``told``: the partitions of which headway tells the scheduler."""
        self._told = told
        self._records_read = records
        self._jobs: dict[int, Brief] = {}
        self._arrays: dict[int, list[Brief]] = {}
        self._elements: dict[tuple[int, int], Brief] = {}
        for record in records:
            self._jobs[record.number] = record
            if record.array:
                self._arrays.setdefault(record.array, []).append(record)
                if record.task is not None:
                    self._elements[record.array, record.task] = record
        # Many may ask the same.
        self._answers: dict[tuple[int, int | None], Fate | None] = {}
        self._rests: dict[int, frozenset[int]] = {}
        self._turns: dict[tuple[str, str], _Turns] = {}

    def of(self, number: int, task: int | None = None) -> Fate | None:
        """What has become of a job, an array or, with ``task``, an element; None: it is not listed."""
        asked = number, task
        if asked not in self._answers:
            self._answers[asked] = self._judge(self._records(number, task))
        return self._answers[asked]

    def _judge(self, records: Sequence[Brief]) -> Fate | None:
        if not records:
            return None
        return Fate(
            waits=any(each.state == "pending" for each in records),
            over=all(each.state == "ended" for each in records),
            well=all(each.outcome == "completed" for each in records if each.state == "ended"),
            start=max((each.start for each in records if each.start is not None), default=None),
            told=all(map(self.tells_of, records)),
        )

    def _records(self, number: int, task: int | None) -> Sequence[Brief]:
        if task is None:
            if number in self._arrays:
                return self._arrays[number]
            return [self._jobs[number]] if number in self._jobs else ()
        if (number, task) in self._elements:
            return [self._elements[number, task]]
        # The rest of an array, none of which has a record of its own, has the array's number.
        if number not in self._rests:
            self._rests[number] = self._read_rest(number)
        return [self._jobs[number]] if task in self._rests[number] else ()

    def _read_rest(self, array: int) -> frozenset[int]:
        record = self._jobs.get(array)
        listed = record.listed if record is not None else ""
        return frozenset(elements_in(array, listed, _ALL, set()) if listed else ())

    def tells_of(self, record: Brief) -> bool:
        """Whether headway tells the scheduler of a job."""
        return not self._told.isdisjoint(record.partitions.split(","))

    def before(self, record: Brief) -> Brief | None:
        """A job of this name and user that a singleton waits for: what runs, or waits with a smaller number
        of its own. The rest of an array has the array's number."""
        named = record.user, record.name
        if named not in self._turns:
            self._turns[named] = self._sort(named)
        running, first = self._turns[named]
        if first is not None and first.number < record.number:
            return first
        return next((other for other in running if other.number != record.number), None)

    @cached_property
    def _namesakes(self) -> dict[tuple[str, str], list[Brief]]:
        """The jobs of each user and name."""
        found: dict[tuple[str, str], list[Brief]] = {}
        for record in self._records_read:
            found.setdefault((record.user, record.name), []).append(record)
        return found

    def _sort(self, named: tuple[str, str]) -> _Turns:
        """What runs of these namesakes, and what waits with the smallest number."""
        running: list[Brief] = []
        first: Brief | None = None
        for record in self._namesakes.get(named, ()):
            if record.state in ("starting", "running", "suspended"):
                running.append(record)
            elif record.state == "pending" and (first is None or record.number < first.number):
                first = record
        return running, first
