"""The journal's tables.

A run has cycles, a cycle has events and decisions, a decision has at most one outcome. All rows
but a run's end are only ever added; a checkpoint replaces the checkpoint before it. Payloads are JSON (see
:mod:`headway.journal.encoding`), so that a journal can be read with any SQL tool.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    event,
)

from headway.journal.encoding import AnyText

#: Raised whenever the tables or the meaning of their contents change.
SCHEMA_VERSION = 1

metadata = MetaData()

#: One row; its presence makes a database a journal.
about = Table(
    "headway_journal",
    metadata,
    Column("schema_version", Integer, nullable=False),
    Column("created_by", AnyText, nullable=False),
)

#: One row: the journal's writer (:mod:`headway.journal.owner`). Not a change of the schema's version: the
#: table is made where it is missing, and a program that does not know it can read the rest.
owner = Table(
    "headway_owner",
    metadata,
    Column("number", BigInteger, nullable=False),
    Column("holder", AnyText, nullable=False),
    Column("since", Double, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("mode", AnyText, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("ended_at", Double),
    Column("end_reason", AnyText, nullable=False, server_default=""),
    Column("version", AnyText, nullable=False),
    Column("seed", AnyText, nullable=False),
    Column("config_text", AnyText, nullable=False),
    Column("cluster", AnyText, nullable=False),
    Column("plugin_states", AnyText, nullable=False),
    # An id is not given again after its run was pruned.
    sqlite_autoincrement=True,
)


def _run() -> Column[int]:
    return Column("run_id", Integer, ForeignKey("runs.id"), primary_key=True)


def _seq() -> Column[int]:
    return Column("seq", BigInteger, primary_key=True, autoincrement=False)


def _position() -> Column[int]:
    return Column("position", Integer, primary_key=True, autoincrement=False)


cycles = Table(
    "cycles",
    metadata,
    _run(),
    _seq(),
    # SQLite stores a NaN as NULL.
    Column("now", Double),
    sqlite_with_rowid=False,
)

events = Table(
    "events",
    metadata,
    _run(),
    _seq(),
    _position(),
    Column("time", Double),
    Column("kind", AnyText, nullable=False),
    Column("job_id", AnyText),
    # The other job of what concerns two, such as the swap of tiers.
    Column("other_job_id", AnyText),
    Column("payload", AnyText, nullable=False),
    sqlite_with_rowid=False,
)

decisions = Table(
    "decisions",
    metadata,
    _run(),
    _seq(),
    _position(),
    Column("time", Double),
    Column("kind", AnyText, nullable=False),
    Column("job_id", AnyText),
    Column("other_job_id", AnyText),
    Column("reason", AnyText, nullable=False),
    Column("payload", AnyText, nullable=False),
    sqlite_with_rowid=False,
)

outcomes = Table(
    "outcomes",
    metadata,
    _run(),
    _seq(),
    _position(),
    Column("accepted", Boolean, nullable=False),
    Column("message", AnyText, nullable=False),
    sqlite_with_rowid=False,
)

checkpoints = Table(
    "checkpoints",
    metadata,
    _run(),
    Column("plugin", AnyText, primary_key=True),
    Column("seq", BigInteger, nullable=False),
    Column("state", AnyText, nullable=False),
    sqlite_with_rowid=False,
)

for _table in (events, decisions):
    Index(f"{_table.name}_job_id", _table.c.job_id)
    Index(
        f"{_table.name}_other_job_id",
        _table.c.other_job_id,
        sqlite_where=_table.c.other_job_id.is_not(None),
    )


@event.listens_for(events, "before_create")
@event.listens_for(decisions, "before_create")
def _index_few_rows(table: Table, connection: Connection, **_: Any) -> None:
    """Let PostgreSQL's index of other jobs, too, have the rows that name one. SQLAlchemy loads all it has for
    PostgreSQL as soon as that is said, and most journals are files."""
    if connection.dialect.name == "postgresql":
        for index in table.indexes:
            if index.name == f"{table.name}_other_job_id":
                index.dialect_kwargs["postgresql_where"] = table.c.other_job_id.is_not(None)


#: What belongs to one run, dependants first.
OF_A_RUN = (checkpoints, outcomes, decisions, events, cycles)
