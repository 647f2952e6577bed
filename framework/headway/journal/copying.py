"""A journal's content from one database into another, of whatever kind, verified row by row.

What is compared is each table's number of rows and a digest: the sum, modulo 2**256, of the SHA-256 of every
row. So neither side's order matters, which databases of different kinds do not share for texts.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, func, insert, select, text

from headway.errors import Failure
from headway.journal.schema import OF_A_RUN, about, metadata, runs

#: In the order in which rows can be inserted.
_TABLES = (about, runs, *reversed(OF_A_RUN))
_ROWS = 1000


class Digest(NamedTuple):
    """What a table has."""

    rows: int
    #: Of all rows, as hexadecimal digits.
    digest: str


def copy(source: Connection, target: Connection, name: str) -> dict[str, Digest]:
    """Make the tables in an empty database, in the transaction that is open there, and fill them; what each
    table has. ``name``: what the target is called in messages.

    Raises :class:`headway.errors.Failure` if the target has other rows than the source.
    """
    metadata.create_all(target)
    for table in _TABLES:
        for rows in _pages(source, table):
            target.execute(insert(table), rows)
    _number_on(source, target)
    found, expected = digests(target), digests(source)
    for table, digest in expected.items():
        if found[table] != digest:
            raise Failure(
                f"journal {name}: expected {digest.rows} rows in {table} with digest {digest.digest[:16]}, "
                f"found {found[table].rows} with {found[table].digest[:16]}: it was not kept"
            )
    return expected


def digests(connection: Connection) -> dict[str, Digest]:
    """Each table's rows, without the row of the owner: that belongs to the database."""
    return {table.name: _digest(connection, table) for table in _TABLES}


def _digest(connection: Connection, table: Table) -> Digest:
    count, total = 0, 0
    for rows in _pages(connection, table):
        count += len(rows)
        for row in rows:
            # Lone surrogates are escaped, and a NaN is a NULL in SQLite.
            values = [None if isinstance(v, float) and math.isnan(v) else v for v in row.values()]
            said = hashlib.sha256(json.dumps(values).encode("ascii"))
            total += int.from_bytes(said.digest(), "big")
    return Digest(count, f"{total % 2**256:064x}")


def _pages(connection: Connection, table: Table) -> Iterator[list[Mapping[str, Any]]]:
    found = connection.execute(select(table), execution_options={"yield_per": _ROWS}).mappings()
    for rows in found.partitions(_ROWS):
        yield [dict(row) for row in rows]


def _number_on(source: Connection, target: Connection) -> None:
    """The number of a run that was pruned is not given again."""
    last = _last_number(source)
    if target.dialect.name == "sqlite":
        target.execute(text("delete from sqlite_sequence where name = 'runs'"))
        target.execute(text("insert into sqlite_sequence(name, seq) values ('runs', :last)"), {"last": last})
    elif last:
        target.execute(text("select setval(pg_get_serial_sequence('runs', 'id'), :last)"), {"last": last})


def _last_number(source: Connection) -> int:
    if source.dialect.name == "sqlite":
        given = source.execute(text("select seq from sqlite_sequence where name = 'runs'")).scalar()
    else:
        given = source.execute(
            text("select pg_sequence_last_value(cast(pg_get_serial_sequence('runs', 'id') as regclass))")
        ).scalar()
    return max(given or 0, source.execute(select(func.max(runs.c.id))).scalar() or 0)
