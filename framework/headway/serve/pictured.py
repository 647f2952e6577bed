"""Answers from a picture of the cluster that is kept beside the daemon, so that reading costs the daemon
nothing.

The picture is what the daemon tells to a program that follows it. Until all of it has been told, and where
the daemon does not let itself be followed, the daemon is asked. If the daemon goes away, the last picture is
what is told, with a word since when; and the daemon is tried again and again.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import secrets
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec
import structlog
from msgspec.structs import replace

from headway.errors import Failure
from headway.serve.news import News
from headway.serve.picture import Picture, sees_all
from headway.serve.reading import MADE_FROM, Readable, Reader
from headway.serve.source import Caller, DaemonSource, NotAsked
from headway.serve.stream import DaemonItem, Item, Stream
from headway.service import protocol
from headway.service.changes import FORMAT, Begun, Change, read_change
from headway.service.protocol import AnyRequest, Reply

#: A daemon that says nothing for so long does not answer, seconds.
SILENT = 10.0
#: Seconds until the daemon is tried again: at first, and at most.
_AGAIN, _LATEST = 0.2, 5.0
#: Bytes that are read at once.
_CHUNK = 256 * 1024
#: What ends the following of a daemon: it is gone or silent; it does not want it, or is not understood.
_GONE = (OSError, TimeoutError, EOFError)
_OTHER = (Failure, msgspec.MsgspecError)
#: What is the same for everybody until the next cycle, and how many such answers are kept.
_COMMON = protocol.Holes | protocol.Starts | protocol.Datasets
_KEPT = 256


@dataclass
class PictureSource:
    """A picture, and the daemon for what is not in it."""

    daemon: DaemonSource
    clock: Callable[[], float] = time.time
    silent: float = SILENT
    stream_of: Stream = field(default_factory=Stream)
    #: What holds of users' rights until the daemon has told it.
    rights: Begun = field(default_factory=lambda: Begun(FORMAT))
    #: What is told; None: nothing is known yet.
    picture: Picture | None = field(default=None, init=False)
    #: Since when the daemon does not answer (absolute seconds); None: it does, or was never there.
    silent_since: float | None = field(default=None, init=False)
    #: The picture is what the daemon tells now.
    is_current: bool = field(default=False, init=False)
    #: Of this process, and which of its pictures is told.
    _salt: str = field(default_factory=lambda: secrets.token_hex(6), init=False)
    _pictures: int = field(default=0, init=False)
    #: When it was heard last.
    _heard: float = field(default=0.0, init=False)
    #: Answers that are the same for all, after the cycle of this number.
    _common: tuple[int, dict[AnyRequest, asyncio.Future[Reply]]] = field(default=(-1, {}), init=False)

    # ------------------------------------------------------------------ what is asked of it

    async def ask(self, request: AnyRequest, caller: Caller) -> Reply:
        picture = self.picture if self.is_current or self.silent_since is not None else None
        if picture is not None and isinstance(request, Readable):
            reply = Reader(picture, caller).answer(request)
            return reply if self.silent_since is None else self._with_a_word(reply, self.silent_since)
        if self.silent_since is not None:
            raise NotAsked(f"the daemon has not answered since {_told(self.silent_since)}")
        if isinstance(request, _COMMON) and self.is_current and picture is not None:
            return await self._asked_once(picture, request, caller)
        return await self.daemon.ask(request, caller)

    def tag(self, request: AnyRequest, caller: Caller) -> str | None:
        """A word that is another one as soon as the answer may be (ETag); None: that is not known.

        It is made from how often what the answer is made from has changed, and not from the answer."""
        picture = self.picture if self.is_current or self.silent_since is not None else None
        made_from = MADE_FROM.get(type(request))
        if picture is None or made_from is None:
            return None
        asked = (caller.user, caller.itself, sorted(caller.scopes), request)
        digest = hashlib.blake2b(msgspec.json.encode(asked), digest_size=12).hexdigest()
        counts = ".".join(str(picture.changes[kind]) for kind in made_from)
        return f'W/"{self._salt}.{self._pictures}.{self.silent_since}.{counts}.{digest}"'

    def sees_all(self, caller: Caller) -> bool:
        """Whether a user may know of all jobs: as the daemon has said last."""
        return sees_all(self.rights if self.picture is None else self.picture.begun, caller)

    def stream(self, caller: Caller, after: int | None = None) -> AsyncIterator[Item]:
        def all_of_it() -> bool:
            return self.picture is not None and self.picture.sees_all(caller)

        return self.stream_of.read(caller.user, all_of_it, after)

    def _with_a_word(self, reply: Reply, since: float) -> Reply:
        word = f"the daemon has not answered since {_told(since)}: this is the last that is known of it"
        reason = f"{reply.reason}; {word}" if reply.reason else word
        return replace(reply, reason=reason, silent_since=since)

    async def _asked_once(self, picture: Picture, request: _COMMON, caller: Caller) -> Reply:
        """What the daemon says, for all who ask the same until the next cycle."""
        number = picture.cycle.report.number if picture.cycle is not None else 0
        if self._common[0] != number or len(self._common[1]) >= _KEPT:
            self._common = number, {}
        known = self._common[1]
        found = known.get(request)
        is_own = found is None
        if found is None:
            found = known[request] = asyncio.ensure_future(self.daemon.ask(request, caller))
        try:
            reply = await asyncio.shield(found)
        except Exception:
            known.pop(request, None)
            raise
        if reply.outcome == "accepted":
            return reply
        known.pop(request, None)
        # Another user's refusal, say of too many requests, is none of this user's.
        return reply if is_own else await self.daemon.ask(request, caller)

    # ------------------------------------------------------------------ the daemon is followed

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """While this is open, the picture is kept."""
        task = asyncio.create_task(self._follow())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _follow(self) -> None:
        log, pause, why = structlog.get_logger("headway.serve"), _AGAIN, ""
        while True:
            try:
                await self._follow_once()
            except Exception as error:
                if self.is_current:
                    pause, why = _AGAIN, ""
                said = self._ended_by(error, log)
            if said != why:
                log.warning("the daemon is not followed", why=said)
            why = said
            await asyncio.sleep(pause)
            pause = min(_LATEST, 2 * pause)

    def _ended_by(self, error: Exception, log: Any) -> str:
        """The daemon is not followed any more; why."""
        if isinstance(error, _GONE):
            self._lost()
            return str(error) or f"it has said nothing for {self.silent:g} s"
        if not isinstance(error, _OTHER):
            log.exception("what the daemon told could not be taken in, which is a mistake in headway")
        self._give_up()
        return str(error)

    async def _follow_once(self) -> None:
        """Follow until the daemon goes away: always raises."""
        reader, writer = await asyncio.open_unix_connection(self.daemon.socket, limit=_CHUNK)
        try:
            writer.write(protocol.write(protocol.Follow(FORMAT)))
            picture, rest = Picture(), b""
            news = News(picture, self.stream_of)
            while True:
                async with asyncio.timeout(self.silent):
                    more = await reader.read(_CHUNK)
                if not more:
                    raise EOFError("it ended")
                *lines, rest = (rest + more).split(b"\n")
                for line in filter(None, lines):
                    news.fold(_change(line))
                # It answers again: what is not told yet is asked of it.
                self._heard, self.silent_since = self.clock(), None
                if self.picture is not picture and picture.whole:
                    self._found(picture)
                elif self.picture is picture:
                    news.tell()
        finally:
            writer.close()

    def _found(self, picture: Picture) -> None:
        """All is known that the daemon tells at the beginning."""
        self.picture, self.is_current = picture, True
        self._pictures += 1
        structlog.get_logger("headway.serve").info("the daemon is followed", socket=str(self.daemon.socket))
        self.stream_of.put("daemon", DaemonItem(True, self.clock()))
        self.stream_of.tell()

    def _lost(self) -> None:
        """The daemon is gone, or silent."""
        if self.picture is not None and self.silent_since is None:
            self.silent_since = self._heard
        self._ended(self._heard)

    def _give_up(self) -> None:
        """The daemon speaks, and is not to be followed: it is asked."""
        self.picture = self.silent_since = None
        self._ended(self.clock())

    def _ended(self, since: float) -> None:
        if self.is_current:
            self.is_current = False
            self.stream_of.put("daemon", DaemonItem(False, since))
            self.stream_of.tell()


def _change(line: bytes) -> Change:
    if line.startswith(b"{"):
        raise Failure(protocol.read_reply(line).reason)
    change = read_change(line)
    if isinstance(change, Begun) and change.format != FORMAT:
        raise Failure(f"it tells format {change.format}, and this program knows format {FORMAT}")
    return change


def _told(time: float) -> str:
    return datetime.fromtimestamp(time).strftime("%Y-%m-%d %H:%M:%S")
