"""What is said over the socket: one request and one reply a connection, each a line of JSON."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from headway.adapter import StartsWait
from headway.inquiry.pages import MOST
from headway.inquiry.reports import (
    BeforeReport,
    BookingPage,
    CycleReport,
    DatasetList,
    HealthReport,
    HoleList,
    JobPage,
    JobReport,
    NodePage,
    PlanAccuracy,
    PlanHistory,
    PoolList,
    PoolReport,
    ReservationPage,
    SoonerReport,
    TrialReport,
    WhatIfReport,
)
from headway.journal.latency_summary import LatencySummary
from headway.journal.starts_report import StartsReport
from headway.measured.report import Measured

#: Bytes of a line, at most.
MAX_REQUEST = 16 * 1024
MAX_REPLY = 4 * 1024 * 1024

_Name = Annotated[str, msgspec.Meta(max_length=256)]
_Seconds = Annotated[float, msgspec.Meta(gt=0, le=1e10)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 40)]
_JobId = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
#: Where a page begins, and how many reports it has at most.
_Place = Annotated[int, msgspec.Meta(ge=0, le=1 << 31)]
_PageSize = Annotated[int, msgspec.Meta(ge=1, le=MOST)]
_PAGE = 100


class _Request(msgspec.Struct, frozen=True, tag_field="request", tag=str.lower, forbid_unknown_fields=True):
    """What all requests share."""

    #: Seconds that the answer may take beside those that any answer may take.
    takes: ClassVar[float] = 0.0


class Elastic(_Request, frozen=True):
    """Change a job: ET, RT (extend, reduce time by ``amount`` seconds), EP, RP (grow, shrink; processors)."""

    job: _JobId
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


class Plugin(_Request, frozen=True):
    """Something of a plugin's own; ``text`` is JSON, which the plugin checks."""

    plugin: Annotated[str, msgspec.Meta(pattern="^[a-z][a-z0-9-]{0,63}$")]
    verb: Annotated[str, msgspec.Meta(pattern="^[a-z][a-z0-9-]{0,31}$")]
    text: Annotated[str, msgspec.Meta(max_length=12 * 1024)] = ""


class Status(_Request, frozen=True):
    """How the daemon is. Every user may ask."""


class Metrics(_Request, frozen=True):
    """What the daemon measures. Every user may ask; users are named to operators only."""


class Health(_Request, frozen=True):
    """Whether what must always hold does hold."""


class Explain(_Request, frozen=True):
    """What a job, or the elements of an array, do, and why."""

    job: _JobId


class Jobs(_Request, frozen=True):
    """Jobs; "": of any pool, user, status, account, QOS, name. ``mine``: of the asking user alone."""

    pool: _Name = ""
    user: _Name = ""
    status: Annotated[str, msgspec.Meta(pattern="^(|pending|waiting|starting|running|suspended)$")] = ""
    first: _Place = 0
    count: _PageSize = _PAGE
    account: _Name = ""
    qos: _Name = ""
    name: Annotated[str, msgspec.Meta(max_length=1024)] = ""
    mine: bool = False


class Pools(_Request, frozen=True):
    """All pools."""


class Nodes(_Request, frozen=True):
    """Nodes; of a pool, if one is named."""

    pool: _Name = ""
    first: _Place = 0
    count: _PageSize = _PAGE


class Bookings(_Request, frozen=True):
    """What is kept for jobs that wait; in a pool and those that it shares nodes with, if one is named."""

    pool: _Name = ""
    first: _Place = 0
    count: _PageSize = _PAGE


class Reservations(_Request, frozen=True):
    """The reservations that are not over."""

    first: _Place = 0
    count: _PageSize = _PAGE


class Cycle(_Request, frozen=True):
    """The last cycle."""


class Datasets(_Request, frozen=True):
    """All datasets, copies on their way and stores."""


class Starts(_Request, frozen=True):
    """How good plans were since the daemon began."""


class PluginQuestion(_Request, frozen=True):
    """Something that only a plugin knows, such as ``shares``; ``text`` is JSON, which the plugin checks."""

    name: Annotated[str, msgspec.Meta(pattern="^[a-z][a-z0-9-]{0,63}$")]
    text: Annotated[str, msgspec.Meta(max_length=12 * 1024)] = ""


_Names = Annotated[tuple[_Name, ...], msgspec.Meta(max_length=64)]
_Amounts = Annotated[tuple[tuple[_Name, _Count], ...], msgspec.Meta(max_length=64)]
_Length = Annotated[float, msgspec.Meta(ge=0, le=1e10)]


class _Wanted(_Request, frozen=True):
    """What a job asks for. Numbers: 0 is not stated; memory in bytes."""

    pool: _Name = ""
    nodes: _Count = 0
    #: In all, and on each node.
    processors: _Count = 0
    processors_per_node: _Count = 0
    memory_per_node: _Count = 0
    memory_per_processor: _Count = 0
    gres_per_node: _Amounts = ()
    features: _Names = ()
    licences: _Amounts = ()
    exclusive: bool = False
    #: Its time limit.
    seconds: _Length = 0.0


class Holes(_Wanted, frozen=True):
    """What is free now, and for how long, for a job that delays no job that is booked."""


class When(_Wanted, frozen=True):
    """When a job of the asking user would start that asks for this, its time limit among it."""

    qos: _Name = ""
    account: _Name = ""
    #: The earliest start, absolute seconds; 0: at once.
    begin: _Length = 0.0
    #: Try smaller requests as well.
    smaller: bool = True


class WhatIf(_Request, frozen=True):
    """What would become of the jobs that wait under another policy. For operators; one at a time."""

    takes: ClassVar[float] = 30.0

    #: As a configuration has it among its plugins.
    policy: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    #: Its options: an object in JSON, which is checked as those of a configuration.
    options: Annotated[str, msgspec.Meta(max_length=12 * 1024)] = ""
    #: Jobs that are told one by one, at most.
    most: Annotated[int, msgspec.Meta(ge=0, le=5000)] = 1000


#: Requests that change nothing and need no cycle: the scheduler answers them between two steps.
Question = (
    Explain
    | Jobs
    | Pools
    | Nodes
    | Bookings
    | Reservations
    | Cycle
    | Datasets
    | Starts
    | Holes
    | When
    | WhatIf
    | Health
    | PluginQuestion
)
#: Requests that the socket's thread answers from what cycles leave, also while a cycle lasts.
AtOnce = Status | Metrics
AnyRequest = Elastic | Reserve | Unreserve | Plugin | AtOnce | Question


class OnBehalf(_Request, frozen=True):
    """What a user asks through another program that knows who the user is: ``headway serve``. The daemon
    takes this from root, its own user and ``service.speakers``, and from each user for itself. It serves it
    as if the user had asked, but never as root or as the daemon's user."""

    user: Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
    asked: AnyRequest
    #: False: without the rights of an operator, also if the user is an operator.
    operator: bool = True


class Follow(_Request, frozen=True):
    """Be told of all that is there, and then of what changes, until the connection ends
    (:mod:`headway.service.changes`). For root, the daemon's own user and ``service.speakers`` alone."""

    #: What the asking program understands.
    format: int = 1


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


class LetterCounts(msgspec.Struct, frozen=True):
    """What became of letters to users since the daemon began."""

    delivered: int = 0
    #: The command failed, or the daemon's end came first.
    failed: int = 0
    #: The user's name or a limit forbade it: the command was not run.
    refused: int = 0
    waiting: int = 0


class Leadership(msgspec.Struct, frozen=True):
    """Which of two daemons this is, and what it knows of the other."""

    #: "alone": it has no stand-by; "leader", "stand-by", "gave up".
    role: str = "alone"
    #: The process that leads, for a person; "": none is known.
    leader: str = ""
    #: The leader's number, which grows with each leader; 0: not known.
    epoch: int = 0
    #: Since when this daemon is what it is, absolute seconds; 0: not known.
    since: float = 0.0
    #: Of a stand-by: seconds since the leader's last sign of life.
    silent: float | None = None
    #: Of a stand-by: what it knows of the leader's journal is so many seconds old, at most: what a take-over
    #: now would lose. 0: the journal is shared. None: nothing of it is known yet.
    lag: float | None = None
    #: Of a stand-by: what is in its way; "": nothing.
    trouble: str = ""

    @property
    def leads(self) -> str:
        """Which process leads, for a person."""
        return f"{self.leader} leads with epoch {self.epoch}" if self.leader else "no leader is known"


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
    #: The latest problems, oldest first: (time, text). Where users are told of their own jobs only, these and
    #: details of oddities are for operators.
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
    letters: LetterCounts = LetterCounts()
    leadership: Leadership = Leadership()


class Explained(msgspec.Struct, frozen=True, omit_defaults=True, tag="explained", tag_field="found"):
    """A job, or the elements of an array, in sentences."""

    #: The whole id, as the batch system has it.
    id: str
    sentences: tuple[str, ...]
    #: None: it is an array.
    job: JobReport | None = None
    #: Starts that wait for something else than processors.
    starts_waiting: tuple[StartsWait, ...] = ()
    #: Clusters that do not answer now.
    outages: tuple[OutageReport, ...] = ()
    #: The jobs before it; None: it is in no queue.
    before: BeforeReport | None = None
    #: What was planned for it over time, and how good such plans were lately; None: not known.
    plan_history: PlanHistory | None = None
    plan_accuracy: PlanAccuracy | None = None
    #: The same in sentences.
    remembered: tuple[str, ...] = ()
    #: What would let it start now.
    sooner: tuple[SoonerReport, ...] = ()


class Told(msgspec.Struct, frozen=True, tag="told", tag_field="found"):
    """A plugin's answer, in a shape of the plugin's."""

    answer: msgspec.Raw


#: What a question finds.
Found = (
    Explained
    | JobPage
    | PoolList
    | NodePage
    | BookingPage
    | ReservationPage
    | CycleReport
    | DatasetList
    | StartsReport
    | HoleList
    | TrialReport
    | WhatIfReport
    | HealthReport
    | Told
)


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to a request."""

    #: "accepted", "in part", "waiting", "refused", or "failed" when no plugin decided on it. Of a question:
    #: "accepted", "unknown" (there is nothing of that name), or "failed".
    outcome: str
    reason: str = ""
    status: Report | None = None
    metrics: Measured | None = None
    #: The answer to a question, and the time of the cycle that it is the state after (absolute seconds).
    found: Found | None = None
    as_of: float | None = None
    #: Since when the daemon has not answered (absolute seconds), if this is the last that is known of it.
    silent_since: float | None = None


class Outcome(msgspec.Struct, frozen=True):
    """What became of a request, as commands print it: "accepted", "in part" or "waiting"."""

    outcome: str
    reason: str


_request = msgspec.json.Decoder(AnyRequest | OnBehalf | Follow)
_reply = msgspec.json.Decoder(Reply)


def read_request(line: bytes) -> AnyRequest | OnBehalf | Follow:
    """A request; :class:`msgspec.DecodeError` says what is wrong with it."""
    return _request.decode(line)


def read_reply(line: bytes) -> Reply:
    """A reply; :class:`msgspec.DecodeError` says what is wrong with it."""
    return _reply.decode(line)


def write(message: AnyRequest | OnBehalf | Follow | Reply) -> bytes:
    """A message as its line."""
    return msgspec.json.encode(message) + b"\n"
