"""Whether a journal is in order: its file's structure, and what headway relies on when it reads the rows.

Reads only, of one moment, so it may run beside the daemon.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import msgspec
from sqlalchemy import Connection, Select, Table, Text, and_, func, or_, select, type_coerce
from sqlalchemy.exc import DBAPIError

from headway.decisions import Decision
from headway.errors import Damaged
from headway.events import Event
from headway.journal.database import Database
from headway.journal.encoding import Decoder
from headway.journal.pruning import leftovers
from headway.journal.reading import decode_any, decode_cluster, decode_decision, decode_event, same_decision
from headway.journal.schema import checkpoints, cycles, decisions, events, outcomes, runs

#: Faults that are listed; more only say how far it was looked.
MOST = 1000
_ROWS = 1000


class Findings(msgspec.Struct, frozen=True):
    """What was looked at and what was found."""

    place: str
    runs: int
    events: int
    decisions: int
    #: What is wrong, each with its place; at most :data:`MOST`.
    faults: list[str]
    #: What is worth knowing and does no harm.
    remarks: list[str]


class _Check:
    """One look at all of a journal."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.faults: list[str] = []
        self.remarks: list[str] = []
        self.counted = {"runs": 0, "events": 0, "decisions": 0}

    def all(self) -> None:
        left = leftovers(self._connection)
        if left:
            self.remarks.append(
                f"rows of runs that are gone ({', '.join(map(str, left))}): a removal was interrupted; "
                "`headway journal prune` ends it"
            )
        self._runs()
        self._numbering(events, "event")
        self._numbering(decisions, "decision")
        self._outcomes()
        self._payloads(events, "event", decode_event)
        self._payloads(decisions, "decision", decode_decision)
        self._checkpoints()

    def _runs(self) -> None:
        rows = self._connection.execute(select(runs).order_by(runs.c.id)).all()
        self.counted["runs"] = len(rows)
        for row in rows:
            where = f"run {row.id}"
            self._decoded(decode_cluster, row.cluster, f"{where}: the cluster's description")
            self._decoded(decode_any, row.plugin_states, f"{where}: the plugins' states")
            if not row.seed.lstrip("-").isdecimal():
                self._fault(f"{where}: expected a whole number as seed, found {row.seed[:40]!r}")
            if row.ended_at is not None and not row.end_reason:
                self._fault(f"{where}: has an end but no reason of its end")
        for row in rows[:-1]:
            if row.ended_at is None:
                self.remarks.append(f"run {row.id} was killed: it has no end")

    def _numbering(self, table: Table, what: str) -> None:
        """Positions begin at 0 and have no gap, and their cycle is there."""
        first, last, count = func.min(table.c.position), func.max(table.c.position), func.count()
        query = (
            select(table.c.run_id, table.c.seq, first, last, count)
            .group_by(table.c.run_id, table.c.seq)
            .having(or_(first != 0, last != count - 1))
        )
        for run, seq, low, high, there in self._rows(query):
            self._fault(
                f"run {run}, cycle {seq}: expected {what}s numbered from 0 on, found {there} "
                f"from {low} to {high}"
            )
        cycle = and_(cycles.c.run_id == table.c.run_id, cycles.c.seq == table.c.seq)
        query = (
            select(table.c.run_id, table.c.seq)
            .select_from(table.outerjoin(cycles, cycle).join(runs, runs.c.id == table.c.run_id))
            .where(cycles.c.seq.is_(None))
            .distinct()
        )
        for run, seq in self._rows(query):
            self._fault(f"run {run}, cycle {seq}: has {what}s, but the cycle itself is missing")

    def _outcomes(self) -> None:
        query = (
            select(outcomes.c.run_id, outcomes.c.seq, outcomes.c.position)
            .select_from(
                outcomes.outerjoin(decisions, same_decision()).join(runs, runs.c.id == outcomes.c.run_id)
            )
            .where(decisions.c.seq.is_(None))
        )
        for run, seq, position in self._rows(query):
            self._fault(f"run {run}, cycle {seq}: outcome {position} belongs to no decision")

    def _payloads(self, table: Table, what: str, decoder: Decoder[Any]) -> None:
        # As it stands there: what cannot be read as a text is to be named.
        stands = (type_coerce(table.c.kind, Text()), type_coerce(table.c.payload, Text()))
        columns = select(table.c.run_id, table.c.seq, table.c.position, *stands)
        for run, seq, position, kind, payload in self._rows(columns):
            self.counted[table.name] += 1
            where = f"run {run}, cycle {seq}, {what} {position}"
            read: Event | Decision | None = self._decoded(decoder, payload, where)
            if read is not None and type(read).__name__ != kind:
                self._fault(f"{where}: expected the kind {type(read).__name__}, found {kind!a:.40}")

    def _checkpoints(self) -> None:
        stands = type_coerce(checkpoints.c.state, Text())
        for run, plugin, state in self._rows(select(checkpoints.c.run_id, checkpoints.c.plugin, stands)):
            self._decoded(decode_any, state, f"run {run}: the checkpoint of plugin {plugin!a:.100}")

    def _rows(self, query: Select[Any]) -> Iterator[Any]:
        yield from self._connection.execution_options(yield_per=_ROWS).execute(query)

    def _decoded(self, decoder: Decoder[Any], text: Any, where: str) -> Any:
        try:
            if not isinstance(text, str):
                raise ValueError(f"expected a text, found a {type(text).__name__}")
            return decoder(text)
        except (msgspec.DecodeError, ValueError) as error:
            self._fault(f"{where}: cannot be read: {error}: {text!a:.100}")
            return None

    def _fault(self, text: str) -> None:
        if len(self.faults) < MOST:
            self.faults.append(text)


def check(database: Database) -> Findings:
    """Look at all of a journal. Raises :class:`headway.errors.Failure` if it cannot be reached or read."""
    faults = database.structure()
    looked: _Check | None = None
    try:
        with database.snapshot() as connection:
            driver = connection.connection.driver_connection
            if isinstance(driver, sqlite3.Connection):
                # A text that is no UTF-8 is a fault of its row, not of all reading.
                driver.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
            looked = _Check(connection)
            looked.all()
    except Damaged as error:
        # Already named, if the structure was looked at; what comes behind it cannot be read.
        if not faults:
            faults = [str(error.__cause__.orig) if isinstance(error.__cause__, DBAPIError) else str(error)]
    assert looked is not None
    return Findings(
        place=database.name,
        **looked.counted,
        faults=[*faults, *looked.faults],
        remarks=looked.remarks,
    )
