"""What a stand-by's socket answers: how it is, whether that is well, and where the leader is."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from concurrent.futures import Future
from typing import Any, Protocol

from msgspec.structs import replace

from headway.config import Config
from headway.daemon.users import socket_server
from headway.errors import Failure, HeadwayError
from headway.inquiry.reports import HealthCheck, HealthReport
from headway.measured.measures import Measures
from headway.measured.report import Measured
from headway.service import protocol
from headway.service.outbox import Outbox
from headway.service.peer import Peer
from headway.service.protocol import Leadership, Reply, Report
from headway.service.server import Server

#: What is known of the leader's journal may be so old, seconds.
LATE = 60.0


class Waits(Protocol):
    """A stand-by. Asked on any thread."""

    #: When it looked last whether it may lead, absolute seconds.
    looked: float

    def leadership(self) -> Leadership:
        """What it knows of the leader."""


class Answering:
    """The answers of a stand-by."""

    def __init__(self, config: Config, waits: Waits, wall: Callable[[], float] = time.time) -> None:
        self._waits = waits
        self._patience = config.standby.patience
        self.has_news: Callable[[], None] = _nobody_follows
        self._report = Report(str(config.mode), "", 0, wall(), tuple(map(_plugin, config.plugins)))
        self._measures = Measures(wall)
        self._measures.leads(0, drives=False)
        self._limited = 0

    def ask(self, request: protocol.AnyRequest, peer: Peer) -> Future[Reply]:
        future: Future[Reply] = Future()
        if isinstance(request, protocol.Status):
            reply = Reply("accepted", status=self.whole_status())
        elif isinstance(request, protocol.Health):
            reply = Reply("accepted", found=self._health())
        elif isinstance(request, protocol.Metrics):
            reply = Reply("accepted", metrics=self._measured())
        else:
            reply = Reply("failed", self._elsewhere())
        future.set_result(reply)
        return future

    def limited(self, user: str) -> None:
        """A request was refused because its user asks too often."""
        self._limited += 1

    def follow(self, operators: Collection[str], *, operator: bool) -> Outbox:
        """No program can: nothing changes here."""
        raise Failure(self._elsewhere())

    has_more_to_tell = False

    def go_on_telling(self) -> None:
        """No program follows."""

    def whole_status(self) -> Report:
        """How the stand-by is."""
        return replace(self._report, leadership=self._waits.leadership())

    def close(self) -> None:
        """Nothing waits here."""

    def _elsewhere(self) -> str:
        known = self._waits.leadership()
        leader = f"ask the leader, {known.leader}" if known.leader else "no leader is known"
        return f"this headway is the stand-by: {leader}"

    def _health(self) -> HealthReport:
        """Whether it hears of a leader, and could take over without loss."""
        known = self._waits.leadership()
        silent = known.silent if known.silent is not None else 0.0
        heard = bool(known.leader) and silent <= self._patience
        ago = f", last heard of {silent:.1f} s ago" if known.leader else ""
        leader = HealthCheck(
            "leader", heard, known.leads + ago,
            "" if heard else "the log says whether this daemon can lead",
        )  # fmt: skip
        current = known.lag is not None and known.lag <= LATE and not known.trouble
        remedy = "" if current else "the log says what is in the way"
        return HealthReport((leader, HealthCheck("leader's journal", current, _told(known), remedy)))

    def _measured(self) -> Measured:
        self._measures.journal_lag = self._waits.leadership().lag
        return replace(
            self._measures.told(users=False), mode=self._report.mode, last_turn=self._waits.looked,
            requests_limited=self._limited,
        )  # fmt: skip


def _told(known: Leadership) -> str:
    if known.lag is None:
        said = "nothing of it is known"
    elif known.lag:
        said = f"what is known of it is at most {known.lag:.1f} s old"
    else:
        said = "it is shared"
    return "; ".join([said, *([known.trouble] if known.trouble else [])])


def _nobody_follows() -> None:
    """No program is told anything."""


def _plugin(entry: str | dict[str, Any]) -> str:
    return entry if isinstance(entry, str) else next(iter(entry))


def served(config: Config, waits: Waits, log: Any) -> Server | None:
    """The socket that users reach the stand-by by; None without one. What is wrong with it costs no
    stand-by."""
    path = config.socket_path()
    if path is None:
        return None
    try:
        return socket_server(config.service, path, Answering(config, waits), log)
    except HeadwayError as error:
        log.warning("users cannot reach the stand-by, because it has no socket", error=str(error))
        return None
