"""Where the interface's answers come from."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec

from headway.errors import Failure
from headway.serve.sorting import JobsInOrder
from headway.serve.turns import Turns
from headway.service import protocol
from headway.service.protocol import AnyRequest, OnBehalf, Reply


@dataclass(frozen=True)
class Caller:
    """The user that asks, and what the way by which the user came allows: a token may allow less than the
    user may do."""

    user: str
    #: Of "read", "user" (acts on the own jobs), "operator" (acts on all, if the user is an operator).
    scopes: frozenset[str] = frozenset({"read"})
    #: It is the user of this process, as the daemon sees by itself, with all rights of that user.
    itself: bool = False


class NotAsked(Failure):
    """The daemon was not asked at all, so that nothing was done."""


class Source(Protocol):
    """What answers requests."""

    async def ask(self, request: AnyRequest, caller: Caller) -> Reply:
        """The answer, as far as the caller's user may know it; :class:`Failure` if there is none,
        :class:`NotAsked` if the daemon was not even reached."""
        ...


@dataclass
class DaemonSource:
    """The daemon itself, asked by its local socket on behalf of each user."""

    socket: Path
    #: Seconds within which it answers.
    timeout: float = 15.0
    #: Requests on their way; the daemon takes no more from one program.
    at_once: int = 16
    #: Of these, as many are one user's at most.
    of_one: int = 8
    _turns: Turns = field(init=False)

    def __post_init__(self) -> None:
        self._turns = Turns(self.at_once, self.of_one)

    async def ask(self, request: AnyRequest, caller: Caller) -> Reply:
        if isinstance(request, JobsInOrder):
            if request.sort:
                raise NotAsked(
                    "jobs are not sorted yet: the daemon has not told all of them, or does not let this "
                    "process follow it (service.speakers)"
                )
            request = request.unsorted()
        try:
            async with asyncio.timeout(self.timeout + request.takes), self._turns.of(caller.user):
                operator = "operator" in caller.scopes
                return await self._asked(
                    request if caller.itself else OnBehalf(caller.user, request, operator)
                )
        except TimeoutError as error:
            raise Failure(f"the daemon does not answer within {self.timeout + request.takes:g} s") from error
        except OSError as error:
            raise Failure(f"the daemon at {self.socket} went away: {error.strerror or error}") from error

    async def _asked(self, request: AnyRequest | OnBehalf) -> Reply:
        try:
            reader, writer = await asyncio.open_unix_connection(self.socket, limit=protocol.MAX_REPLY + 1)
        except OSError as error:
            text = f"no daemon answers at {self.socket}: {error.strerror or error}"
            raise NotAsked(text) from error
        try:
            writer.write(protocol.write(request))
            await writer.drain()
            line = await reader.readline()
        except ValueError as error:
            raise Failure(f"the daemon's answer has more than {protocol.MAX_REPLY} bytes") from error
        finally:
            writer.close()
        if not line.endswith(b"\n"):
            raise Failure("the daemon ended before it answered")
        try:
            return protocol.read_reply(line)
        except msgspec.DecodeError as error:
            raise Failure(f"the daemon's answer is none of this version: {error}") from error
