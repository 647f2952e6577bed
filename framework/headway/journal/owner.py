"""The writer of a journal, as the journal itself says: the second line behind the lock.

One row has a number that grows with each writer. A process that opens the journal for writing takes the next
number, and every transaction of a writer checks that its number still stands there. So a daemon that lost
its lock without noticing writes nothing more once another daemon has taken over. It starts nothing more
either, since every decision is written down before it is carried out.
"""

from __future__ import annotations

import time

from sqlalchemy import insert, inspect, select, update
from sqlalchemy.engine import Connection

from headway.journal.lock import holder, refusal
from headway.journal.schema import owner


def take_over(connection: Connection, at_least: int = 0) -> int:
    """Become the journal's writer, in the transaction that is open; our number, which is higher than that of
    every writer before, and ``at_least`` so high."""
    if not inspect(connection).has_table(owner.name):
        # A journal from before there were owners.
        owner.create(connection)
    before = connection.execute(select(owner.c.number).with_for_update()).scalar()
    number = max((before or 0) + 1, at_least)
    row = {"number": number, "holder": holder(), "since": time.time()}
    connection.execute(insert(owner) if before is None else update(owner), row)
    return number


def number_in(connection: Connection) -> int:
    """The number of the last writer; 0: there was none."""
    if not inspect(connection).has_table(owner.name):
        return 0
    return connection.execute(select(owner.c.number)).scalar() or 0


def still_ours(connection: Connection, number: int, journal: str) -> None:
    """Raises :class:`headway.errors.Held` if another writer has taken over."""
    # Shared: on a server, a writer that takes over waits for the end of our transaction.
    found = connection.execute(select(owner.c.number, owner.c.holder).with_for_update(read=True)).first()
    if found is None or found.number != number:
        raise refusal(journal, "" if found is None else found.holder)
