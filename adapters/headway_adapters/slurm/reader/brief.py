"""What a listing of jobs is sorted by, and what its jobs mean for each other."""

from __future__ import annotations

import math

import msgspec

from headway_adapters.slurm import values
from headway_adapters.slurm.reader.arrays import elements_in
from headway_adapters.slurm.reader.documents import JobRecord
from headway_adapters.slurm.reader.states import job_state


class Brief(msgspec.Struct, frozen=True, gc=False):
    """What a listing is sorted by, of one record."""

    #: The record's own number.
    number: int
    #: As in the snapshot: the number, or ``array_task`` for an element that has a record of its own.
    job_id: str
    state: str
    outcome: str
    user: str
    name: str
    #: The leader's number, if the record is a component of a heterogeneous job; otherwise 0.
    leader: int = 0
    #: The array's number; 0 if it belongs to none.
    array: int = 0
    task: int | None = None
    #: The elements that have the record in common; None where it stands for one job.
    tasks: tuple[int, ...] | None = None
    #: It takes a place under its array's limit.
    active: bool = False
    #: Elements of the array that may run at a time; 0: any number.
    most: int = 0
    #: When it started (seconds), and its partitions, as far as Slurm says.
    start: float | None = None
    partitions: str = ""
    #: What it depends on, in Slurm's words.
    dependency: str = ""
    #: The elements that have the record in common, in Slurm's words.
    listed: str = ""

    @property
    def shared(self) -> int:
        """The array of elements that have the record in common."""
        return self.array or self.number

    @property
    def array_id(self) -> str:
        """The array of an element that has a record of its own; otherwise ""."""
        return str(self.array) if self.task is not None else ""

    @classmethod
    def of(cls, record: JobRecord, array_limit: int, notes: set[str]) -> Brief:
        """``array_limit``: of the elements that share a record so many are looked at."""
        number, array = values.integer(record.job_id), values.integer(record.array_job_id)
        state, outcome = job_state(record.job_state, record.nodes, notes)
        task = values.number(record.array_task_id) if array else None
        own = None if task is None or math.isinf(task) else int(task)
        listed = values.text(record.array_task_string) if values.number(record.array_task_id) is None else ""
        tasks = None
        leader = values.integer(record.het_job_id)
        # Components are no elements.
        if state == "pending" and listed and not leader:
            tasks = tuple(elements_in(array or number, listed, array_limit, notes))
        return cls(
            number=number,
            job_id=str(number) if own is None else f"{array}_{own}",
            state=state,
            outcome=outcome,
            user=values.text(record.user_name),
            name=values.text(record.name),
            leader=leader,
            array=array,
            task=own,
            tasks=tasks,
            active=own is not None and state != "ended" and (
                state != "pending" or values.integer(record.priority) > 0
            ),
            most=values.integer(record.array_max_tasks),
            start=values.seconds(record.start_time),
            partitions=values.text(record.partition),
            dependency=values.text(record.dependency),
            listed=listed,
        )  # fmt: skip
