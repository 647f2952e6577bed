"""The client: questions, actions, and what happens."""

from __future__ import annotations

import http.client
import ssl
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from headway.client.connection import JSON, Way, token_of_environment
from headway.client.events import Event, events_of
from headway.client.kept import Kept
from headway.client.past import PastOfCluster
from headway.errors import Failure, UserError
from headway.inquiry.reports import (
    BookingPage,
    CycleReport,
    DatasetList,
    HealthReport,
    HoleList,
    JobPage,
    JobReport,
    NodePage,
    PoolList,
    TrialReport,
    WhatIfReport,
)
from headway.journal.starts_report import StartsReport
from headway.serve.past import HISTORY
from headway.serve.past import Question as OfThePast
from headway.serve.resources import RESOURCES, Resource, lists_of
from headway.serve.sorting import JobsInOrder
from headway.service import protocol
from headway.service.protocol import Explained, Outcome, Report

Found = TypeVar("Found", bound=msgspec.Struct)
_ACTIONS = "/v1/actions/"
#: Bytes of an answer, at most.
_MOST = protocol.MAX_REPLY + 65_536
#: Seconds without a sign of life after which a stream is taken for lost; one comes every 15 s.
_SILENT = 60.0
#: Seconds to the first attempt to resume a stream, and at most.
_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
#: Answers behind which a stream may be there later.
_LATER = {429, 502, 503, 504}
_PATHS: dict[type[msgspec.Struct], Resource] = {one.request: one for one in (*RESOURCES, *HISTORY)}
_PATHS[protocol.Jobs] = _PATHS[JobsInOrder]


class Refused(Failure):
    """The interface answered, but not with what was asked for."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(f"{detail} ({status})")
        self.status = status
        self.detail = detail


class Answer(msgspec.Struct, Generic[Found], frozen=True):
    """An answer."""

    data: Found
    #: The time of the cycle that it is the state after (absolute seconds).
    as_of: float | None = None
    #: What is missing, or may be.
    remark: str = ""
    #: Since when the daemon has not answered (absolute seconds), if this is the last that is known of it.
    silent_since: float | None = None


class Client:
    """Asks one interface. Not for several threads at once."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: float = 60.0,
        tls: ssl.SSLContext | None = None,
        plain: bool = False,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """``url``: ``http://HOST:PORT``, ``https://HOST`` or ``unix:/PATH``. ``token``: default:
        HEADWAY_TOKEN, or what stands in the file HEADWAY_TOKEN_FILE. ``timeout``: seconds to an answer.
        ``tls``: how the server's certificate is checked; default: as the system does. ``plain``: send the
        token without TLS to another machine.

        Raises :class:`UserError` for a URL that is none, and for a token that others could read on its way.
        """
        self._way = Way.to(url, tls)
        self._token = token if token is not None else token_of_environment()
        if self._token and self._way.is_readable_by_others and not plain:
            raise UserError(
                f"{url}: expected https for a token, which others could read on its way; found http"
            )
        if not self._token.isprintable() or not self._token.isascii():
            raise UserError("expected a token as `headway token create` prints it, found other characters")
        self._timeout = timeout
        self._sleep = sleep
        self._kept = Kept()
        #: What the journal tells, also while the daemon is down.
        self.past = PastOfCluster(self._found)

    # ------------------------------------------------------------------ questions

    def status(self) -> Report:
        """How the daemon is."""
        return self._found(protocol.Status(), Report)

    def jobs(
        self,
        *,
        pool: str = "",
        user: str = "",
        status: str = "",
        account: str = "",
        qos: str = "",
        name: str = "",
        mine: bool = False,
        first: int = 0,
        count: int = 100,
        sort: str = "",
    ) -> JobPage:
        """A page of jobs: places, planned starts, why each waits. ``sort``: by one of
        :data:`headway.serve.sorting.KEYS`, such as "start" or "waited", "-" before it: the largest first; "":
        in the order of the queues."""
        asked = JobsInOrder(pool, user, status, first, count, account, qos, name, mine, sort)
        return self._found(asked, JobPage)

    def all_jobs(self, **wanted: Any) -> Iterator[JobReport]:
        """All jobs, page by page; ``wanted``: as for :meth:`jobs`. The queue may change between two pages."""
        first = 0
        while page := self.jobs(**{"count": 500, **wanted, "first": first}).jobs:
            yield from page
            first += len(page)

    def explain(self, job: str) -> Explained:
        """What a job does, and why."""
        return self._found(protocol.Explain(job), Explained)

    def pools(self) -> PoolList:
        """The pools."""
        return self._found(protocol.Pools(), PoolList)

    def nodes(self, *, pool: str = "", first: int = 0, count: int = 100) -> NodePage:
        """A page of nodes."""
        return self._found(protocol.Nodes(pool, first, count), NodePage)

    def bookings(self, *, pool: str = "", first: int = 0, count: int = 100) -> BookingPage:
        """What is kept for jobs that wait."""
        return self._found(protocol.Bookings(pool, first, count), BookingPage)

    def cycle(self) -> CycleReport:
        """The last cycle: events and decisions."""
        return self._found(protocol.Cycle(), CycleReport)

    def starts(self) -> StartsReport:
        """How good planned starts were."""
        return self._found(protocol.Starts(), StartsReport)

    def datasets(self) -> DatasetList:
        """Datasets, copies and stores."""
        return self._found(protocol.Datasets(), DatasetList)

    def holes(self, wanted: protocol.Holes | None = None) -> HoleList:
        """What is free now, and for how long, for a job that asks for this."""
        return self._found(wanted if wanted is not None else protocol.Holes(), HoleList)

    def when(self, wanted: protocol.When) -> TrialReport:
        """When a job that asks for this would start."""
        return self._found(wanted, TrialReport)

    def what_if(
        self, policy: str, options: Mapping[str, Any] | None = None, *, most: int = 1000
    ) -> WhatIfReport:
        """What would become of the jobs that wait under another policy: its name, and its options, as in a
        configuration. ``most``: jobs that are told one by one. For operators; takes up to 20 s. Raises
        :class:`Refused` for a policy that a configuration could not have."""
        body = msgspec.json.encode({"policy": policy, "options": dict(options or {}), "most": most})
        said = self._asked("POST", "/v1/what-if", body, {"Content-Type": JSON})
        answer: Answer[WhatIfReport] = _decoded(self._way.url, said, Answer[WhatIfReport])
        return answer.data

    def health(self) -> HealthReport:
        """Whether what must always hold does hold."""
        return self._found(protocol.Health(), HealthReport)

    def plugin(self, name: str, text: str = "") -> Any:
        """What only a plugin knows, such as ``shares``, as plain values."""
        told = self._found(protocol.PluginQuestion(name, text), protocol.Told)
        return msgspec.json.decode(told.answer)

    def ask(
        self, question: protocol.AtOnce | protocol.Question | OfThePast, shape: type[Found]
    ) -> Answer[Found]:
        """The answer to any question, with its time and remark. Raises :class:`Refused` for an answer that is
        none, :class:`headway.errors.Failure` if there is none."""
        resource = _PATHS[type(question)]
        path, lists = "/v1" + resource.path, lists_of(resource.request)
        query: list[tuple[str, str]] = []
        for name, value in msgspec.to_builtins(question).items():
            if f"{{{name}}}" in path:
                path = path.replace(f"{{{name}}}", quote(value, safe=""))
            elif name in lists:
                query += [(name, one if isinstance(one, str) else f"{one[0]}:{one[1]}") for one in value]
            elif name != "request" and value is not None:
                query.append((name, str(value).lower() if isinstance(value, bool) else str(value)))
        said = self._asked("GET", f"{path}?{urlencode(query)}" if query else path)
        answer: Answer[Found] = _decoded(self._way.url, said, Answer[shape])  # type: ignore[valid-type]
        return answer

    # ------------------------------------------------------------------ actions

    def elastic(self, job: str, command: str, amount: float) -> Outcome:
        """Change a job: ET, RT (seconds more, less), EP, RP (processors more, less)."""
        return self.act(protocol.Elastic(job, command, amount))

    def reserve(
        self, start: float, duration: float, *, nodes: int = 0, processors: int = 0, **more: str
    ) -> Outcome:
        """Reserve nodes or processors from ``start`` (absolute seconds) for ``duration`` seconds; ``more``:
        pool, user, account."""
        return self.act(protocol.Reserve(start, duration, nodes, processors, **more))

    def unreserve(self, reservation: str) -> Outcome:
        """Give a reservation back."""
        return self.act(protocol.Unreserve(reservation))

    def act(
        self,
        request: protocol.Elastic | protocol.Reserve | protocol.Unreserve | protocol.Plugin,
        key: str | None = None,
    ) -> Outcome:
        """Do something, once: where no answer comes, the request is sent again with the same key, and the
        interface does it no second time. ``key``: default: a new one. :class:`Refused` if it was not done."""
        told = msgspec.to_builtins(request)
        path = _ACTIONS + told.pop("request")
        headers = {"Content-Type": JSON, "Idempotency-Key": key if key is not None else uuid.uuid4().hex}
        body = msgspec.json.encode(told)
        try:
            said = self._asked("POST", path, body, headers)
        except Refused:
            raise
        except Failure:
            self._sleep(_PAUSE)
            said = self._asked("POST", path, body, headers)
        outcome: Outcome = _decoded(self._way.url, said, Outcome)
        return outcome

    # ------------------------------------------------------------------ what happens

    def stream(self, after: int | None = None) -> Iterator[Event]:
        """What happens, as it happens; behind the number ``after``, or from now on. A stream that is lost is
        resumed behind the last event that came. :class:`Refused` if the user may not read (any more)."""
        pause = _PAUSE
        while True:
            try:
                for event in self._events(after):
                    pause = _PAUSE
                    if event.number is None:
                        continue
                    after = event.number
                    yield event
            except Refused as error:
                if error.status not in _LATER:
                    raise
            except Failure:
                pass
            self._sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _events(self, after: int | None) -> Iterator[Event]:
        headers = {"Accept": "text/event-stream"}
        if after is not None:
            headers["Last-Event-ID"] = str(after)
        with closing(self._way.connection(_SILENT)) as connection:
            try:
                answer = self._way.send(connection, self._token, "GET", "/v1/stream", None, headers)
                if answer.status != 200:
                    raise _refusal(self._way.url, answer.status, answer.read(_MOST))
                yield from events_of(iter(lambda: answer.readline(_MOST), b""))
            except (OSError, http.client.HTTPException) as error:
                raise Failure(f"{self._way.url}: the stream was lost: {error}") from error

    # ------------------------------------------------------------------ the way

    def _found(self, question: protocol.AtOnce | protocol.Question | OfThePast, shape: type[Found]) -> Found:
        return self.ask(question, shape).data

    def _asked(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> bytes:
        headers = dict(headers or {})
        if method == "GET" and (tag := self._kept.tag(path)) is not None:
            headers["If-None-Match"] = tag
        with closing(self._way.connection(self._timeout)) as connection:
            try:
                answer = self._way.send(connection, self._token, method, path, body, headers)
                said = answer.read(_MOST + 1)
            except TimeoutError as error:
                raise Failure(f"{self._way.url}: no answer within {self._timeout:g} s") from error
            except (OSError, http.client.HTTPException) as error:
                raise Failure(f"{self._way.url}: cannot be reached: {error}") from error
        if answer.status == 304 and "If-None-Match" in headers:
            return self._kept.body(path)
        if answer.status not in (200, 202):
            raise _refusal(self._way.url, answer.status, said)
        if len(said) > _MOST:
            raise Failure(f"{self._way.url}: the answer has more than {_MOST} bytes")
        if method == "GET":
            self._kept.keep(path, answer.headers.get("ETag"), said)
        return said


def _decoded(url: str, said: bytes, shape: Any) -> Any:
    try:
        return msgspec.json.decode(said, type=shape)
    except msgspec.DecodeError as error:
        raise Failure(f"{url}: expected an answer of version 1: {error}") from error


def _refusal(url: str, status: int, said: bytes) -> Refused:
    """A server before the interface may say something else than the interface does."""
    try:
        detail = msgspec.json.decode(said, type=dict[str, Any]).get("detail")
    except msgspec.DecodeError:
        detail = None
    return Refused(status, str(detail) if detail else f"{url}: no answer of headway's")
