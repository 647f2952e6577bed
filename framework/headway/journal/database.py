"""Opening the database under a journal, and what can go wrong with it.

SQLite runs in WAL mode with ``synchronous=FULL``: each commit ends with an fsync of the log, so it
survives SIGKILL and power loss. Readers never block the writer. WAL needs a local file system; a
journal does not belong on NFS.
"""

from __future__ import annotations

import math
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import create_engine, event, insert, inspect
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from headway.errors import Damaged, Failure, HeadwayError, UserError
from headway.inputs.database_url import database_url
from headway.journal.lock import FileLock, close_to_others, take_advisory_lock
from headway.journal.migrations import carry_forward, check_read_only, check_version
from headway.journal.owner import still_ours, take_over
from headway.journal.schema import SCHEMA_VERSION, about, metadata
from headway.version import __version__

#: Seconds that SQLite waits for another process's lock, such as a shell's.
BUSY_TIMEOUT = 5.0
#: Seconds that a process beside the writer waits: it is in no hurry, and the writer may come first each time.
PATIENCE = 120.0
#: SQLite's steps between two looks at whether a reader's time is over.
_STEPS = 10_000

_SQLITE_MAGIC = b"SQLite format 3\0"

#: What SQLite says, and what it means to a person.
_MEANINGS = {
    "database or disk is full": "the disk is full",
    "attempt to write a readonly database": "the file is read-only",
    "database is locked": "another program has locked it",
    "unable to open database file": "the file or its directory cannot be opened or written",
    "disk I/O error": "the file cannot be read or written (disk, quota or file size limit)",
    "interrupted": "it took too long",
}


class Database:
    """An open journal database that was found to be a journal of our schema.

    ``name`` is what messages call it. ``connection`` is the only connection that writes, None for a
    reader; it holds the lock that keeps other writers out.

    Raises UserError for a wrong URL, a missing directory or file, a file that is no journal, a
    journal of a newer schema; Held for a journal that another process writes to; Failure when the
    database cannot be reached, read or written, Damaged when it says of itself that it is broken.
    ``at_least``: the number of the writer (:mod:`headway.journal.owner`). ``seconds``: of a reader, after
    which what it asks for in one transaction is given up, also where a server does not answer.
    """

    def __init__(
        self,
        url_or_path: str | Path,
        *,
        create: bool,
        read_only: bool,
        at_least: int = 0,
        seconds: float | None = None,
    ) -> None:
        url = database_url(url_or_path, "journal")
        self.path: Path | None = None
        self.connection: Connection | None = None
        self._file_lock: FileLock | None = None
        #: Whether there was no journal before.
        self.fresh = False
        #: Our number in the row of the owner.
        self._number: int | None = None
        self._at_least = at_least
        if url.get_backend_name() == "sqlite":
            self.path = Path(url.database or "")
            self.name = str(self.path)
            _check_file(self.path, create=create and not read_only)
            self.engine = sqlite_engine(self.path, read_only=read_only, seconds=seconds)
        else:
            self.name = url.render_as_string(hide_password=True)
            self.engine = postgresql_engine(url) if seconds is None else _bounded_postgresql(url, seconds)
        try:
            if read_only:
                with self.reading() as connection:
                    _check_schema(connection, self.name)
                    check_read_only(connection, self.name)
            else:
                if self.path is not None:
                    self._file_lock = FileLock(self.path)
                self._connect_writer(create=create)
        except BaseException:
            self.close()
            raise

    @property
    def number(self) -> int:
        """The writer's number: no writer before had it, or a higher one. 0: it is not open for writing."""
        return self._number or 0

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection in a read transaction: one consistent view of what was committed."""
        with self._errors("read"), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """A connection all of whose reads see the same moment, however long they take."""
        with self._errors("read"), self.engine.connect() as connection:
            if self.path is None:
                connection.execution_options(isolation_level="REPEATABLE READ")
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """The writing connection in a transaction, which is durable when the block has been left.

        An error in it leaves the journal as it was before.
        """
        if self.connection is None:
            raise ValueError(f"journal {self.name} is not open for writing")
        if self._file_lock is not None:
            self._file_lock.still_there()
        with self._errors("write"):
            if self.connection.invalidated:
                # A server's connection broke, and with it our lock.
                self.connection.close()
                self._connect_writer(create=False)
            with self.connection.begin():
                assert self._number is not None
                still_ours(self.connection, self._number, self.name)
                yield self.connection

    @contextmanager
    def writing_beside(self) -> Iterator[Connection]:
        """A transaction beside the journal's writer, which waits for it: for what changes nothing that the
        writer reads or wrote, and is over at once."""
        engine = self.engine if self.path is None else sqlite_engine(self.path, patient=True)
        with self._errors("write"), engine.connect() as connection:
            connection = connection.execution_options(headway_writes=True)
            with connection.begin():
                yield connection

    def compact(self) -> None:
        """Give the space of deleted rows back to the file system. Readers wait meanwhile."""
        with self._errors("compact"):
            if self.path is None:
                with self.engine.connect() as connection:
                    connection.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql(
                        "VACUUM (FULL) " + ", ".join(metadata.tables)
                    )
            elif self.connection is not None:
                _outside_transaction(self.connection, "VACUUM")
                _outside_transaction(self.connection, "PRAGMA wal_checkpoint(TRUNCATE)")

    def faults(self, seconds: float) -> list[str] | None:
        """What SQLite finds wrong in the file's structure, [] if nothing; None if it could not look at
        all of it in so many seconds. A server keeps its own house: []."""
        return self._looked("quick_check(20)", time.monotonic() + seconds)

    def structure(self) -> list[str]:
        """The same, however long it takes, with the indexes compared with their tables."""
        return self._looked("integrity_check(20)", math.inf) or []

    def _looked(self, pragma: str, end: float) -> list[str] | None:
        if self.path is None:
            return []
        with self._errors("check"), self.engine.connect() as connection:
            driver = connection.connection.driver_connection
            assert isinstance(driver, sqlite3.Connection)
            driver.set_progress_handler(lambda: time.monotonic() > end, 10_000)
            try:
                found = [str(row[0]) for row in driver.execute(f"PRAGMA {pragma}")]
            except sqlite3.OperationalError as error:
                if "interrupted" in str(error):
                    return None
                raise
            except sqlite3.DatabaseError as error:
                # So broken that it cannot even be looked through.
                return [str(error)]
        return [] if found == ["ok"] else [line for text in found for line in text.splitlines()]

    def size(self) -> int:
        """Bytes on disk: the file and its log, or the tables with their indexes."""
        if self.path is not None:
            files = (self.path, self.path.with_name(self.path.name + "-wal"))
            return sum(file.stat().st_size for file in files if file.exists())
        with self.reading() as connection:
            return sum(
                int(connection.exec_driver_sql(f"select pg_total_relation_size('{name}')").scalar_one())
                for name in metadata.tables
            )

    def remove(self) -> None:
        """Close it, and take its file away; a server's database stays."""
        if self.connection is not None:
            # SQLite takes its log away with the last connection.
            self.connection.close()
            self.connection = None
        if self.path is not None:
            # Before the lock is given back: no other process may have begun to write to it.
            self.path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Close the connections and give the lock back. Closing again does nothing."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None
        self.engine.dispose()
        if self._file_lock is not None:
            self._file_lock.release()
            self._file_lock = None

    def _connect_writer(self, *, create: bool) -> None:
        with self._errors("open"):
            self.connection = self.engine.connect().execution_options(headway_writes=True)
            if self.path is None:
                prepare_postgresql(self.connection, self.name)
        with self._errors("open"), self.connection.begin():
            fresh = create and not inspect(self.connection).get_table_names()
            if not fresh:
                _check_schema(self.connection, self.name)
                carry_forward(self.connection)
        # Only now: another user's file must not be changed.
        if self.path is not None:
            with self._errors("open for writing"):
                _outside_transaction(self.connection, "PRAGMA journal_mode=WAL")
        if fresh:
            with self._errors("create"), self.connection.begin():
                metadata.create_all(self.connection)
                self.connection.execute(
                    insert(about).values(schema_version=SCHEMA_VERSION, created_by=f"headway {__version__}")
                )
            self.fresh = True
        else:
            # From now on nothing of it is for others.
            if self.path is not None:
                close_to_others(self.path)
        # A server's connection that broke may have let another writer in: then the journal is that writer's.
        if self._number is None:
            with self._errors("open for writing"), self.connection.begin():
                self._number = take_over(self.connection, self._at_least)

    def _errors(self, doing: str) -> AbstractContextManager[None]:
        return database_errors(self.name, doing)


@contextmanager
def database_errors(name: str, doing: str) -> Iterator[None]:
    """Errors of the database of this name become ours: "cannot ``doing``", with what it means."""
    try:
        yield
    except DBAPIError as error:
        raise _told(error.orig, name, doing) from error
    except sqlite3.Error as error:
        raise _told(error, name, doing) from error


def _told(error: BaseException | None, name: str, doing: str) -> HeadwayError:
    said = str(error).strip()
    if isinstance(error, sqlite3.DatabaseError) and "not a database" in said:
        return no_journal(name, "a file of another kind")
    if isinstance(error, sqlite3.DatabaseError) and "malformed" in said:
        return damaged(name, said)
    meaning = _MEANINGS.get(said)
    return Failure(f"journal {name}: cannot {doing}: {f'{meaning} ({said})' if meaning else said}")


def damaged(name: str, found: str) -> Damaged:
    """What is raised about a journal that cannot be trusted; ``found`` says what is wrong with it."""
    return Damaged(
        f"journal {name}: damaged: {found}. Move it away; headway can begin with an empty one, and the "
        "operator's guide says how to save what can be read"
    )


def _check_file(path: Path, *, create: bool) -> None:
    try:
        if path.is_dir():
            raise UserError(f"journal {path}: expected a file, found a directory")
        if not path.exists():
            if not path.parent.is_dir():
                raise UserError(f"journal {path}: expected its directory {path.parent} to exist, found none")
            if not create:
                raise UserError(f"journal {path}: expected a journal, found no such file")
            return
        with path.open("rb") as file:
            start = file.read(len(_SQLITE_MAGIC))
    except OSError as error:
        raise Failure(f"journal {path}: cannot be read: {error.strerror}") from error
    if start != _SQLITE_MAGIC and (start or not create):
        raise no_journal(str(path), "a file of another kind" if start else "an empty file")


def no_journal(name: str, found: str) -> UserError:
    return UserError(f"journal {name}: expected a headway journal, found {found}")


def sqlite_engine(
    path: Path, *, read_only: bool = False, patient: bool = False, seconds: float | None = None
) -> Engine:
    """``seconds``: a connection lasts no longer than this."""
    uri = "file:" + quote(os.fsencode(path)) + ("?mode=ro" if read_only else "?mode=rwc")
    log = path.with_name(path.name + "-wal")
    if read_only and not os.access(path.parent, os.W_OK, effective_ids=True) and not log.exists():
        # A reader of a WAL journal makes a -shm file; where it cannot, no process can write either.
        uri += "&immutable=1"

    def connect() -> sqlite3.Connection:
        busy = PATIENCE if patient else BUSY_TIMEOUT
        # Without an isolation level, the driver leaves the transactions to us.
        connection = sqlite3.connect(
            uri,
            uri=True,
            timeout=busy if seconds is None else min(busy, seconds),
            isolation_level=None,
            check_same_thread=False,
        )
        if seconds is not None:
            end = time.monotonic() + seconds
            connection.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
        connection.execute("PRAGMA synchronous=FULL")
        return connection

    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("headway_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def postgresql_engine(url: URL, options: Mapping[str, Any] | None = None) -> Engine:
    """``options``: of the driver, such as how long it waits for the server."""
    try:
        return create_engine(url, poolclass=NullPool, connect_args=dict(options or {}))
    except ModuleNotFoundError as error:
        raise UserError(
            f"journal {url.render_as_string(hide_password=True)}: expected the PostgreSQL driver, found no "
            f"module {error.name!r}: pip install 'headway[postgres]'"
        ) from error


def _bounded_postgresql(url: URL, seconds: float) -> Engine:
    """Of connections that change nothing and wait for nothing for longer."""
    whole = max(1, math.ceil(seconds))
    engine = postgresql_engine(url, {"connect_timeout": whole, "tcp_user_timeout": whole * 1000})

    @event.listens_for(engine, "connect")
    def connect(connection: Any, _: Any) -> None:
        with connection.cursor() as cursor:
            for name in ("statement_timeout", "lock_timeout"):
                cursor.execute(f"set session {name} = {int(seconds * 1000)}")
            cursor.execute("set session characteristics as transaction read only")
        connection.commit()

    return engine


def prepare_postgresql(connection: Connection, name: str) -> None:
    with connection.begin():
        if connection.exec_driver_sql("show synchronous_commit").scalar_one() == "off":
            # Decisions must be on disk before they are acted upon, whatever the server's default.
            connection.exec_driver_sql("set session synchronous_commit = on")
        take_advisory_lock(connection, name)


def _outside_transaction(connection: Connection, statement: str) -> None:
    """Run what SQLite refuses within a transaction."""
    try:
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        driver.execute(statement).fetchall()
    except sqlite3.Error as error:
        raise DBAPIError(statement, None, error) from error


def _check_schema(connection: Connection, name: str) -> None:
    tables = inspect(connection).get_table_names()
    if about.name not in tables:
        names = ", ".join(sorted(tables)[:8])
        raise no_journal(name, f"a database with the tables {names}" if tables else "an empty database")
    check_version(connection, name)
