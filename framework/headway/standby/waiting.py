"""The stand-by: hears of the leader, answers how it is, and leads when the leader is over."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import structlog

from headway.config import Config
from headway.daemon.notifying import Life
from headway.errors import HeadwayError, UserError
from headway.inputs.database_url import database_url
from headway.journal.lock import holder
from headway.plugins import Catalogue
from headway.service.protocol import Leadership
from headway.standby.answering import served
from headway.standby.followed import FollowedJournal
from headway.standby.keeper import Keeper
from headway.standby.leadership import OFTEN, Role, Watch, Word, lasting
from headway.standby.lease import Lease
from headway.standby.shared import SharedJournal
from headway.standby.sources import Source

#: Between two looks, seconds, at most.
_LOOK = 0.5


class StandBy:
    """Waits to lead."""

    def __init__(
        self,
        config: Config,
        source: Source,
        lease: Lease,
        *,
        stopped: Callable[[], bool],
        on_lost: Callable[[], None],
        on_look: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = lasting,
        wall: Callable[[], float] = time.time,
        pause: Callable[[float], None] = time.sleep,
        log: Any = None,
    ) -> None:
        """``stopped``: whether the process is to end; ``on_lost`` is called if it leads and does not any
        more; ``on_look`` each time that it looks whether it may lead."""
        self._settings = config.standby
        self._source = source
        self._lease = lease
        self._stopped = stopped
        self._on_lost = on_lost
        self._on_look = on_look
        #: When it looked last, absolute seconds.
        self.looked = wall()
        self._clock, self._wall, self._pause = clock, wall, pause
        self._log = log if log is not None else structlog.get_logger("headway.standby")
        self._watch = Watch(self._settings.patience, clock())
        self._since = wall()

    def wait(self) -> Keeper | None:
        """The lease, once this daemon leads; None: it is to end first."""
        look = min(_LOOK, OFTEN * self._settings.patience)
        last = self._clock()
        while not self._stopped():
            now = self._clock()
            if now - last > self._settings.patience / 2:
                # This process was stopped: it cannot know what the leader did meanwhile.
                self._watch.blind(now)
            last = now
            self.looked = self._wall()
            self._on_look()
            self._source.hear(self._watch)
            if self._source.may_lead(self._watch, self._clock()):
                keeper = self._lead()
                if keeper is not None:
                    return keeper
            self._pause(look)
        self._source.close(leads=False)
        return None

    def leadership(self) -> Leadership:
        """For a person. Called by any thread."""
        now, word = self._clock(), self._watch.word
        leads = word is not None and word.leads
        return Leadership(
            str(Role.STANDBY),
            word.holder if word is not None and leads else "",
            word.epoch if word is not None else 0,
            self._since,
            self._watch.silent(now),
            self._source.lag(now),
            self._source.trouble,
        )

    def line(self) -> str:
        """How it is, in a line."""
        known = self.leadership()
        return "; ".join(["stand-by", known.leads, *([known.trouble] if known.trouble else [])])

    def _lead(self) -> Keeper | None:
        """Take over; None if another daemon was faster, or what it takes does not answer."""
        now, before = self._clock(), self._watch.word
        lag = self._source.lag(now)
        try:
            known = max(before.epoch if before is not None else 0, self._source.epoch())
            # A leader that began anew without our knowing has another number, and an earlier one.
            word = Word(max(known + 1, int(self._wall())), holder())
            if not self._source.take(self._watch, word):
                return None
        except HeadwayError as error:
            self._log.warning("this daemon cannot lead; waiting", error=str(error))
            return None
        self._log.info(
            "headway leads", epoch=word.epoch, before=before.holder if before is not None else None,
            gave_up=before is not None and before.released, silent=round(self._watch.silent(now), 1),
            lag=None if lag is None else round(lag, 1),
        )  # fmt: skip
        keeper = Keeper(
            self._lease, word, self._settings.patience, asked=now, on_lost=self._on_lost,
            free=self._source.free, clock=self._clock, log=self._log,
        )  # fmt: skip
        keeper.begin()
        self._source.close(leads=True)
        return keeper


def stand_by(
    config: Config, plugin_files: tuple[Path, ...], stopped: Callable[[], bool], on_lost: Callable[[], None]
) -> Keeper | None:
    """Wait until this daemon leads; None: it is to end first.

    Raises :class:`headway.errors.UserError` for what is wrong with the configuration, as far as that can be
    seen before a run is made: at a take-over there is no time for it.
    """
    log = structlog.get_logger("headway.standby")
    Catalogue(plugin_files).enabled(config.plugin_configs())
    source, lease = _source(config, log)
    life = Life()
    waits = StandBy(
        config, source, lease, stopped=stopped, on_lost=on_lost, on_look=life.turned, log=log
    )  # fmt: skip
    log.info("standing by", lease=lease.name, patience=config.standby.patience)
    server = served(config, waits, log)
    # A service manager waits for this word, and would end a stand-by that gives none.
    life.stands_by(waits.line)
    keeper = None
    try:
        keeper = waits.wait()
        return keeper
    finally:
        if server is not None:
            server.close()
        if keeper is None:
            life.stops()


def _source(config: Config, log: Any) -> tuple[Source, Lease]:
    url = database_url(config.journal, "journal")
    settings = config.standby
    if url.get_backend_name() != "sqlite":
        if settings.follow:
            raise UserError(
                f"{config.source}: standby.follow: expected none, since both daemons write to one database; "
                f"found {settings.follow[0]!r}"
            )
        shared = SharedJournal(config.journal, log)
        return shared, shared.lease
    if not settings.follow:
        raise UserError(
            f"{config.source}: standby.follow: expected the command that tells the other daemon's journal "
            "(ssh, OTHER, headway, journal, follow, -c, FILE), found none"
        )
    followed = FollowedJournal(Path(url.database or ""), settings, log)
    return followed, followed.lease
