"""What a journal holds: its place and size, its runs, and what pruning would remove."""

from __future__ import annotations

import time

import msgspec
from sqlalchemy import Connection, Table, func, inspect, select

from headway.journal.database import Database
from headway.journal.lock import who_locks
from headway.journal.migrations import version_of
from headway.journal.pruning import over_before
from headway.journal.schema import about, cycles, decisions, events, owner, runs
from headway.model.modes import Mode


class RunSummary(msgspec.Struct, frozen=True):
    """A run. Times are seconds since the epoch."""

    id: int
    mode: str
    started_at: float
    #: None: it still goes on, or was killed.
    ended_at: float | None
    end_reason: str
    #: Of the headway that ran.
    version: str
    cycles: int
    events: int
    decisions: int


class Summary(msgspec.Struct, frozen=True):
    """A journal."""

    #: The file, or the URL without its password.
    place: str
    #: "SQLite" or "PostgreSQL".
    kind: str
    schema_version: int
    #: Which headway made it.
    created_by: str
    #: Bytes on disk.
    size: int
    runs: list[RunSummary]
    cycles: int
    events: int
    decisions: int
    #: When the first run began, and the last moment of which something is known, seconds since the epoch;
    #: None: it is empty.
    oldest: float | None
    newest: float | None
    #: The last process that wrote to it; "": none has.
    last_writer: str
    #: Whether that or another process has it open for writing now; None: that cannot be seen from here.
    being_written: bool | None
    #: The runs that pruning would remove.
    prunable: list[int]


def summary(database: Database, keep: float) -> Summary:
    """What is there. ``keep``: how long pruning would keep runs, seconds."""
    now = time.time()
    with database.snapshot() as connection:
        version = version_of(connection)
        assert version is not None
        counted = {table.name: _by_run(connection, table) for table in (cycles, events, decisions)}
        found = [
            RunSummary(
                **row._mapping,
                cycles=counted["cycles"].get(row.id, 0),
                events=counted["events"].get(row.id, 0),
                decisions=counted["decisions"].get(row.id, 0),
            )
            for row in connection.execute(
                select(
                    runs.c.id, runs.c.mode, runs.c.started_at, runs.c.ended_at, runs.c.end_reason,
                    runs.c.version,
                ).order_by(runs.c.id)
            )
        ]  # fmt: skip
        return Summary(
            place=database.name,
            kind="PostgreSQL" if database.path is None else "SQLite",
            schema_version=version,
            created_by=connection.execute(select(about.c.created_by)).scalar_one(),
            size=database.size(),
            runs=found,
            cycles=sum(counted["cycles"].values()),
            events=sum(counted["events"].values()),
            decisions=sum(counted["decisions"].values()),
            oldest=min((run.started_at for run in found), default=None),
            newest=newest_moment(connection),
            last_writer=_last_writer(connection),
            being_written=_being_written(database),
            prunable=over_before(connection, now - keep, now),
        )


def newest_moment(connection: Connection) -> float | None:
    """The last moment of which a journal knows something, seconds since the epoch; None: it has no run."""
    known = connection.execute(select(runs.c.id, runs.c.mode, runs.c.started_at, runs.c.ended_at)).all()
    moments = [moment for row in known for moment in (row.started_at, row.ended_at) if moment is not None]
    for row in known:
        # A dry run's cycles have a clock of their own.
        if row.ended_at is None and row.mode != Mode.DRY_RUN.value:
            last = (
                select(cycles.c.now).where(cycles.c.run_id == row.id).order_by(cycles.c.seq.desc()).limit(1)
            )
            moment = connection.execute(last).scalar()
            if moment is not None and moment == moment:
                moments.append(moment)
    return max(moments, default=None)


def _by_run(connection: Connection, table: Table) -> dict[int, int]:
    counted = select(table.c.run_id, func.count()).group_by(table.c.run_id)
    return {int(run): int(count) for run, count in connection.execute(counted).all()}


def _last_writer(connection: Connection) -> str:
    if not inspect(connection).has_table(owner.name):
        return ""
    return connection.execute(select(owner.c.holder)).scalar() or ""


def _being_written(database: Database) -> bool | None:
    if database.path is None:
        return None
    return bool(who_locks(database.path.stat().st_ino))
