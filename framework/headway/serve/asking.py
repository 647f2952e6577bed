"""The first question of each request: who asks, and is that allowed on the way here?"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headway.serve.problems import problem
from headway.serve.resources import Resource, request_of
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


async def question_of(
    gatekeeper: Gatekeeper, request: Request, resource: Resource
) -> tuple[Any, Caller] | Response:
    """What is asked of a resource, and by whom; else why that is no question."""
    caller = await known(gatekeeper, request, "read")
    if isinstance(caller, Response):
        return caller
    try:
        return request_of(resource, request.query_params.multi_items(), request.path_params), caller
    except msgspec.ValidationError as error:
        return problem(400, str(error))
