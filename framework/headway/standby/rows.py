"""The rows of a journal in a file, out of one database and into another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Table

from headway.errors import Failure
from headway.journal.schema import checkpoints, cycles, decisions, events, outcomes, runs
from headway.standby.frames import Place

#: Tables whose rows are only ever added, in the order in which they can be inserted.
ADDED: tuple[Table, ...] = (cycles, events, decisions, outcomes)
#: Rows of a table in one answer.
ROWS = 2000
_BY_NAME = {table.name: table for table in ADDED}


def keys(table: Table) -> list[str]:
    """The columns of its primary key."""
    return [column.name for column in table.primary_key.columns]


def names(table: Table) -> list[str]:
    """Its columns."""
    return [column.name for column in table.columns]


def last_place(connection: Connection, table: Table) -> Place:
    """The last row of a table."""
    key = keys(table)
    order = ", ".join(f"{name} desc" for name in key)
    row = connection.exec_driver_sql(
        f"select {', '.join(key)} from {table.name} order by {order} limit 1"
    ).first()
    return _place(row) if row is not None else (0, -1, -1)


def rows_behind(connection: Connection, table: Table, place: Place) -> list[list[Any]]:
    """At most :data:`ROWS` rows behind a place, in their order."""
    key = keys(table)
    marks = ", ".join("?" * len(key))
    found = connection.exec_driver_sql(
        f"select {', '.join(names(table))} from {table.name} where ({', '.join(key)}) > ({marks}) "
        f"order by {', '.join(key)} limit {ROWS}",
        tuple(place[: len(key)]),
    )
    return [list(row) for row in found]


def place_of(table: Table, row: Sequence[Any]) -> Place:
    """Where a row stands."""
    at = names(table)
    return _place([row[at.index(name)] for name in keys(table)])


def _place(key: Sequence[Any]) -> Place:
    run, seq, position = (*key, 0)[:3]
    return (int(run), int(seq), int(position))


def all_runs(connection: Connection) -> list[list[Any]]:
    """The rows of all runs, oldest first."""
    return [list(row) for row in connection.exec_driver_sql(_select(runs, "order by id"))]


def runs_from(connection: Connection, first: int) -> list[list[Any]]:
    """The rows of the runs from this one on."""
    return [
        list(row) for row in connection.exec_driver_sql(_select(runs, "where id >= ? order by id"), (first,))
    ]


def checkpoints_of(connection: Connection, run: int) -> list[list[Any]]:
    """The rows of a run's checkpoint."""
    found = connection.exec_driver_sql(_select(checkpoints, "where run_id = ? order by plugin"), (run,))
    return [list(row) for row in found]


def _select(table: Table, rest: str) -> str:
    return f"select {', '.join(names(table))} from {table.name} {rest}"


def add_runs(connection: Connection, rows: Sequence[Sequence[Any]]) -> None:
    """Insert runs, or what has come to their rows since; an end that is known stays."""
    known = names(runs)
    ended, reason = known.index("ended_at"), known.index("end_reason")
    for row in rows:
        _check(runs, row)
        connection.exec_driver_sql(_insert(runs), tuple(row))
        if row[ended] is not None:
            connection.exec_driver_sql(
                "update runs set ended_at = ?, end_reason = ? where id = ?",
                (row[ended], row[reason], row[known.index("id")]),
            )


def add_rows(connection: Connection, name: str, rows: Sequence[Sequence[Any]]) -> None:
    """Insert rows of one of :data:`ADDED`; what is there already stays. Raises :class:`Failure` for another
    table."""
    if name not in _BY_NAME:
        raise Failure(f"expected rows of {', '.join(_BY_NAME)}, found {name!r}")
    table = _BY_NAME[name]
    for row in rows:
        _check(table, row)
    if rows:
        connection.exec_driver_sql(_insert(table), [tuple(row) for row in rows])


def replace_checkpoints(connection: Connection, run: int, rows: Sequence[Sequence[Any]]) -> None:
    """A run's checkpoint is this from now on."""
    connection.exec_driver_sql("delete from checkpoints where run_id = ?", (run,))
    for row in rows:
        _check(checkpoints, row)
        connection.exec_driver_sql(_insert(checkpoints), tuple(row))


def _insert(table: Table) -> str:
    marks = ", ".join("?" * len(table.columns))
    return f"insert or ignore into {table.name} ({', '.join(names(table))}) values ({marks})"


def _check(table: Table, row: Sequence[Any]) -> None:
    plain = all(value is None or isinstance(value, str | int | float) for value in row)
    if len(row) != len(table.columns) or not plain:
        raise Failure(
            f"expected rows of {table.name} with the {len(table.columns)} values "
            f"{', '.join(names(table))}, found {str(row)[:80]}"
        )
