"""The first question of each request: who asks, and is that allowed on the way here?"""

from __future__ import annotations

from typing import Protocol

from starlette.requests import Request
from starlette.responses import Response

from headway.serve.problems import problem
from headway.serve.source import Caller


class Gatekeeper(Protocol):
    """Says who asks."""

    async def caller(self, request: Request) -> Caller | None:
        """The user that asks; None: it is not known."""
        ...


async def known(gatekeeper: Gatekeeper, request: Request, scope: str) -> Caller | Response:
    """The user that asks, if the way here allows ``scope``; else why not."""
    caller = await gatekeeper.caller(request)
    if caller is None:
        return problem(401, "it is not known who asks; a token (headway token create) names the user")
    if scope not in caller.scopes:
        return problem(403, f"user {caller.user} came by a way that does not allow the scope {scope!r}")
    return caller
