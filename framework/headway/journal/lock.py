"""One writer at a time: two daemons that drive from one journal would start jobs twice.

SQLite: a lock (flock) on the database's file itself, so that no other name of the file, no link to it and
no deletion of another file leads past it. The kernel gives it back when the holder ends in whatever
way, SIGKILL included. Only a user that can open the file can hold it, so a journal is readable only by
its owner (:func:`close_to_others`).
PostgreSQL: an advisory lock, held by the connection that writes and given back with it; the
connection's ``application_name`` names the holder.

Should two writers come past that nevertheless (a file system without locks, a server that lost a
connection), the journal's row of its owner (:mod:`headway.journal.owner`) stops the first at its next write.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import socket
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.engine import Connection

from headway.errors import Failure, Held


def holder() -> str:
    """This process, for a person."""
    return f"process {os.getpid()} on host {socket.gethostname()}"


def refusal(journal: str, found: str) -> Held:
    """What is raised when another process writes to a journal."""
    return Held(
        f"journal {journal}: another headway writes to it: {found or 'an unknown process'}. "
        "Expected no other writer: stop the other headway."
    )


class FileLock:
    """The lock on a journal's file, which is made if there is none, from creation until :meth:`release`.

    Must be held as long as SQLite has the file open: closing any descriptor of a file gives the
    process's POSIX locks on it back, and SQLite's are of that kind.

    Raises :class:`Held` when another process holds it (the message names process, user and host),
    Failure when the file cannot be opened.
    """

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._fd = _opened(journal)
        try:
            # flock, because it also keeps out a second journal within the same process.
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            found = who_locks(os.fstat(self._fd).st_ino)
            os.close(self._fd)
            raise refusal(str(journal), found) from None
        except OSError as error:
            os.close(self._fd)
            raise Failure(f"journal {journal}: cannot lock it: {error.strerror}") from error

    def still_there(self) -> None:
        """Raises :class:`Failure` if the path names another file now, or none.

        What is written into a file without a name is lost with its process, and another daemon could take the
        name and drive the same cluster.
        """
        ours = os.fstat(self._fd)
        try:
            there = os.stat(self._journal)
        except FileNotFoundError:
            found = "its file was removed"
        else:
            if (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino):
                return
            found = "another file was put into its place"
        raise Failure(
            f"journal {self._journal}: {found} while headway wrote to it, and its content is lost. If there "
            "is a backup, put it there before the next start; headway continues with the journal that it "
            "finds"
        )

    def release(self) -> None:
        # A process that is being started on another thread has the descriptor for a moment, too.
        fcntl.flock(self._fd, fcntl.LOCK_UN)
        os.close(self._fd)


def _opened(journal: Path) -> int:
    try:
        try:
            made = os.open(journal, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            with contextlib.suppress(PermissionError):
                return os.open(journal, os.O_RDWR | os.O_CLOEXEC)
            # SQLite will say that it cannot be written.
            return os.open(journal, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise Failure(f"journal {journal}: cannot be opened: {error.strerror}") from error
    # Whatever the umask took away.
    os.fchmod(made, 0o600)
    return made


def close_to_others(journal: Path) -> None:
    """Let only its owner read a journal: a user that can read a file can lock it.

    SQLite gives the files that it makes beside it the same permissions. Another user's file is left
    as it is."""
    for path in (journal, *(journal.with_name(journal.name + end) for end in ("-wal", "-shm"))):
        with contextlib.suppress(FileNotFoundError, PermissionError):
            if path.stat().st_mode & 0o077:
                path.chmod(path.stat().st_mode & 0o700)


def who_locks(inode: int) -> str:
    """The process that holds the lock, as the kernel says; "" if it does not."""
    try:
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return ""
    for line in lines:
        words = line.split()
        # 1: FLOCK  ADVISORY  WRITE 4711 08:01:131090 0 EOF
        if len(words) < 6 or words[1] != "FLOCK" or words[5].rpartition(":")[2] != str(inode):
            continue
        pid, user = words[4], ""
        # Of processes that are hidden from us only the number is known.
        with contextlib.suppress(OSError, KeyError):
            user = f" of user {pwd.getpwuid(os.stat(f'/proc/{pid}').st_uid).pw_name}"
        return f"process {pid} on host {socket.gethostname()}{user}"
    return ""


#: First half of the advisory locks' keys, "hdwy" and "hdwz"; the second half is the schema's name.
_CLASS, _STANDBY = 0x68647779, 0x6864777A


def take_advisory_lock(connection: Connection, journal: str) -> None:
    """Lock the connection's current schema for as long as the connection lives.

    Raises :class:`Held` when another connection holds the lock (the message names process and host).
    """
    key = {"class": _CLASS}
    _named(connection)
    taken = connection.execute(
        text("select pg_try_advisory_lock(:class, hashtext(current_schema()))"), key
    ).scalar_one()
    if taken:
        return
    found = connection.execute(
        text(f"select a.application_name {_OF_THE_LOCK}"),
        key,
    ).scalar()
    raise refusal(journal, (found or "").removeprefix("headway "))


#: The server's process that has the lock.
_OF_THE_LOCK = (
    "from pg_locks l join pg_stat_activity a on a.pid = l.pid"
    " where l.locktype = 'advisory' and l.granted and l.classid::bigint = :class"
    " and l.objid::bigint = (hashtext(current_schema())::bigint & 4294967295)"
    " and l.database = (select oid from pg_database where datname = current_database())"
)


def end_writer(connection: Connection, of: str) -> bool:
    """Break the connection that has the lock, if it is that of this :func:`holder`; whether one was broken.

    A process that is stopped, or whose machine is away, keeps its connection and the lock with it.
    """
    named = {"class": _CLASS, "name": f"headway {of}"}
    # The server cuts names at 63 bytes.
    ended = connection.execute(
        text(f"select pg_terminate_backend(a.pid) {_OF_THE_LOCK} and a.application_name = left(:name, 63)"),
        named,
    ).scalar()
    return bool(ended)


def say_stands_by(connection: Connection) -> None:
    """Others find that this process waits to write, as long as the connection lives."""
    _named(connection)
    connection.execute(
        text("select pg_try_advisory_lock_shared(:class, hashtext(current_schema()))"), {"class": _STANDBY}
    )


def stands_by_no_more(connection: Connection) -> None:
    connection.execute(
        text("select pg_advisory_unlock_shared(:class, hashtext(current_schema()))"), {"class": _STANDBY}
    )


def who_stands_by(connection: Connection) -> str:
    """The :func:`holder` that waits to write, "" if none does."""
    found = connection.execute(
        text(f"select a.application_name {_OF_THE_LOCK}"), {"class": _STANDBY}
    ).scalar()
    return (found or "").removeprefix("headway ")


def _named(connection: Connection) -> None:
    """The connection's name says which process has it. The server cuts names at 63 bytes."""
    name = {"name": "headway " + holder()}
    connection.execute(text("select set_config('application_name', :name, false)"), name)
