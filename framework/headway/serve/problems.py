"""Why there is no answer (RFC 9457), and answers as JSON."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from starlette.responses import Response

#: Status code -> what it says in general.
TITLES = {
    400: "Not a request", 401: "Not known", 403: "Not allowed", 404: "Not there", 405: "Not for this method",
    409: "Not again", 413: "Too large", 415: "Not JSON", 421: "Not this host", 429: "Too often",
    503: "No answer",
}  # fmt: skip


class Problem(msgspec.Struct, frozen=True):
    """Why there is no answer."""

    title: str
    status: int
    detail: str


def json(
    data: msgspec.Struct,
    status: int = 200,
    media_type: str = "application/json",
    headers: Mapping[str, str] | None = None,
) -> Response:
    return Response(msgspec.json.encode(data), status, headers, media_type)


def problem(status: int, detail: str) -> Response:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    told = Problem(TITLES.get(status, "Failed"), status, detail)
    return json(told, status, "application/problem+json", headers)
