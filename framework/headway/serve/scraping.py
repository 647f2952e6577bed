"""``/metrics``: what the daemon measures, as Prometheus and OpenMetrics read it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from headway.errors import Failure
from headway.measured.exposition import exposition
from headway.serve.asking import Gatekeeper, known
from headway.serve.problems import problem
from headway.serve.source import Source
from headway.service import protocol

_OPENMETRICS = "application/openmetrics-text"
#: Whether OpenMetrics is wanted -> the content type.
_TYPES = {
    True: f"{_OPENMETRICS}; version=1.0.0; charset=utf-8",
    False: "text/plain; version=0.0.4; charset=utf-8",
}


def scraper(source: Source, gatekeeper: Gatekeeper) -> Callable[[Request], Awaitable[Response]]:
    """What serves the metrics, to whom the way here lets read."""

    async def scrape(request: Request) -> Response:
        caller = await known(gatekeeper, request, "read")
        if isinstance(caller, Response):
            return caller
        try:
            reply = await source.ask(protocol.Metrics(), caller)
        except Failure as error:
            return problem(503, str(error))
        if reply.metrics is None:
            return problem(503, reply.reason or "the daemon answers without figures")
        wanted = _OPENMETRICS in request.headers.get("accept", "")
        headers = {"content-type": _TYPES[wanted], "cache-control": "no-store"}
        return Response(exposition(reply.metrics, wanted), headers=headers)

    return scrape
