"""Which runs are old enough to be removed, and how they are removed.

A run goes as a whole. The run that is being written is never removed, nor is what a restart looks at: the
newest run of each mode, since plugins continue with its checkpoint, and each run that was not over
:data:`headway.journal.recovery.LOOKED_BACK` ago.

Beside a daemon a run's own row goes first, in a transaction of its own, then the rest bit by bit, so that the
daemon never waits for long. What an interrupted removal left is removed by the next.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing
from typing import Any, NamedTuple, Protocol

import msgspec
from sqlalchemy import Connection, Table, delete, func, select

from headway.errors import Held
from headway.journal.database import Database
from headway.journal.recovery import LOOKED_BACK
from headway.journal.schema import OF_A_RUN, runs

#: Cycles whose rows go in one transaction beside a daemon: some milliseconds.
_CYCLES = 200


class Pruned(NamedTuple):
    """What was removed."""

    runs: list[int]
    #: Bytes that the file system has back.
    bytes: int
    #: Whether another process writes to the journal: then the space is used again, but not given back.
    beside: bool


class PruneReport(msgspec.Struct, frozen=True):
    """What was removed, or would be (``dry_run``): see :class:`Pruned`."""

    runs: list[int]
    bytes: int
    beside: bool
    dry_run: bool


class Writing(Protocol):
    """Opens a transaction that writes; it is on disk when the block has been left."""

    def __call__(self) -> AbstractContextManager[Connection]: ...


def over_before(connection: Connection, before: float, now: float) -> list[int]:
    """The runs, oldest first, that were over before this time and that nothing needs; both times are seconds
    since the epoch.

    A run that was killed was over when the next one began.
    """
    rows = connection.execute(
        select(runs.c.id, runs.c.mode, runs.c.started_at, runs.c.ended_at).order_by(runs.c.id)
    ).all()
    newest = set({row.mode: row.id for row in rows}.values())
    until = min(before, now - LOOKED_BACK)
    found = []
    for row, following in itertools.pairwise(rows):
        over = row.ended_at if row.ended_at is not None else following.started_at
        if over < until and row.id not in newest:
            found.append(row.id)
    return found


def prune(place: str, before: float) -> Pruned:
    """Remove old runs of a journal, whether a process writes to it or not.

    ``before``: seconds since the epoch. Raises as :class:`Database` does, without
    :class:`headway.errors.Held`.
    """
    try:
        database = Database(place, create=False, read_only=False)
    except Held:
        return _prune_beside(place, before)
    with closing(database):
        size = database.size()
        old = prune_open(database, before)
        return Pruned(old, size - database.size(), beside=False)


def prune_open(database: Database, before: float) -> list[int]:
    """Remove old runs of a journal that this process writes to, and give the space back; which."""
    with database.writing() as connection:
        old = over_before(connection, before, time.time())
        left = leftovers(connection)
        _remove(connection, [*old, *left])
    if old or left:
        database.compact()
    return old


def _prune_beside(place: str, before: float) -> Pruned:
    with closing(Database(place, create=False, read_only=True)) as database:
        with database.reading() as connection:
            old = over_before(connection, before, time.time())
        if database.path is not None:
            _remove_beside(database.writing_beside, old)
        else:
            with database.writing_beside() as connection:
                _remove(connection, old)
        return Pruned(old, 0, beside=True)


def _remove(connection: Connection, old: Sequence[int]) -> None:
    """Remove these runs in the transaction that is open."""
    for run in old:
        for table in OF_A_RUN:
            connection.execute(delete(table).where(table.c.run_id == run))
        connection.execute(delete(runs).where(runs.c.id == run))


def _remove_beside(writing: Writing, old: Sequence[int]) -> None:
    """Remove these runs, and what earlier removals left, of an SQLite journal that another process writes
    to."""
    with writing() as connection:
        connection.execute(delete(runs).where(runs.c.id.in_(old)))
        left = leftovers(connection)
    for run in left:
        for table in OF_A_RUN:
            began = time.monotonic()
            while _some(writing, table, run):
                # The writer waits at most as often as not.
                time.sleep(time.monotonic() - began)
                began = time.monotonic()


def leftovers(connection: Connection) -> list[int]:
    """The numbers of runs that have rows but are not there any more."""
    known = set(connection.execute(select(runs.c.id)).scalars())
    return sorted({run for table in OF_A_RUN for run in _numbers(connection, table)} - known)


def _some(writing: Writing, table: Table, run: int) -> bool:
    """Remove the rows of some cycles; whether there were any."""
    of_run = table.c.run_id == run
    with writing() as connection:
        first = connection.execute(select(func.min(table.c.seq)).where(of_run)).scalar()
        if first is not None:
            connection.execute(delete(table).where(of_run, table.c.seq < first + _CYCLES))
    return first is not None


def _numbers(connection: Connection, table: Table) -> Iterator[int]:
    """The runs that have rows in a table: one look into its index each."""
    last: Any = None
    while True:
        query = select(func.min(table.c.run_id))
        last = connection.execute(query if last is None else query.where(table.c.run_id > last)).scalar()
        if last is None:
            return
        yield int(last)
