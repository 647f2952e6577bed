"""The past, from the journal, read only: also while the daemon is down.

Each question opens the journal anew, so that a journal that was replaced, pruned or moved back is read as it
is. Nothing of it is done on the event loop's thread, and nothing waits for the daemon or makes it wait.
"""

from __future__ import annotations

import asyncio
import json as standard_json
import math
import os
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from headway.errors import Failure, HeadwayError
from headway.inputs.database_url import database_url
from headway.inquiry.past_reports import DecisionHistory, EventHistory, WorkHistory
from headway.journal.past import Asked, Found, Past, Place
from headway.serve import past as p
from headway.serve.answers import Answer
from headway.serve.asking import Gatekeeper, question_of
from headway.serve.problems import json, problem
from headway.serve.recorded import Recorded
from headway.serve.resources import Resource
from headway.serve.source import Caller
from headway.serve.turns import Turns
from headway.service.server import user_name

#: Rows of one job that are read, at most.
OF_A_JOB = 20_000


class Busy(Failure):
    """Too many questions wait already."""


class NotThere(Failure):
    """Nothing of that name is there for the asking user."""


@dataclass
class History:
    """What a journal tells of the past."""

    #: As the configuration names it; None: no configuration does.
    journal: str | None
    #: Whether a user may know of all jobs.
    sees_all: Callable[[Caller], bool]
    #: Since when the daemon has not answered (absolute seconds); None: it does, or that is not known.
    silent_since: Callable[[], float | None] = lambda: None
    #: Seconds in which the journal answers, and in which a turn and an answer come.
    seconds: float = 5.0
    timeout: float = 15.0
    #: Questions that are answered at a time, of these one user's, and questions that wait.
    at_once: int = 2
    of_one: int = 1
    waiting: int = 200
    _asked: int = field(default=0, init=False)
    _threads: ThreadPoolExecutor = field(init=False)
    _turns: Turns = field(init=False)

    def __post_init__(self) -> None:
        self._turns = Turns(self.at_once, self.of_one)
        self._threads = ThreadPoolExecutor(self.at_once, "headway-history")

    async def ask(self, question: p.Question, caller: Caller) -> Answer:
        """The answer, as far as the user may know it. :class:`NotThere`, :class:`Busy`, and
        :class:`headway.errors.HeadwayError` if the journal cannot be read."""
        if self._asked >= self.waiting:
            raise Busy("too many questions to the journal wait; try again later")
        user = None if self.sees_all(caller) else caller.user
        self._asked += 1
        try:
            async with asyncio.timeout(self.timeout), self._turns.of(caller.user):
                loop = asyncio.get_running_loop()
                answer = await loop.run_in_executor(self._threads, self._answer, question, user)
        except TimeoutError as error:
            raise Failure(f"the journal does not answer within {self.timeout:g} s") from error
        finally:
            self._asked -= 1
        return msgspec.structs.replace(answer, silent_since=self.silent_since())

    # ------------------------------------------------------------------ on a thread of its own

    def _answer(self, question: p.Question, user: str | None) -> Answer:
        if self.journal is None:
            raise Failure("no journal is read here: `headway serve` has no configuration (-c FILE)")
        try:
            with Past.open(self.journal, self.seconds) as past:
                found = _found(question, past, user)
                as_of = past.newest()
        except NotThere:
            raise
        except HeadwayError as error:
            raise Failure(self._why(error)) from error
        return Answer(
            as_of, msgspec.Raw(_encoded(found)), "" if user is None else "only your own jobs are shown"
        )

    def _why(self, error: HeadwayError) -> str:
        """What is wrong, and what is missing where this process may not read the journal."""
        assert self.journal is not None
        said = f"the past cannot be told: {error}"
        try:
            url = database_url(self.journal, "journal")
        except HeadwayError:
            return said
        if url.get_backend_name() != "sqlite" or os.access(url.database or "", os.R_OK):
            return said
        return (
            f"{said}. `headway serve` runs as user {user_name(os.geteuid())} on this machine: run it as the "
            "journal's user, beside it, or keep the journal in PostgreSQL, with a role that may read it"
        )


def _encoded(found: msgspec.Struct) -> bytes:
    """As JSON, in which a byte of a name that was no UTF-8 is a question mark."""
    try:
        return msgspec.json.encode(found)
    except UnicodeEncodeError:
        text = standard_json.dumps(msgspec.to_builtins(found), ensure_ascii=False)
        return text.encode(errors="replace")


def _found(question: p.Question, past: Past, user: str | None) -> msgspec.Struct:
    recorded = Recorded(past, user)
    match question:
        case p.JobsPast(job):
            if (found := recorded.job(job, OF_A_JOB)) is None:
                whose = "" if user is None else " of yours"
                raise NotThere(f"the journal tells of no job{whose} with the id {job!r}")
            return found
        case p.Decisions():
            page = past.decisions(_asked(question, user))
            return DecisionHistory(recorded.decisions(page.entries), _next(page))
        case p.Events():
            page = past.events(_asked(question, user))
            return EventHistory(recorded.events(page.entries), _next(page))
        case p.Work():
            page, led = past.ends(_asked(question, user))
            jobs = recorded.work(page.entries, led)
            return WorkHistory(tuple(one for one in jobs if question.pool in ("", one.pool)), _next(page))


def _asked(question: p.Decisions | p.Events | p.Work, user: str | None) -> Asked:
    return Asked(
        -math.inf if question.since is None else question.since,
        math.inf if question.until is None else question.until,
        (question.kind,) if not isinstance(question, p.Work) and question.kind else (),
        Place.of(question.after) if question.after else None,
        question.count,
        question.oldest_first,
        user,
        "" if isinstance(question, p.Work) else question.job,
    )


def _next(page: Found) -> str | None:
    return None if page.then is None else str(page.then)


# ---------------------------------------------------------------------- over HTTP


def past_routes(history: History, gatekeeper: Gatekeeper) -> Sequence[BaseRoute]:
    """What serves the past, below the version's path."""
    return [Route(one.path, _reader(one, history, gatekeeper), methods=["GET"]) for one in p.HISTORY]


def _reader(
    resource: Resource, history: History, gatekeeper: Gatekeeper
) -> Callable[[Request], Awaitable[Response]]:
    async def read(request: Request) -> Response:
        question = await question_of(gatekeeper, request, resource)
        if isinstance(question, Response):
            return question
        try:
            return json(await history.ask(*question))
        except NotThere as error:
            return problem(404, str(error))
        except Busy as error:
            return problem(429, str(error))
        except HeadwayError as error:
            return problem(503, str(error))

    return read
