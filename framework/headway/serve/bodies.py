"""What a request has as its body."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from headway.serve.problems import problem
from headway.service.protocol import MAX_REQUEST

Asked = TypeVar("Asked")


class TooLarge(Exception):
    """A body has more bytes than it may."""


async def read(request: Request, decode: Callable[[bytes], Asked]) -> tuple[bytes, Asked] | Response:
    """A request's body and what it asks for, as ``decode`` reads it; else why there is none. ``decode``
    raises :class:`msgspec.DecodeError`."""
    try:
        body = await _body_of(request, MAX_REQUEST)
        return body, decode(body)
    except TooLarge:
        return problem(413, f"expected a body of at most {MAX_REQUEST} bytes")
    except ClientDisconnect:
        return problem(400, "the client went away")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return problem(400, str(error))


async def _body_of(request: Request, most: int) -> bytes:
    """A request's body; :class:`TooLarge` as soon as it has more than ``most`` bytes."""
    said = request.headers.get("content-length", "0")
    if not said.isdigit() or int(said) > most:
        raise TooLarge
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > most:
            raise TooLarge
    return body
