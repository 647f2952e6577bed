"""The lease of a journal in PostgreSQL: a row of a table beside the journal's.

The connection that renews it is another than the journal's, so that a long transaction delays no renewal. It
gives up soon (:data:`SECONDS`): a leader that waits for a server that is away cannot say so.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    MetaData,
    Table,
    insert,
    inspect,
    select,
    text,
    update,
)
from sqlalchemy.engine import Row

from headway.errors import HeadwayError
from headway.inputs.database_url import database_url
from headway.journal.database import database_errors, postgresql_engine
from headway.journal.encoding import AnyText
from headway.journal.lock import end_writer, say_stands_by, stands_by_no_more, who_stands_by
from headway.journal.owner import number_in
from headway.standby.leadership import Word
from headway.standby.lease import Lease

#: What a server may take for a connection, and for a statement.
SECONDS = 2

#: Not a table of the journal: it says nothing of what happened, and no copy needs it.
metadata = MetaData()
lease = Table(
    "headway_lease",
    metadata,
    Column("epoch", BigInteger, nullable=False),
    Column("holder", AnyText, nullable=False),
    Column("beats", BigInteger, nullable=False),
    Column("released", Boolean, nullable=False),
)


class LeaseRow(Lease):
    """The lease in the journal's database."""

    shared = True

    def __init__(self, journal: str, *, stands_by: bool = False) -> None:
        """``journal``: its URL; ``stands_by``: others find that this process waits to lead."""
        url = database_url(journal, "journal")
        self.name = url.render_as_string(hide_password=True)
        # Of a server whose machine is away nothing comes, not even an error.
        self._engine = postgresql_engine(
            url, {"connect_timeout": SECONDS, "tcp_user_timeout": SECONDS * 1000}
        )
        self._connection: Connection | None = None
        self._stands_by = stands_by

    def read(self) -> Word | None:
        with self._reaching("read its lease"):
            connection = self._connected()
            with connection.begin():
                if not inspect(connection).has_table(lease.name):
                    return None
                return _word(connection.execute(select(lease)).first())

    def replace(self, seen: Word | None, by: Word) -> bool:
        row = {"epoch": by.epoch, "holder": by.holder, "beats": by.beats, "released": by.released}
        with self._reaching("write its lease"):
            connection = self._connected()
            with connection.begin():
                if seen is not None:
                    there = (
                        lease.c.epoch == seen.epoch,
                        lease.c.holder == seen.holder,
                        lease.c.beats == seen.beats,
                        lease.c.released == seen.released,
                    )
                    return connection.execute(update(lease).where(*there), row).rowcount == 1
                # Two daemons may be here at once: the second waits, and finds a row.
                connection.execute(
                    text("select pg_advisory_xact_lock(hashtext(:name))"), {"name": lease.name}
                )
                lease.create(connection, checkfirst=True)
                if connection.execute(select(lease)).first() is not None:
                    return False
                connection.execute(insert(lease), row)
                return True

    def end_writer(self, holder: str) -> None:
        """Break the connection of the journal's writer if it is this process: a stopped process keeps it."""
        with self._reaching("end its writer"):
            connection = self._connected()
            with connection.begin():
                end_writer(connection, holder)

    def number(self) -> int:
        """The number of the journal's last writer; 0: there was none."""
        with self._reaching("read its owner"):
            connection = self._connected()
            with connection.begin():
                return number_in(connection)

    def waits(self) -> str:
        """A process that waits to lead; "": none does, as far as the server knows."""
        with self._reaching("look for a stand-by"):
            connection = self._connected()
            with connection.begin():
                return who_stands_by(connection)

    def leads(self) -> None:
        """This process does not wait any more."""
        self._stands_by = False
        with self._reaching("say that a stand-by leads"):
            connection = self._connected()
            with connection.begin():
                stands_by_no_more(connection)

    def close(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(Exception):
                self._connection.close()
            self._connection = None
        self._engine.dispose()

    def _connected(self) -> Connection:
        if self._connection is None:
            connection = self._engine.connect()
            self._connection = connection
            with connection.begin():
                connection.exec_driver_sql(f"set session statement_timeout = {SECONDS * 1000}")
                if self._stands_by:
                    say_stands_by(connection)
        return self._connection

    @contextlib.contextmanager
    def _reaching(self, doing: str) -> Iterator[None]:
        try:
            with database_errors(self.name, doing):
                yield
        except HeadwayError:
            # Whatever state the connection is in, the next one is new.
            if self._connection is not None:
                with contextlib.suppress(Exception):
                    self._connection.close()
                self._connection = None
            raise


def _word(row: Row[tuple[int, str, int, bool]] | None) -> Word | None:
    return None if row is None else Word(row.epoch, row.holder, row.beats, True, row.released)
