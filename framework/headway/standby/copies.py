"""The stand-by's own journal: a copy of the leader's, as far as it was told.

Rows are only added. What this daemon wrote while it led, and the other daemon never learned, stays.
"""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path

from headway.journal.database import Database
from headway.journal.owner import number_in
from headway.journal.schema import runs
from headway.standby.frames import LANGUAGE, Begin, Frame
from headway.standby.rows import (
    ADDED,
    add_rows,
    add_runs,
    all_runs,
    last_place,
    names,
    replace_checkpoints,
)


class Copy:
    """The own journal, open for writing."""

    def __init__(self, journal: Path) -> None:
        """Raises :class:`headway.errors.Held` while another process writes to it."""
        self._journal = journal
        self._database = Database(journal, create=True, read_only=False)
        #: Its last run and cycle.
        self.newest = (0, 0)
        self.epoch = self._database.number
        self._look()

    def begin(self) -> Begin:
        """The first question: what is here."""
        at = names(runs)
        with self._database.reading() as connection:
            known = {row[at.index("id")]: row[at.index("started_at")] for row in all_runs(connection)}
            return Begin(LANGUAGE, known, {table.name: last_place(connection, table) for table in ADDED})

    def apply(self, frame: Frame) -> None:
        """Write an answer down. Raises :class:`headway.errors.Failure` for one that makes no sense."""
        if frame.runs or frame.rows or frame.checkpoints:
            with self._database.writing() as connection:
                add_runs(connection, frame.runs)
                for table in ADDED:
                    add_rows(connection, table.name, frame.rows.get(table.name, ()))
                for run, rows in frame.checkpoints.items():
                    replace_checkpoints(connection, run, rows)
            self._look()

    def renew(self) -> Path:
        """Begin with an empty journal; where what was here is kept."""
        self._database.close()
        stamp = f"{self._journal.name}.replaced-{time.strftime('%Y%m%d-%H%M%S')}"
        several = (self._journal.with_name(stamp + ("" if n == 1 else f"-{n}")) for n in itertools.count(1))
        kept = next(name for name in several if not os.path.lexists(name))
        os.rename(self._journal, kept)
        self._database = Database(self._journal, create=True, read_only=False, at_least=self.epoch + 1)
        self._look()
        return kept

    def close(self) -> None:
        """Let the daemon have it."""
        self._database.close()

    def _look(self) -> None:
        with self._database.reading() as connection:
            run, seq, _ = last_place(connection, ADDED[0])
            self.epoch = max(self.epoch, number_in(connection))
        self.newest = (run, seq)
