"""How a browser comes to a session: by the link that ``headway serve`` prints, or by a token."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from headway.serve.callers import Ways
from headway.serve.problems import problem
from headway.serve.sessions import LASTS, Sessions

#: Where the link leads to.
ENTRANCE = "/enter"
SESSION = "/v1/session"


def doors(ways: Ways) -> Sequence[BaseRoute]:
    """The link's place, and the session: POST with a token begins it, DELETE ends it."""
    sessions = ways.sessions

    async def enter(request: Request) -> Response:
        words = request.query_params.getlist("word")
        cookie = sessions.follow(words[0]) if len(words) == 1 else None
        if cookie is None:
            return problem(403, "this link was followed before, or is of an earlier `headway serve`")
        # The word does not stay in the browser's line.
        answer = RedirectResponse("/", 303, {"cache-control": "no-store"})
        _set(answer, sessions, cookie)
        return answer

    async def begin(request: Request) -> Response:
        cookie = ways.begin_session(request)
        if cookie is None:
            return problem(401, "expected a token that is valid (Authorization: Bearer)")
        answer = Response(status_code=204)
        _set(answer, sessions, cookie)
        return answer

    async def end(request: Request) -> Response:
        sessions.end(request.cookies.get(sessions.cookie, ""))
        answer = Response(status_code=204)
        answer.delete_cookie(sessions.cookie, httponly=True, samesite="strict", secure=sessions.secure)
        return answer

    return [
        Route(ENTRANCE, enter, methods=["GET"]),
        Route(SESSION, begin, methods=["POST"]),
        Route(SESSION, end, methods=["DELETE"]),
    ]


def _set(answer: Response, sessions: Sessions, word: str) -> None:
    answer.set_cookie(
        sessions.cookie, word, max_age=int(LASTS), httponly=True, samesite="strict", secure=sessions.secure
    )
