"""A bundle's database: SQLite, a single writer at a time, each change durable before it is acted upon.

The rollback journal is used instead of a write-ahead log: users' home directories are often on NFS.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from sqlalchemy import (
    Boolean,
    Column,
    Double,
    Integer,
    MetaData,
    Table,
    Text,
    create_engine,
    delete,
    event,
    insert,
    select,
)
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from headway.errors import Failure, Held
from headway.journal.lock import FileLock
from headway_plugins.bundling.live.state import State, Subjob
from headway_plugins.bundling.model import Interval

SCHEMA_VERSION = 2

metadata = MetaData()

bundle = Table(
    "bundle",
    metadata,
    Column("schema_version", Integer, nullable=False),
    Column("status", Text, nullable=False),
    Column("launch", Integer, nullable=False),
    Column("halted", Boolean, nullable=False),
    Column("signals", Integer, nullable=False),
    Column("signal", Text, nullable=False),
    Column("executions", Integer, nullable=False),
    Column("began", Double),
    Column("base", Double, nullable=False),
    Column("saved", Double, nullable=False),
    Column("saved_at", Double),
    Column("migrations", Integer, nullable=False),
    Column("first_start", Double),
    Column("ended", Double),
    Column("exit_code", Integer),
    Column("message", Text, nullable=False),
)
subjobs = Table(
    "subjobs",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("processors", Integer, nullable=False),
    Column("walltime", Double, nullable=False),
    Column("asked", Double, nullable=False),
    Column("job", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("submitted", Double),
    Column("started", Double),
    Column("end", Double),
    #: JSON: [[node, processors], ...].
    Column("placement", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("load", Integer, nullable=False),
    Column("member", Boolean, nullable=False),
)
intervals = Table(
    "intervals",
    metadata,
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("start", Double, nullable=False),
    Column("end", Double, nullable=False),
    Column("processors", Integer, nullable=False),
    Column("migrating", Boolean, nullable=False),
)
processes = Table(
    "processes",
    metadata,
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("processor", Text, nullable=False),
    #: JSON: [process, ...].
    Column("processes", Text, nullable=False),
)
notes = Table(
    "notes",
    metadata,
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("time", Double, nullable=False),
    Column("text", Text, nullable=False),
)
_SCALARS = (
    "status", "launch", "halted", "signals", "signal", "executions", "began", "base", "saved", "saved_at",
    "migrations", "first_start", "ended", "exit_code", "message",
)  # fmt: skip
_OF_SUBJOBS = (
    "number", "processors", "walltime", "asked", "job", "state", "submitted", "started", "end", "reason",
    "load",
)  # fmt: skip


class Store:
    """The database of a bundle. Raises :class:`Failure` with what is wrong with it, :class:`Held` if another
    manager writes to it."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self._path = path
        self._lock = None if read_only else FileLock(path)
        self._engine = _engine(path)
        self._written = b""
        if not read_only:
            with self._errors(), self._engine.begin() as connection:
                metadata.create_all(connection)

    def close(self) -> None:
        self._engine.dispose()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (DBAPIError, msgspec.DecodeError) as error:
            raise Failure(f"{self._path}: {getattr(error, 'orig', error)}") from error

    def save(self, state: State) -> None:
        """Write all of it in one transaction, if anything changed."""
        text = msgspec.json.encode(state)
        if text == self._written:
            return
        assert self._lock is not None
        self._lock.still_there()
        with self._errors(), self._engine.begin() as connection:
            for table in (bundle, subjobs, intervals, processes, notes):
                connection.execute(delete(table))
            row = {name: getattr(state, name) for name in _SCALARS}
            connection.execute(insert(bundle), [{"schema_version": SCHEMA_VERSION, **row}])
            _add(connection, subjobs, [
                {
                    **{name: getattr(one, name) for name in _OF_SUBJOBS},
                    "placement": msgspec.json.encode(one.placement).decode(),
                    "member": one.number in state.members,
                }
                for one in state.subjobs
            ])  # fmt: skip
            _add(connection, intervals, [
                {"position": at, **one._asdict()} for at, one in enumerate(state.intervals)
            ])  # fmt: skip
            _add(connection, processes, [
                {"position": at, "processor": key, "processes": msgspec.json.encode(held).decode()}
                for at, (key, held) in enumerate(state.layout.items())
            ])  # fmt: skip
            _add(connection, notes, [
                {"position": at, "time": when, "text": said} for at, (when, said) in enumerate(state.notes)
            ])  # fmt: skip
        self._written = text

    def load(self) -> State | None:
        """What was written last; None: nothing yet."""
        with self._errors(), self._engine.begin() as connection:
            row = connection.execute(select(bundle)).mappings().first()
            if row is None:
                return None
            if row["schema_version"] != SCHEMA_VERSION:
                raise Failure(
                    f"{self._path}: expected schema version {SCHEMA_VERSION}, found {row['schema_version']}"
                )
            jobs = connection.execute(select(subjobs).order_by(subjobs.c.number)).mappings().all()
            plan = connection.execute(select(intervals).order_by(intervals.c.position)).mappings()
            layout = connection.execute(select(processes).order_by(processes.c.position)).mappings()
            said = connection.execute(select(notes).order_by(notes.c.position)).mappings()
            return State(
                **{name: row[name] for name in _SCALARS},
                subjobs=[
                    Subjob(
                        **{name: one[name] for name in _OF_SUBJOBS},
                        placement=msgspec.json.decode(one["placement"], type=tuple[tuple[str, int], ...]),
                    )
                    for one in jobs
                ],
                members=[one["number"] for one in jobs if one["member"]],
                intervals=[
                    Interval(one["start"], one["end"], one["processors"], one["migrating"]) for one in plan
                ],
                layout={
                    one["processor"]: msgspec.json.decode(one["processes"], type=tuple[int, ...])
                    for one in layout
                },
                notes=[(one["time"], one["text"]) for one in said],
            )


def _add(connection: Connection, table: Table, rows: list[dict[str, object]]) -> None:
    if rows:
        connection.execute(insert(table), rows)


def _engine(path: Path) -> Engine:
    made = create_engine(f"sqlite:///{path}", poolclass=NullPool, connect_args={"timeout": 10.0})

    @event.listens_for(made, "connect")
    def _set_up(connection: object, _: object) -> None:
        connection.execute("PRAGMA synchronous=FULL")  # type: ignore[attr-defined]

    return made


def read(path: Path) -> State | None:
    """What a bundle's manager wrote last; None: nothing yet."""
    if not path.is_file():
        return None
    try:
        with Store(path, read_only=True) as store:
            return store.load()
    except Failure as error:
        if "no such table" in str(error):
            return None
        raise


def managed(path: Path, seconds: float = 0.0) -> bool:
    """Whether a manager holds the database; waits for that up to ``seconds``."""
    end = time.monotonic() + seconds
    while True:
        if path.is_file():
            try:
                FileLock(path).release()
            except Held:
                return True
        if time.monotonic() >= end:
            return False
        time.sleep(0.1)
