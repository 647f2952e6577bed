"""The leader's side of ``headway journal follow``: tells what is new in a journal's file, which it reads.

It is a process of its own, so it costs the daemon nothing, and what it tells is what is on disk.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from headway.errors import Failure, HeadwayError, UserError
from headway.inputs.database_url import database_url
from headway.journal.database import Database
from headway.journal.lock import who_locks
from headway.journal.owner import number_in
from headway.journal.schema import runs
from headway.standby.frames import LANGUAGE, Begin, Depose, Frame, More, Place, Question, Unpacker, packed
from headway.standby.leadership import Word
from headway.standby.lease_file import LeaseFile
from headway.standby.rows import (
    ADDED,
    ROWS,
    all_runs,
    checkpoints_of,
    last_place,
    names,
    place_of,
    rows_behind,
    runs_from,
)

#: Runs in one answer.
_RUNS = 20


class Teller:
    """Answers the questions of one stand-by."""

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._lease = LeaseFile(journal)
        self._database: Database | None = None
        self._places: dict[str, Place] = {}
        #: Run -> its row, as it was told last; its checkpoint's hash.
        self._told: dict[int, list[Any]] = {}
        self._checkpoints: dict[int, int] = {}
        #: The first run whose row or checkpoint may still change.
        self._first = 0

    def answer(self, question: Question) -> Frame:
        """What there is to tell."""
        try:
            if isinstance(question, Depose):
                return Frame(self._depose(question.word))
            word = self._word()
            database = self._opened()
            if database is None:
                return Frame(word)
            with database.snapshot() as connection:
                if isinstance(question, Begin) and (run := self._begin(connection, question)):
                    return self._more(connection, word, rows=False, diverged=run)
                return self._more(connection, word, rows=not isinstance(question, More) or question.rows)
        except HeadwayError as error:
            return Frame(wrong=str(error), complete=False)

    def close(self) -> None:
        if self._database is not None:
            self._database.close()

    def _opened(self) -> Database | None:
        """None: there is no journal yet."""
        if self._database is None and self._journal.exists():
            self._database = Database(self._journal, create=False, read_only=True)
        return self._database

    def _word(self) -> Word | None:
        """What the lease says. A daemon that writes to the journal without a lease leads, too."""
        word = self._lease.read()
        if (word is None or word.released) and self._journal.exists():
            writer = who_locks(self._journal.stat().st_ino)
            if writer:
                return Word(word.epoch if word is not None else 0, writer, int(time.monotonic() * 10))
        return word

    def _begin(self, connection: Connection, asked: Begin) -> int:
        """Note what the stand-by has; a run of which it has another than is here, 0: there is none."""
        if asked.language != LANGUAGE:
            raise Failure(
                f"expected a stand-by that speaks version {LANGUAGE}, found {asked.language}: both machines "
                "need the same version of headway"
            )
        here = _begun(all_runs(connection))
        for run, began in asked.runs.items():
            if here.get(run, began) != began:
                return run
        self._places = {table.name: asked.places.get(table.name, (0, -1, -1)) for table in ADDED}
        self._first = max((run for run in asked.runs if run in here), default=0)
        self._told, self._checkpoints = {}, {}
        return 0

    def _more(self, connection: Connection, word: Word | None, *, rows: bool, diverged: int = 0) -> Frame:
        run, seq, _ = last_place(connection, ADDED[0])
        newest, epoch = (run, seq), number_in(connection)
        if not rows:
            return Frame(word, complete=False, newest=newest, epoch=epoch, diverged=diverged)
        changed = [row for row in runs_from(connection, self._first) if self._told.get(row[0]) != row]
        there = changed[:_RUNS]
        for row in there:
            self._told[row[0]] = row
        if len(changed) > _RUNS:
            # Nothing of a run is told before its row.
            return Frame(word, False, there, newest=newest, epoch=epoch)
        found: dict[str, list[list[Any]]] = {}
        complete = True
        for table in ADDED:
            if new := rows_behind(connection, table, self._places[table.name]):
                found[table.name] = new
                self._places[table.name] = place_of(table, new[-1])
                complete = complete and len(new) < ROWS
        saved = self._saved(connection) if complete else {}
        return Frame(word, complete, there, found, saved, newest, epoch)

    def _saved(self, connection: Connection) -> dict[int, list[list[Any]]]:
        """The checkpoints that have changed; runs that are over and told are not looked at again."""
        found: dict[int, list[list[Any]]] = {}
        last = max(self._told, default=0)
        for run in sorted(self._told):
            rows = checkpoints_of(connection, run)
            mark = hash(tuple(tuple(row) for row in rows))
            if self._checkpoints.get(run) != mark:
                self._checkpoints[run] = mark
                found[run] = rows
            if run < last:
                del self._told[run]
                self._checkpoints.pop(run, None)
                self._first = max(self._first, run + 1)
        return found

    def _depose(self, word: Word) -> Word | None:
        """The stand-by leads from now on: a leader here that was stopped finds it in its lease."""
        for _ in range(3):
            seen = self._lease.read()
            if seen is None or seen.epoch >= word.epoch or self._lease.replace(seen, word):
                break
        return self._lease.read()


def _begun(rows: Sequence[Sequence[Any]]) -> dict[int, float]:
    """Run -> when it began."""
    at = names(runs)
    return {row[at.index("id")]: row[at.index("started_at")] for row in rows}


def journal_file(place: str) -> Path:
    """The journal's file; :class:`UserError` if it is a server's database, which both daemons share."""
    url = database_url(place, "journal")
    if url.get_backend_name() != "sqlite":
        raise UserError(
            f"journal {url.render_as_string(hide_password=True)}: expected a journal in a file, found a "
            "server's database: a stand-by reads it itself, without `headway journal follow`"
        )
    return Path(url.database or "")


def tell(journal: Path, source: int, target: int) -> None:
    """Answer questions that come from the descriptor ``source`` until it ends; answers go to ``target``."""
    come = Unpacker("the stand-by")
    with closing(Teller(journal)) as teller:
        while more := os.read(source, 1 << 16):
            come.add(more)
            for question in come.questions():
                _write(target, packed(teller.answer(question)))


def _write(target: int, said: bytes) -> None:
    left = memoryview(said)
    while left:
        left = left[os.write(target, left) :]
