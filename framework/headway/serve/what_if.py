"""What-if of a policy over HTTP: a question with a body, for operators, that takes seconds.

Unlike what is read it is no GET: it costs the daemon a process, and no cache or link may ask it. Unlike an
action it changes nothing, and ends when its client goes away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headway.errors import Failure
from headway.serve import bodies
from headway.serve.answers import told
from headway.serve.asking import Gatekeeper, known
from headway.serve.problems import problem
from headway.serve.source import Caller, Source
from headway.service.protocol import Reply, WhatIf

PATH = "/what-if"
ABOUT = "What would become of the jobs that wait under another policy. For operators; takes seconds."
#: What became of it -> status code.
_CODES = {"unknown": 400, "refused": 403}


class WhatIfBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is asked, with the fields of the socket's request, but the options as an object."""

    policy: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    options: dict[str, Any] = {}
    most: Annotated[int, msgspec.Meta(ge=0, le=5000)] = 1000

    def request(self) -> WhatIf:
        """The socket's request; :class:`msgspec.ValidationError` for options that are too long."""
        options = msgspec.json.encode(self.options).decode() if self.options else ""
        return msgspec.convert({"policy": self.policy, "options": options, "most": self.most}, WhatIf)


def asker(source: Source, gatekeeper: Gatekeeper) -> Callable[[Request], Awaitable[Response]]:
    """What serves it."""

    async def ask(request: Request) -> Response:
        caller = await known(gatekeeper, request, "operator")
        if isinstance(caller, Response):
            return caller
        found = await bodies.read(request, lambda body: msgspec.json.decode(body, type=WhatIfBody).request())
        if isinstance(found, Response):
            return found
        try:
            reply = await _until_gone(request, source, found[1], caller)
        except Failure as error:
            return problem(503, str(error))
        if reply is None:
            return problem(400, "the client went away")
        if reply.outcome in _CODES:
            return problem(_CODES[reply.outcome], reply.reason)
        return told(reply)

    return ask


async def _until_gone(request: Request, source: Source, wanted: WhatIf, caller: Caller) -> Reply | None:
    """The answer; None: the client went away, and the daemon was told so by hanging up."""
    asked = asyncio.ensure_future(source.ask(wanted, caller))
    gone = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({asked, gone}, return_when=asyncio.FIRST_COMPLETED)
        return await asked if asked.done() else None
    finally:
        for one in (asked, gone):
            one.cancel()
        await asyncio.gather(asked, gone, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
