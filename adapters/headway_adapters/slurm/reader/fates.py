"""What has become of the jobs that dependencies name, by the listing that shows the dependencies.

Slurm looks at the dependencies of a held job once a minute, and at the dependencies of a released job at
once, by the same rules as here. A job that it does not list any more (``MinJobAge``) is no condition for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headway_adapters.slurm import values
from headway_adapters.slurm.reader.arrays import elements_in
from headway_adapters.slurm.reader.documents import JobRecord
from headway_adapters.slurm.reader.states import job_state

#: What runs of namesakes, and what waits with the smallest number.
_Turns = tuple[Sequence[JobRecord], JobRecord | None]
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

    def __init__(self, records: Iterable[JobRecord], told: frozenset[str]) -> None:
        """``told``: the partitions of which headway tells the scheduler."""
        self._told = told
        self._jobs: dict[int, JobRecord] = {}
        self._arrays: dict[int, list[JobRecord]] = {}
        self._elements: dict[tuple[int, int], JobRecord] = {}
        self._namesakes: dict[tuple[str, str], list[JobRecord]] = {}
        for record in records:
            self._jobs[values.integer(record.job_id)] = record
            if array := values.integer(record.array_job_id):
                self._arrays.setdefault(array, []).append(record)
                if values.number(record.array_task_id) is not None:
                    self._elements[array, values.integer(record.array_task_id)] = record
            self._namesakes.setdefault(_named(record), []).append(record)
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

    def _judge(self, records: Sequence[JobRecord]) -> Fate | None:
        if not records:
            return None
        fates = [job_state(each.job_state, each.nodes, set()) for each in records]
        starts = [values.seconds(each.start_time) for each in records]
        return Fate(
            waits=any(state == "pending" for state, _ in fates),
            over=all(state == "ended" for state, _ in fates),
            well=all(outcome == "completed" for state, outcome in fates if state == "ended"),
            start=max((at for at in starts if at is not None), default=None),
            told=all(map(self.tells_of, records)),
        )

    def _records(self, number: int, task: int | None) -> Sequence[JobRecord]:
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
        if record is None or values.number(record.array_task_id) is not None:
            return frozenset()
        text = values.text(record.array_task_string)
        return frozenset(elements_in(array, text, _ALL, set()) if text else ())

    def tells_of(self, record: JobRecord) -> bool:
        """Whether headway tells the scheduler of a job."""
        return not self._told.isdisjoint(values.text(record.partition).split(","))

    def before(self, record: JobRecord) -> JobRecord | None:
        """A job of this name and user that a singleton waits for: what runs, or waits with a smaller number
        of its own. The rest of an array has the array's number."""
        own = values.integer(record.job_id)
        named = _named(record)
        if named not in self._turns:
            self._turns[named] = self._sort(named)
        running, first = self._turns[named]
        if first is not None and values.integer(first.job_id) < own:
            return first
        return next((other for other in running if values.integer(other.job_id) != own), None)

    def _sort(self, named: tuple[str, str]) -> _Turns:
        """What runs of these namesakes, and what waits with the smallest number."""
        running: list[JobRecord] = []
        first: JobRecord | None = None
        for record in self._namesakes.get(named, ()):
            state, _ = job_state(record.job_state, record.nodes, set())
            if state in ("starting", "running", "suspended"):
                running.append(record)
            elif state == "pending" and (
                first is None or values.integer(record.job_id) < values.integer(first.job_id)
            ):
                first = record
        return running, first


def _named(record: JobRecord) -> tuple[str, str]:
    return values.text(record.user_name), values.text(record.name)
