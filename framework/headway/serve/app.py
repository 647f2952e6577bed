"""The interface as an ASGI application."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Protocol

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from headway.errors import Failure
from headway.serve.resources import RESOURCES, Resource, request_of
from headway.serve.source import Caller, Source
from headway.service.protocol import Reply

#: What version 1 promises: fields are added, none is taken away or changes its meaning.
VERSION = "/v1"
#: The page, which needs no other host.
PAGE = Path(__file__).parent / "page"
#: What became of a question -> status code.
_CODES = {"accepted": 200, "unknown": 404, "refused": 403, "failed": 503}


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is sent for a resource."""

    #: The time of the cycle that this is the state after (absolute seconds).
    as_of: float | None
    data: msgspec.Raw
    #: What is missing, or may be; "" if nothing is.
    remark: str = ""
    #: Since when the daemon has not answered (absolute seconds), if this is the last that is known of it.
    silent_since: float | None = None


class Problem(msgspec.Struct, frozen=True):
    """Why there is no answer (RFC 9457)."""

    title: str
    status: int
    detail: str


class Gatekeeper(Protocol):
    """Says who asks."""

    async def caller(self, request: Request) -> Caller | None:
        """The user that asks; None: it is not known."""
        ...


def make_app(source: Source, gatekeeper: Gatekeeper) -> Starlette:
    """The application: resources under :data:`VERSION`, and the page."""
    resources: Sequence[BaseRoute] = [
        Route(resource.path, _reader(resource, source, gatekeeper), methods=["GET"]) for resource in RESOURCES
    ]
    return Starlette(
        routes=[Mount(VERSION, routes=resources), Mount("/", StaticFiles(directory=PAGE, html=True))]
    )


def _reader(
    resource: Resource, source: Source, gatekeeper: Gatekeeper
) -> Callable[[Request], Awaitable[Response]]:
    async def read(request: Request) -> Response:
        caller = await gatekeeper.caller(request)
        if caller is None:
            return problem(401, "nobody is known to ask")
        try:
            asked = request_of(resource, {**request.query_params, **request.path_params})
        except msgspec.ValidationError as error:
            return problem(400, str(error))
        try:
            reply = await source.ask(asked, caller)
        except Failure as error:
            return problem(503, str(error))
        return _told(reply)

    return read


def _told(reply: Reply) -> Response:
    found = reply.found if reply.found is not None else reply.status
    if reply.outcome != "accepted" or found is None:
        return problem(_CODES.get(reply.outcome, 503), reply.reason)
    data = msgspec.Raw(msgspec.json.encode(found))
    return json(Answer(reply.as_of, data, reply.reason, reply.silent_since))


def json(data: msgspec.Struct, status: int = 200, media_type: str = "application/json") -> Response:
    return Response(msgspec.json.encode(data), status, media_type=media_type)


def problem(status: int, detail: str) -> Response:
    titles = {400: "Not a request", 401: "Not known", 403: "Not allowed", 404: "Not there", 503: "No answer"}
    return json(Problem(titles.get(status, "Failed"), status, detail), status, "application/problem+json")
