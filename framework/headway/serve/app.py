"""The interface as an ASGI application."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from headway.errors import Failure
from headway.serve.actions import ACTIONS, Replays, actor
from headway.serve.answers import told
from headway.serve.asking import Gatekeeper, known, question_of
from headway.serve.guard import LOCAL, Guard
from headway.serve.history import History, past_routes
from headway.serve.openapi import Self, description
from headway.serve.problems import json, problem
from headway.serve.resources import RESOURCES, Resource
from headway.serve.scraping import scraper
from headway.serve.source import Source
from headway.serve.streams import Seats, Streams, streamer
from headway.serve.tags import Tagging, is_known, tagged, unchanged
from headway.serve.what_if import PATH as WHAT_IF
from headway.serve.what_if import asker

#: What version 1 promises: fields are added, none is taken away or changes its meaning.
VERSION = "/v1"
#: The page, which needs no other host.
PAGE = Path(__file__).parent / "page"


def make_app(
    source: Source,
    gatekeeper: Gatekeeper,
    *,
    hosts: Collection[str] = LOCAL,
    seats: Seats | None = None,
    more: Sequence[BaseRoute] = (),
    history: History | None = None,
) -> ASGIApp:
    """The application: resources, the past and actions under :data:`VERSION`, the page, and ``more``.

    ``hosts``: names of this machine; ``seats``: how many streams of changes there may be.
    """
    replays = Replays()
    routes: list[BaseRoute] = [
        Route(resource.path, _reader(resource, source, gatekeeper), methods=["GET"]) for resource in RESOURCES
    ]
    routes += [
        Route(action.path, actor(action, source, gatekeeper, replays), methods=["POST"]) for action in ACTIONS
    ]
    routes.append(Route(WHAT_IF, asker(source, gatekeeper), methods=["POST"]))
    past = history if history is not None else History(None, lambda _: False)
    routes += past_routes(past, gatekeeper)
    routes.append(Route("/self", _self(gatekeeper), methods=["GET"]))
    routes.append(Route("/openapi.json", _describe, methods=["GET"]))
    if isinstance(source, Streams):
        stream = streamer(source, gatekeeper, seats if seats is not None else Seats())
        routes.append(Route("/stream", stream, methods=["GET"]))
    page = Mount("/", StaticFiles(directory=PAGE, html=True))
    app = Starlette(
        routes=[*more, Route("/metrics", scraper(source, gatekeeper)), Mount(VERSION, routes=routes), page],
        exception_handlers={HTTPException: _said, Exception: _broken},
    )
    return Guard(app, hosts, VERSION)


def _reader(
    resource: Resource, source: Source, gatekeeper: Gatekeeper
) -> Callable[[Request], Awaitable[Response]]:
    async def read(request: Request) -> Response:
        question = await question_of(gatekeeper, request, resource)
        if isinstance(question, Response):
            return question
        asked, caller = question
        tag = source.tag(asked, caller) if isinstance(source, Tagging) else None
        if tag is not None and is_known(request, tag):
            return unchanged(tag)
        try:
            reply = await source.ask(asked, caller)
        except Failure as error:
            return problem(503, str(error))
        return told(reply) if tag is None else tagged(told(reply), tag)

    return read


def _self(gatekeeper: Gatekeeper) -> Callable[[Request], Awaitable[Response]]:
    async def tell(request: Request) -> Response:
        caller = await known(gatekeeper, request, "read")
        if isinstance(caller, Response):
            return caller
        return json(Self(caller.user, tuple(sorted(caller.scopes))))

    return tell


async def _describe(request: Request) -> Response:
    return Response(description(VERSION), media_type="application/json")


async def _said(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    found = problem(error.status_code, str(error.detail))
    found.headers.update(error.headers or {})
    return found


async def _broken(request: Request, error: Exception) -> Response:
    """What went wrong stands in the log alone."""
    return problem(500, "the interface failed at this request")
