"""Answers that are read again and again: what a client has is neither made nor sent again (RFC 9110, 13).

A tag is made from what has changed and from who asks, before the answer, and costs nearly nothing.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from starlette.requests import Request
from starlette.responses import Response

from headway.serve.source import Caller
from headway.service.protocol import AnyRequest

#: A client keeps it for itself, and asks each time whether it is still so.
KEPT = "private, no-cache"
#: By these headers a user is known: what one user was told is nothing for another.
_VARY = "Authorization, Cookie"


@runtime_checkable
class Tagging(Protocol):
    """A source that knows whether an answer may be another one."""

    def tag(self, request: AnyRequest, caller: Caller) -> str | None:
        """The answer's tag, as the header ``ETag`` has it; None: it has none."""
        ...


def is_known(request: Request, tag: str) -> bool:
    """Whether the client has the answer of this tag."""
    told = request.headers.getlist("if-none-match")
    return any(_weak(one) == _weak(tag) for header in told for one in header.split(","))


def _weak(tag: str) -> str:
    return tag.strip().removeprefix("W/")


def tagged(answer: Response, tag: str) -> Response:
    """The answer, which the client may keep; a problem is none."""
    if answer.status_code == 200:
        answer.headers.update(_headers(tag))
    return answer


def unchanged(tag: str) -> Response:
    """The answer to a client that has it."""
    return Response(status_code=304, headers=_headers(tag))


def _headers(tag: str) -> dict[str, str]:
    return {"etag": tag, "cache-control": KEPT, "vary": _VARY}
