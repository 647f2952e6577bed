"""Copies of a journal: a backup while the daemon writes, its return, and a move to another kind of database.

A copy has no name before it is whole and was verified, and nothing is overwritten: a file is made under
another name beside its own, with mode 0600, and linked to its name if that is still free.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import inspect

from headway.errors import Damaged, Failure, HeadwayError, UserError
from headway.inputs.database_url import database_url
from headway.journal.copying import Digest, copy
from headway.journal.database import (
    BUSY_TIMEOUT,
    Database,
    database_errors,
    postgresql_engine,
    prepare_postgresql,
    sqlite_engine,
)
from headway.journal.lock import FileLock, close_to_others
from headway.journal.summary import newest_moment

#: What SQLite puts beside a database.
_ENDINGS = ("-wal", "-shm")


def back_up(database: Database, to: Path) -> None:
    """Write what was committed at one moment into a new SQLite file. The journal's writer goes on meanwhile.

    Raises :class:`UserError` if something of that name is there, or its directory is not;
    :class:`Failure` if the file cannot be written or does not hold what the journal holds.
    """
    with _new_file(to) as temporary:
        if database.path is None:
            _into_file(database, temporary, str(to))
        else:
            _image(database, temporary, str(to))


def restore(backup: Path, place: str, *, force: bool) -> Path | None:
    """Put a backup into the place of a journal's file; where the replaced journal is now, if there
    was one.

    Raises :class:`headway.errors.Held` while a process writes to the journal; UserError if the backup is no
    journal, or if the journal knows of later moments than the backup and ``force`` is not set; Damaged if the
    backup is damaged. Nothing is replaced then.
    """
    url = database_url(place, "journal")
    if url.get_backend_name() != "sqlite":
        raise UserError(
            f"journal {url.render_as_string(hide_password=True)}: expected a file, found a server's "
            "database: `headway journal move` copies a backup into an empty one"
        )
    journal = Path(url.database or "")
    if not journal.parent.is_dir():
        raise UserError(f"journal {journal}: expected its directory {journal.parent} to exist, found none")
    if journal.exists() and backup.exists() and os.path.samefile(backup, journal):
        raise UserError(f"{backup}: expected a backup, found the journal itself")
    source = Database(backup, create=False, read_only=True)
    try:
        if faults := source.structure():
            raise Damaged(f"{backup}: expected a backup in order, found it damaged: {'; '.join(faults[:3])}")
        with source.reading() as connection:
            newest = newest_moment(connection)
        with _locked(journal) as there:
            if not there:
                with _new_file(journal) as temporary:
                    _image(source, temporary, str(journal))
                    _give_to_owner(temporary, journal.parent)
                    _forget_log(journal)
                return None
            _settle(journal)
            if not force:
                _check_age(journal, newest)
            with _temporary(journal) as temporary:
                _image(source, temporary, str(journal))
                _give_to_owner(temporary, journal)
                return _replace(journal, temporary)
    finally:
        source.close()


def move(place: str, to: str) -> Mapping[str, Digest]:
    """Copy a journal that no process writes to into a new file or an empty PostgreSQL database; what each
    table has, there as here. The source stays as it is.

    Raises :class:`headway.errors.Held` while a process writes to either; UserError if the target is not new;
    Failure if anything goes wrong, and then the target is as before.
    """
    target = database_url(to, "journal")
    source = Database(place, create=False, read_only=True)
    try:
        with _kept_still(source):
            if target.get_backend_name() != "sqlite":
                return _into_server(source, to)
            path = Path(target.database or "")
            with _new_file(path) as temporary:
                return _into_file(source, temporary, str(path))
    finally:
        source.close()


# -- the content ---------------------------------------------------------------------------------------


def _image(database: Database, into: Path, name: str) -> None:
    """The file as SQLite copies it: all pages in one step, which is one moment. No writer waits for it."""
    with database.reading() as connection, database_errors(name, "write"):
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        with contextlib.closing(sqlite3.connect(into, timeout=BUSY_TIMEOUT, isolation_level=None)) as target:
            driver.backup(target, pages=-1)
            # The copy says of itself that it has a log, which no backup has.
            target.execute("PRAGMA journal_mode=DELETE").fetchall()
            found = [str(row[0]) for row in target.execute("PRAGMA integrity_check(3)")]
        if found != ["ok"]:
            raise Damaged(f"journal {database.name}: damaged: {'; '.join(found)}; no copy of it was kept")


def _into_file(source: Database, temporary: Path, name: str) -> Mapping[str, Digest]:
    engine = sqlite_engine(temporary)
    with source.snapshot() as read, database_errors(name, "write"), engine.connect() as opened:
        write = opened.execution_options(headway_writes=True)
        with write.begin():
            return copy(read, write, name)


def _into_server(source: Database, to: str) -> Mapping[str, Digest]:
    url = database_url(to, "journal")
    name = url.render_as_string(hide_password=True)
    engine = postgresql_engine(url)
    with source.snapshot() as read, database_errors(name, "write"), engine.connect() as write:
        prepare_postgresql(write, name)
        with write.begin():
            if tables := sorted(inspect(write).get_table_names()):
                found = ", ".join(tables[:8])
                raise UserError(f"journal {name}: expected an empty database, found the tables {found}")
            return copy(read, write, name)


# -- its place -----------------------------------------------------------------------------------------


@contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """A new empty file beside ``path`` that only its owner reads; gone at the end, if it is still there."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        try:
            made = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            os.fchmod(made, 0o600)
            os.close(made)
            yield temporary
        finally:
            for ending in ("", "-journal", *_ENDINGS):
                temporary.with_name(temporary.name + ending).unlink(missing_ok=True)
    except OSError as error:
        raise Failure(f"{path}: cannot be written: {error.strerror or error}") from error


@contextmanager
def _new_file(path: Path) -> Iterator[Path]:
    """A temporary file that gets the name ``path`` when all went well."""
    if os.path.lexists(path):
        raise UserError(f"{path}: expected no such file, found one; nothing is overwritten")
    if not path.parent.is_dir():
        raise UserError(f"{path}: expected its directory {path.parent} to exist, found none")
    with _temporary(path) as temporary:
        yield temporary
        _on_disk(temporary)
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise UserError(f"{path}: expected no such file, found one; nothing is overwritten") from None
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
                raise
            # A file system without links: the name is taken first.
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            os.replace(temporary, path)
        _on_disk(path.parent)


def _on_disk(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


@contextmanager
def _locked(journal: Path) -> Iterator[bool]:
    """Hold the lock of a journal's file, if there is one; whether there is."""
    if not os.path.lexists(journal):
        yield False
        return
    if not journal.is_file():
        raise UserError(f"journal {journal}: expected a file, found something else")
    lock = FileLock(journal)
    try:
        yield True
    finally:
        lock.release()


@contextmanager
def _kept_still(database: Database) -> Iterator[None]:
    """Let no process write to a journal meanwhile, and write nothing to it."""
    if database.path is not None:
        with _locked(database.path):
            yield
        return
    with database_errors(database.name, "lock"), database.engine.connect() as connection:
        prepare_postgresql(connection, database.name)
        yield


def _settle(journal: Path) -> None:
    """Bring what stands in a journal's log into its file, as far as it can be read."""
    with (
        contextlib.suppress(sqlite3.Error),
        contextlib.closing(sqlite3.connect(journal, timeout=BUSY_TIMEOUT, isolation_level=None)) as settled,
    ):
        settled.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _check_age(journal: Path, newest: float | None) -> None:
    try:
        present = Database(journal, create=False, read_only=True)
    except HeadwayError:
        # It cannot be read, and is kept.
        return
    try:
        with present.reading() as connection:
            known = newest_moment(connection)
    except HeadwayError:
        return
    finally:
        present.close()
    if known is not None and (newest is None or known > newest):
        later = (
            "and the backup has no run"
            if newest is None
            else f"{known - newest:.0f} s behind the backup's end"
        )
        raise UserError(
            f"journal {journal}: expected a journal that ends before the backup, found later entries, "
            f"{later}; --force replaces it all the same, and keeps it under another name"
        )


def _give_to_owner(file: Path, like: Path) -> None:
    """Root restores for the user that the journal belongs to."""
    if os.geteuid() == 0:
        owner = like.stat()
        os.chown(file, owner.st_uid, owner.st_gid)


def _replace(journal: Path, new: Path) -> Path:
    """Put the new file into the journal's place; where what was there is kept beside it."""
    _on_disk(new)
    kept = _free_name(journal)
    # A name for all of it first: the kept journal never lacks its log.
    os.link(journal, kept)
    log = journal.with_name(journal.name + "-wal")
    if log.exists() and log.stat().st_size:
        os.link(log, kept.with_name(kept.name + "-wal"))
    close_to_others(kept)
    _forget_log(journal)
    os.replace(new, journal)
    _on_disk(journal.parent)
    return kept


def _forget_log(journal: Path) -> None:
    """A log that another file left under this name must not be taken for the new file's."""
    for ending in _ENDINGS:
        journal.with_name(journal.name + ending).unlink(missing_ok=True)


def _free_name(journal: Path) -> Path:
    stamp = f"{journal.name}.replaced-{time.strftime('%Y%m%d-%H%M%S')}"
    names = (journal.with_name(stamp + ("" if more == 1 else f"-{more}")) for more in itertools.count(1))
    return next(name for name in names if not os.path.lexists(name))
