"""One writer at a time: two daemons that drive from one journal would start jobs twice.

SQLite: a lock on the file ``<journal>.lock`` beside the journal, which names its holder. The kernel
gives it back when the holder ends in whatever way, SIGKILL included; the file stays.
PostgreSQL: an advisory lock, held by the connection that writes and given back with it; the
connection's ``application_name`` names the holder.
"""

from __future__ import annotations

import fcntl
import os
import socket
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.engine import Connection

from headway.errors import Failure, UserError


def _holder() -> str:
    return f"process {os.getpid()} on host {socket.gethostname()}"


def _refusal(journal: str, holder: str) -> UserError:
    return UserError(
        f"journal {journal}: another headway writes to it: {holder or 'an unknown process'}. "
        "Expected to be its only writer: stop the other one, or use another journal."
    )


class FileLock:
    """The lock on ``<journal>.lock``, from creation until :meth:`release`.

    Raises UserError when somebody else holds it (the message names process and host), Failure when
    the lock file cannot be written.
    """

    def __init__(self, journal: Path) -> None:
        path = journal.with_name(journal.name + ".lock")
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise Failure(f"journal {journal}: cannot open its lock {path}: {error.strerror}") from error
        try:
            # flock, because it also keeps out a second journal within the same process.
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._fd, 0)
            os.write(self._fd, (_holder() + "\n").encode())
        except BlockingIOError:
            holder = os.pread(self._fd, 1000, 0).decode(errors="replace").strip()
            os.close(self._fd)
            raise _refusal(str(journal), holder) from None
        except OSError as error:
            os.close(self._fd)
            raise Failure(f"journal {journal}: cannot lock {path}: {error.strerror}") from error

    def release(self) -> None:
        os.close(self._fd)


#: First half of the advisory lock's key, "hdwy"; the second half is the schema's name.
_CLASS = 0x68647779


def take_advisory_lock(connection: Connection, journal: str) -> None:
    """Lock the connection's current schema for as long as the connection lives.

    Raises UserError when another connection holds the lock (the message names process and host).
    """
    key = {"class": _CLASS}
    # Cut by the server at 63 bytes.
    connection.execute(
        text("select set_config('application_name', :name, false)"), {"name": "headway " + _holder()}
    )
    taken = connection.execute(
        text("select pg_try_advisory_lock(:class, hashtext(current_schema()))"), key
    ).scalar_one()
    if taken:
        return
    holder = connection.execute(
        text(
            "select a.application_name from pg_locks l join pg_stat_activity a on a.pid = l.pid"
            " where l.locktype = 'advisory' and l.granted and l.classid::bigint = :class"
            " and l.objid::bigint = (hashtext(current_schema())::bigint & 4294967295)"
            " and l.database = (select oid from pg_database where datname = current_database())"
        ),
        key,
    ).scalar()
    raise _refusal(journal, (holder or "").removeprefix("headway "))
