"""What can be done over HTTP: the requests of the local socket, in the asking user's name.

A client that did not get its answer sends the request again with the same ``Idempotency-Key``: it is told
what became of the first, and nothing is done twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headway.errors import Failure
from headway.serve import bodies
from headway.serve.asking import Gatekeeper, known
from headway.serve.problems import json, problem
from headway.serve.shares import Shares
from headway.serve.source import Caller, NotAsked, Source
from headway.service import protocol
from headway.service.protocol import Outcome

#: The header that names a request which may be sent twice.
KEY_HEADER = "Idempotency-Key"
_LONGEST_KEY = 128
#: What became of a request -> status code.
_CODES = {"accepted": 200, "in part": 200, "waiting": 202, "refused": 403}


@dataclass(frozen=True)
class Action:
    """What can be done under one path, with the request's fields as the body."""

    path: str
    request: type[protocol.Elastic | protocol.Reserve | protocol.Unreserve | protocol.Plugin]
    about: str


#: Of version 1.
ACTIONS = (
    Action("/actions/elastic", protocol.Elastic, "Change a job's time limit or size."),
    Action("/actions/reserve", protocol.Reserve, "Reserve nodes or processors for a time."),
    Action("/actions/unreserve", protocol.Unreserve, "Give a reservation back."),
    Action("/actions/plugin", protocol.Plugin, "Something of a plugin's own."),
)


@dataclass
class _Done:
    body: bytes
    #: On the monotonic clock.
    at: float
    answer: asyncio.Task[Response]


@dataclass
class Replays:
    """What became of requests with a key, for a while."""

    #: Seconds for which they are known, and how many, in all and of one user.
    lasts: float = 3600.0
    most: int = 10_000
    most_each: int = 1000
    clock: Callable[[], float] = time.monotonic
    #: By user and key.
    _done: Shares[_Done] = field(init=False)
    #: What goes on after its client went away.
    _running: set[asyncio.Task[Response]] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        self._done = Shares(self.most, self.most_each)

    async def once(self, user: str, key: str, body: bytes, do: Callable[[], Awaitable[Response]]) -> Response:
        """The answer of ``do``, or of the request of this user that had the same key. ``do`` ends what it has
        begun, also if the client goes away meanwhile."""
        self._forget_old()
        digest = hashlib.sha256(body).digest()
        done = self._done.get((user, key))
        if done is not None and done.body != digest:
            return problem(409, f"another request had this {KEY_HEADER}")
        if done is None:
            task = asyncio.ensure_future(_all_of(do()))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
            done = _Done(digest, self.clock(), task)
            if key:
                self._done.put(user, (user, key), done)
        try:
            return _again(await asyncio.shield(done.answer))
        except NotAsked as error:
            # Nothing was done, so that it may be tried again.
            if self._done.get((user, key)) is done:
                self._done.drop((user, key))
            return problem(503, str(error))

    @property
    def known(self) -> int:
        """How many requests are known."""
        return len(self._done)

    def _forget_old(self) -> None:
        old = self.clock() - self.lasts
        while (first := self._done.oldest()) is not None and first[1].at <= old:
            self._done.drop(first[0])


async def _all_of(what: Awaitable[Response]) -> Response:
    return await what


def _again(answer: Response) -> Response:
    """A copy: what has been sent may not be sent again."""
    return Response(answer.body, answer.status_code, media_type=answer.media_type)


def actor(
    action: Action, source: Source, gatekeeper: Gatekeeper, replays: Replays
) -> Callable[[Request], Awaitable[Response]]:
    """What serves an action."""

    async def act(request: Request) -> Response:
        caller = await known(gatekeeper, request, "user")
        if isinstance(caller, Response):
            return caller
        key = request.headers.get(KEY_HEADER, "")
        if len(key) > _LONGEST_KEY:
            return problem(400, f"{KEY_HEADER}: expected at most {_LONGEST_KEY} characters")
        found = await bodies.read(request, lambda body: msgspec.json.decode(body, type=action.request))
        if isinstance(found, Response):
            return found
        body, asked = found
        return await replays.once(
            caller.user, key, action.path.encode() + b"\n" + body, lambda: _done(source, asked, caller)
        )

    return act


async def _done(source: Source, asked: Any, caller: Caller) -> Response:
    try:
        reply = await source.ask(asked, caller)
    except NotAsked:
        raise
    except Failure as error:
        return problem(503, f"{error}; it is not known whether it was done")
    code = _CODES.get(reply.outcome)
    if code is None or code == 403:
        return problem(code or 503, reply.reason)
    return json(Outcome(reply.outcome, reply.reason), code)
