"""A stand-by of a leader whose journal is in a database that both reach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headway.errors import Failure
from headway.journal import Journal
from headway.standby.leadership import Watch, Word, lasting
from headway.standby.lease_row import LeaseRow
from headway.standby.sources import Source


class SharedJournal(Source):
    """The lease is read in the database; the journal needs no following."""

    def __init__(self, journal: str, log: Any, clock: Callable[[], float] = lasting) -> None:
        self.lease = LeaseRow(journal, stands_by=True)
        self._journal = journal
        self._log = log
        self._clock = clock
        self._trouble = ""
        #: The process that led before.
        self._before = ""

    @property
    def trouble(self) -> str:
        return self._trouble

    def hear(self, watch: Watch) -> None:
        try:
            word = self.lease.read()
        except Failure as error:
            if not self._trouble:
                self._log.warning("the leader's lease cannot be read; waiting", error=str(error))
            self._trouble = str(error)
            watch.blind(self._clock())
            return
        if self._trouble:
            self._log.info("the leader's lease is read again")
        self._trouble = ""
        # The time of the answer: it may have been renewed just before.
        watch.hear(word, self._clock())

    def may_lead(self, watch: Watch, now: float) -> bool:
        return not self._trouble and (watch.word is None or watch.is_over(now))

    def take(self, watch: Watch, word: Word) -> bool:
        if watch.word is None:
            self._make_journal()
        if not self.lease.replace(watch.word, word):
            return False
        self._before = watch.word.holder if watch.word is not None else ""
        self.lease.leads()
        self.free()
        return True

    def free(self) -> None:
        if self._before:
            self.lease.end_writer(self._before)

    def lag(self, now: float) -> float | None:
        return 0.0

    def epoch(self) -> int:
        return self.lease.number()

    def close(self, *, leads: bool) -> None:
        if not leads:
            self.lease.close()

    def _make_journal(self) -> None:
        """In an empty database there is no place for a lease before there is a journal. Raises :class:`Held`
        if a headway without a lease writes to it."""
        Journal.open(self._journal).close()
