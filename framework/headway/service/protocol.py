"""What is said over the socket: one request and one reply a connection, each a line of JSON."""

from __future__ import annotations

from typing import Annotated

import msgspec

from headway.adapter import StartsWait
from headway.journal.latencies import LatencySummary

#: Bytes of a line, at most.
MAX_REQUEST = 16 * 1024
MAX_REPLY = 4 * 1024 * 1024

_Name = Annotated[str, msgspec.Meta(max_length=256)]
_Seconds = Annotated[float, msgspec.Meta(gt=0, le=1e10)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 40)]


class _Request(msgspec.Struct, frozen=True, tag_field="request", tag=str.lower, forbid_unknown_fields=True):
    """What all requests share."""


class Elastic(_Request, frozen=True):
    """Change a job: ET, RT (extend, reduce time by ``amount`` seconds), EP, RP (grow, shrink; processors)."""

    job: Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
    command: Annotated[str, msgspec.Meta(pattern="^(ET|RT|EP|RP)$")]
    amount: _Seconds


class Reserve(_Request, frozen=True):
    """Keep ``nodes``, or ``processors``, from ``start`` (absolute seconds) for ``duration`` seconds."""

    start: _Seconds
    duration: _Seconds
    nodes: _Count = 0
    processors: _Count = 0
    pool: _Name = ""
    #: The user that may use the reservation; "": the asking user.
    user: _Name = ""
    account: _Name = ""


class Unreserve(_Request, frozen=True):
    """Give a reservation back."""

    reservation: Annotated[str, msgspec.Meta(min_length=1, max_length=256)]


class Status(_Request, frozen=True):
    """How the daemon is. Every user may ask."""


AnyRequest = Elastic | Reserve | Unreserve | Status


class PoolReport(msgspec.Struct, frozen=True):
    """A pool in a status report; processors."""

    name: str
    total: int
    free: int
    queued: int
    running: int
    #: Processors that the first job of the queue asks for; 0: no job waits.
    head: int = 0
    #: When running jobs are expected to end (absolute seconds), and how many processors they have: the
    #: earliest.
    ends: tuple[tuple[float, int], ...] = ()
    #: Jobs that run in the background; ``running`` are those in front.
    background: int = 0


class OutageReport(msgspec.Struct, frozen=True):
    """A cluster that does not answer, since when (absolute seconds), and why."""

    cluster: str
    since: float
    message: str


class OddityReport(msgspec.Struct, frozen=True):
    """What an operator should know of a cluster: how often, when last (absolute seconds), the latest."""

    cluster: str
    what: str
    count: int
    last: float
    detail: str = ""


class Report(msgspec.Struct, frozen=True):
    """The state of a daemon as of its last cycle; times are absolute seconds."""

    mode: str
    cluster: str
    run: int
    started: float
    plugins: tuple[str, ...] = ()
    cycles: int = 0
    last_cycle: float | None = None
    jobs: int = 0
    reservations: int = 0
    pools: tuple[PoolReport, ...] = ()
    #: The latest problems, oldest first: (time, text).
    problems: tuple[tuple[float, str], ...] = ()
    problems_in_all: int = 0
    outages: tuple[OutageReport, ...] = ()
    oddities: tuple[OddityReport, ...] = ()
    #: Starts that wait for something else than processors.
    starts_waiting: tuple[StartsWait, ...] = ()
    #: Power state -> nodes in it, without those that are on.
    power: dict[str, int] = {}
    #: Node -> watts, of the nodes that the batch system measures.
    watts: dict[str, float] = {}
    #: User -> requests that were refused because there were too many.
    limited: dict[str, int] = {}
    #: Cluster ("": the only one) -> how long it takes.
    latencies: dict[str, LatencySummary] = {}


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to a request."""

    #: "accepted", "in part", "waiting", "refused", or "failed" when no plugin decided on it.
    outcome: str
    reason: str = ""
    status: Report | None = None


_request = msgspec.json.Decoder(AnyRequest)
_reply = msgspec.json.Decoder(Reply)


def read_request(line: bytes) -> AnyRequest:
    """A request; :class:`msgspec.DecodeError` says what is wrong with it."""
    return _request.decode(line)


def read_reply(line: bytes) -> Reply:
    """A reply; :class:`msgspec.DecodeError` says what is wrong with it."""
    return _reply.decode(line)


def write(message: AnyRequest | Reply) -> bytes:
    """A message as its line."""
    return msgspec.json.encode(message) + b"\n"
