"""What has become of the jobs that dependencies name, by the listing that shows the dependencies.

Slurm looks at the dependencies of a held job once a minute, and at those of a released job at once, by the
same rules as here. A job that it does not list any more (``MinJobAge``) is no condition for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from headway_adapters.slurm import values
from headway_adapters.slurm.reader.arrays import elements_in
from headway_adapters.slurm.reader.documents import JobRecord
from headway_adapters.slurm.reader.states import job_state

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
        self._namesakes: dict[tuple[str, str], list[JobRecord]] = {}
        for record in records:
            self._jobs[values.integer(record.job_id)] = record
            if array := values.integer(record.array_job_id):
                self._arrays.setdefault(array, []).append(record)
            self._namesakes.setdefault(_named(record), []).append(record)

    def of(self, number: int, task: int | None = None) -> Fate | None:
        """What has become of a job, an array or, with ``task``, an element; None: it is not listed."""
        if task is not None:
            records = [each for each in self._arrays.get(number, ()) if _has(each, number, task)]
        elif number in self._arrays:
            records = self._arrays[number]
        else:
            records = [self._jobs[number]] if number in self._jobs else []
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

    def tells_of(self, record: JobRecord) -> bool:
        """Whether headway tells the scheduler of a job."""
        return not self._told.isdisjoint(values.text(record.partition).split(","))

    def before(self, record: JobRecord) -> Iterator[JobRecord]:
        """The jobs of this name and user that a singleton waits for: what runs, and what waits with a
        smaller number of its own. The rest of an array has the array's number."""
        own = values.integer(record.job_id)
        for other in self._namesakes.get(_named(record), ()):
            number = values.integer(other.job_id)
            state, _ = job_state(other.job_state, other.nodes, set())
            runs = state in ("starting", "running", "suspended") and number != own
            if runs or (state == "pending" and number < own):
                yield other


def _named(record: JobRecord) -> tuple[str, str]:
    return values.text(record.user_name), values.text(record.name)


def _has(record: JobRecord, array: int, task: int) -> bool:
    """Whether a record of an array is that of an element, or has it among those that have none of their
    own."""
    own = values.number(record.array_task_id)
    if own is not None:
        return own == task
    return task in elements_in(array, values.text(record.array_task_string), _ALL, set())
