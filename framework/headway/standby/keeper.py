"""The leader's side of a lease: renewed by a thread, looked at before anything is done."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec
import structlog

from headway.daemon.standing import Standing
from headway.errors import Failure, Held
from headway.journal import Journal
from headway.service.protocol import Leadership
from headway.standby.leadership import OFTEN, Deposed, Tenure, Word, lasting
from headway.standby.lease import Lease

#: A run after a take-over looks for damage in the journal for so many seconds.
LOOK_FOR_DAMAGE = 1.0
#: Between two attempts to open the journal whose last writer's connection is being ended, seconds.
_AGAIN = 0.1


class Keeper(Standing):
    """A lease that was won, until :meth:`release`."""

    look_for_damage = LOOK_FOR_DAMAGE
    takes_over = True

    def __init__(
        self,
        lease: Lease,
        word: Word,
        patience: float,
        *,
        asked: float,
        on_lost: Callable[[], None],
        free: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = lasting,
        log: Any = None,
    ) -> None:
        """``word`` stands in the lease; ``asked`` is the time before it was written. ``on_lost`` is called
        once when it turns out that this daemon does not lead any more; ``free`` takes the journal from the
        leader before, which does not give it back."""
        self.tenure = Tenure(word, patience, asked)
        self._lease = lease
        self._patience = patience
        # Whoever leads next would have to wait, too; longer, and this machine may be what is wrong.
        self.asks_for = patience
        self._on_lost = on_lost
        self._free = free
        self._clock = clock
        self._log = log if log is not None else structlog.get_logger("headway.standby")
        self._since = time.time()
        self.epoch = word.epoch
        #: Why the last renewal failed.
        self._trouble = ""
        self._renewing = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._renew_often, name="lease", daemon=True)

    def begin(self) -> None:
        """Renew it from now on."""
        self._thread.start()

    def open(self, journal: str) -> Journal:
        """The journal, with an epoch that is at least the lease's. A writer before, whose connection is being
        ended, is waited for."""
        end = self._clock() + self._patience
        while True:
            try:
                opened = Journal.open(journal, at_least=self.epoch)
                break
            except Held:
                if self._clock() > end:
                    raise
                self._free()
                time.sleep(_AGAIN)
        self.epoch = opened.epoch
        return opened

    def drives_as(self, epoch: int) -> None:
        self.epoch = epoch

    def check(self) -> None:
        """Raises :class:`Deposed` unless this daemon leads. A lease that was not renewed for too long is
        renewed first."""
        if self.tenure.is_overdue(self._clock()):
            self._renew()
        self._judge()
        self.tenure.check()

    def release(self) -> None:
        """Give the lease up, so that the stand-by need not wait."""
        if self._over.is_set():
            return
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(self._patience)
        with self._renewing:
            word = self.tenure.word
            try:
                self._lease.replace(word, msgspec.structs.replace(word, beats=word.beats + 1, released=True))
            except Failure as error:
                self._log.warning("the lease is not given up; the stand-by waits for it", error=str(error))
        self._lease.close()

    def leadership(self) -> Leadership:
        word = self.tenure.word
        return Leadership(str(self.tenure.role), word.holder, self.epoch, self._since, trouble=self._trouble)

    def _renew_often(self) -> None:
        while not self._over.wait(OFTEN * self._patience):
            self._renew()
            self._judge()
            try:
                self.tenure.check()
            except Deposed:
                return

    def _renew(self) -> None:
        with self._renewing:
            asked, word = self._clock(), self.tenure.word
            fresh = msgspec.structs.replace(word, beats=word.beats + 1)
            try:
                if not self._lease.replace(word, fresh):
                    self._find(self._lease.read(), asked)
                    return
            except Failure as error:
                if not self._trouble:
                    self._log.warning("the lease is not renewed", error=str(error))
                self._trouble = str(error)
                return
            self.tenure.renewed(fresh, asked)
            if self._trouble:
                self._log.info("the lease is renewed again")
            self._trouble = ""

    def _find(self, found: Word | None, asked: float) -> None:
        """The lease says something else than what was written last."""
        word = self.tenure.word
        if found is not None and (found.epoch, found.holder) == (word.epoch, word.holder):
            # A renewal of which it was never heard that it succeeded.
            self.tenure.renewed(found, asked)
            return
        by = "its lease is gone" if found is None else f"{found.holder} leads with epoch {found.epoch}"
        self._lost(f"headway does not lead any more: {by}; nothing more is done to the cluster")

    def _judge(self) -> None:
        """Give up a lease that could not be renewed in time."""
        now = self._clock()
        if self.tenure.is_overdue(now):
            self._lost(
                f"headway does not lead any more: its lease {self._lease.name} was not renewed for "
                f"{self.tenure.since_renewal(now):.1f} s ({self._trouble or 'no answer'}); nothing more is "
                "done to the cluster"
            )

    def _lost(self, why: str) -> None:
        try:
            self.tenure.check()
        except Deposed:
            return
        self.tenure.give_up(why)
        self._log.error("headway does not lead any more", why=why)
        self._on_lost()
