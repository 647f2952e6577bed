"""A stand-by with a journal of its own, which follows the other daemon's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from headway.config.standby import StandbyConfig
from headway.errors import Failure
from headway.journal.lock import holder
from headway.standby.follower import Follower
from headway.standby.leadership import Watch, Word, lasting
from headway.standby.lease_file import LeaseFile
from headway.standby.sources import Source

#: How long the leader before is told that it does not lead, before this daemon leads all the same, seconds.
_DEPOSE = 0.5
_TRIES = 3


class FollowedJournal(Source):
    """The other daemon's lease and journal are read by a command; the own lease says that this one waits.

    Where neither leads, because both began just now, the daemon with the newer journal does.
    """

    def __init__(
        self,
        journal: Path,
        settings: StandbyConfig,
        log: Any,
        clock: Callable[[], float] = lasting,
    ) -> None:
        """Raises what opening the own journal raises."""
        self.lease = LeaseFile(journal)
        self._settings = settings
        self._log = log
        self._follower = Follower(settings.follow, journal, settings.patience, log)
        self._since = clock()
        #: When the other daemon was heard of last.
        self._heard: float | None = None
        self._own = Word(self._follower.own_epoch, holder(), leads=False)
        #: Why the own lease could not be written.
        self._wrong = ""
        self._follower.start()

    @property
    def trouble(self) -> str:
        return self._follower.trouble or self._wrong

    def hear(self, watch: Watch) -> None:
        try:
            self._say()
        except Failure as error:
            if not self._wrong:
                self._log.warning("the own lease cannot be written", error=str(error))
            self._wrong = str(error)
        else:
            if self._wrong:
                self._log.info("the own lease is written again")
            self._wrong = ""
        if (told := self._follower.told) is not None:
            self._heard, word = told
            watch.hear(word, self._heard)

    def may_lead(self, watch: Watch, now: float) -> bool:
        if self._heard is None:
            # The other daemon may lead without our knowing.
            return now - self._since >= max(self._settings.alone, self._settings.patience)
        word = watch.word
        if word is None:
            return self._is_alone(now)
        if word.leads or watch.is_over(now):
            # What it wrote last is on its way, if it ended in good order.
            is_copied = not word.released or self._follower.caught_up
            return watch.is_over(now) and (is_copied or watch.silent(now) >= watch.patience)
        # The other daemon stands by, too.
        mine, other = (self._follower.copied, holder()), (self._follower.newest, word.holder)
        return mine > other

    def _is_alone(self, now: float) -> bool:
        """The other daemon's machine was reached, and no daemon ever ran there under a lease."""
        return now - self._since >= self._settings.patience

    def take(self, watch: Watch, word: Word) -> bool:
        # First of all: where this fails, the other daemon is followed on.
        self._write(word)
        if watch.word is None or watch.word.released:
            self._follower.end()
        else:
            # It goes on trying: a leader that was cut off must learn of it when it can be reached again.
            self._follower.depose(word)
            if not self._follower.deposed.wait(_DEPOSE):
                self._log.warning("the leader before does not know yet that this daemon leads")
        return True

    def _write(self, word: Word) -> None:
        for _ in range(_TRIES):
            if self.lease.replace(self.lease.read(), word):
                return
        raise Failure(f"lease {self.lease.name}: expected this daemon to write to it, found another")

    def free(self) -> None:
        """The journal is this daemon's own."""

    def lag(self, now: float) -> float | None:
        known = self._follower.known_to
        return None if known is None else max(0.0, now - known)

    def epoch(self) -> int:
        return max(self._follower.epoch, self._follower.own_epoch)

    def close(self, *, leads: bool) -> None:
        if not leads:
            self._follower.end()

    def _say(self) -> None:
        """The own lease says that this daemon stands by, so that the other finds it."""
        known = max(self._own.epoch, self._follower.epoch)
        self._own = Word(known, self._own.holder, self._own.beats + 1, leads=False)
        self.lease.replace(self.lease.read(), self._own)
