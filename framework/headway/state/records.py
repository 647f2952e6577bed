"""What is known of a job and of a pool: two records that refer to each other.

Policies and plugins read them; only the state changes them.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

import msgspec

from headway.model import JobDescription, Placement, PoolBounds, PoolDescription, Request, Reservation
from headway.state.by_size import JobsBySize
from headway.state.news import News

_INF = float("inf")

#: What breaks ties between jobs: the order of arrival (an int) or, where the batch system numbers its jobs,
#: their numbers (:data:`headway.model.numbering.Number`). On a cluster all are of the same kind.
Seq = Any


class Status(enum.Enum):
    """Where a job is in its life."""

    #: In its pool's queue: it may be started.
    PENDING = "pending"
    #: Not startable yet: held, a dependency, a begin time, a start that failed just now, or more asked
    #: for than there is.
    WAITING = "waiting"
    #: A start was decided and is not confirmed yet.
    STARTING = "starting"
    RUNNING = "running"
    SUSPENDED = "suspended"
    ENDED = "ended"


#: A job that takes processors is in one of these states.
ON_NODES = (Status.STARTING, Status.RUNNING, Status.SUSPENDED)


class Obstacle(msgspec.Struct, frozen=True):
    """Why a job cannot run on what its pool has, even if nothing else ran there."""

    why: str
    #: It is gone once nodes come back, or come at all.
    passing: bool = False

    def __str__(self) -> str:
        return f"{'it cannot run now' if self.passing else 'it can never run as it is'}: {self.why}"


class Barrier(msgspec.Struct, frozen=True):
    """Why a job may not start now although it could: a limit, for example."""

    #: For a person: the limit, what counts against it and what the job would add; or what says so when asked.
    why: str | Callable[[], str]
    #: What :meth:`headway.state.State.lifted` names when there may be room; None: only a change of the job
    #: helps.
    key: Hashable = None

    def __str__(self) -> str:
        return self.why if isinstance(self.why, str) else self.why()


class Pace(msgspec.Struct, frozen=True):
    """How far a running job was at ``since`` (absolute seconds), and how fast it goes from then on."""

    since: float
    #: Seconds of work at full speed that were done.
    done: float
    #: Seconds of work a second.
    rate: float
    #: When a job that stands still goes on (absolute seconds), where that is known.
    resumes: float | None = None


class Past(msgspec.Struct, frozen=True):
    """What became of a job that is over, or of an array."""

    #: One of :data:`headway.events.OUTCOMES`; of an array the first outcome that is no success, if any.
    outcome: str
    #: When it, or the last element, started (absolute seconds).
    start: float


class Array(msgspec.Struct, eq=False):
    """An array of which something is not over."""

    #: The ids of its elements that are not over.
    left: set[str] = msgspec.field(default_factory=set)
    #: What became of the other elements.
    past: Past | None = None


class Choice(msgspec.Struct, eq=False):
    """One pool of a job that was sent to several, and what keeps the job out of that pool's queue."""

    pool: PoolState
    obstacle: Obstacle | None = None
    barrier: Barrier | None = None
    #: Why a plugin refused it there; "" if none did.
    refusal: str = ""


def unconditional(description: JobDescription) -> bool:
    """Whether a job asks for nothing but processors of its pool, as soon as there are some: it depends on
    no job, and names no begin time, reservation or licence."""
    return (
        not description.dependencies
        and description.begin_time is None
        and not description.reservation
        and not description.request.licences
    )


class Job(msgspec.Struct, eq=False, weakref=True):
    """A job as the scheduler knows it. Policies read it; only the state changes it."""

    id: str
    description: JobDescription
    pool: PoolState
    #: Breaks every tie, over the whole cluster.
    seq: Seq
    submit_time: float
    #: The processors that it counts for.
    processors: int
    #: The user's estimate; ``expected_runtime`` is the predictor's answer, else the estimate.
    #: Both in seconds.
    estimate: float
    expected_runtime: float
    #: Sort key of its place in the queue.
    order: tuple[Any, ...]
    held: bool = False
    status: Status = Status.WAITING
    start_time: float | None = None
    expected_end: float = _INF
    placement: Placement = ()
    tier: str = "foreground"
    frequency: float | None = None
    #: Why it is held, or why its last start failed.
    hold_reason: str = ""
    #: Since when it waits for no other job any more (absolute seconds); infinity: it still waits; None: it
    #: never waited.
    independent: float | None = None
    #: After a start that failed: not to be tried again before this time.
    not_before: float = 0.0
    failures: int = 0
    #: How many of its moves failed, one after the other, and until when it stays where it is for that.
    failed_moves: int = 0
    stays_until: float = 0.0
    #: Why a plugin refused it; "" if no plugin did.
    refusal: str = ""
    #: Why its pool cannot hold it; None if it can, or if that was not checked because the job may not start
    #: anyway.
    obstacle: Obstacle | None = None
    #: Why it may not start now although it could; None if it may, or if that was not checked.
    barrier: Barrier | None = None
    #: The obstacle that was told last, and the request of which it was.
    told: Obstacle | None = None
    told_of: Request | None = None
    #: Why a plugin vetoed its last start; "" if none did.
    veto: str = ""
    #: Seconds that it was suspended since its start; and since when it is, if it is now.
    paused: float = 0.0
    suspended_since: float | None = None
    #: It is suspended, and other jobs may have its processors (:mod:`headway.state.lending`).
    lends: bool = False
    #: The request as it was when its nodes were taken, so that exactly that is given back.
    taken: Request | None = None
    #: Its entries in the running lists of the domains whose processors it takes; none in the background.
    entries: Sequence[tuple[Domain, RunningEntry]] | None = None
    #: It has its processors in the background, behind the job in front.
    behind: bool = False
    #: What the cluster told last of how far it is; None: it has run at full speed since its start.
    pace: Pace | None = None
    #: Share of a processor that each of its processes was measured to use; None: not measured.
    measured_cpu: float | None = None
    #: It was told to go (signalled, requeued or ended) and is expected to by then (absolute seconds); from
    #: then on at any moment. None: it stays.
    gone_by: float | None = None
    #: What it was told is to stand aside: it stays, suspended.
    aside: bool = False
    #: The plugin whose prediction ``expected_runtime`` is; "": no plugin's.
    predicted_by: str = ""
    #: The edition (:func:`headway.state.queues.outdate_keys`) of the key in ``order``; None: there is no key
    #: yet, or the job changed since.
    edition: int | None = None
    #: What bars it by, beside its size (:mod:`headway.state.kinds`); None: no plugin was asked.
    bar_kind: Hashable = None
    #: See :func:`unconditional`.
    unconditional: bool = False
    #: The pool to which it is on its way, and until it arrives there it starts nowhere; "": it stays.
    bound_for: str = ""
    #: Its pools, if it was sent to several (:mod:`headway.state.choices`); it faces the pool ``pool``.
    choices: tuple[Choice, ...] = ()

    @classmethod
    def arrived(cls, description: JobDescription, pool: PoolState, seq: Seq) -> Job:
        """A job that nothing has happened to yet."""
        request = description.request
        submit, walltime = description.submit_time, request.walltime
        return cls(
            description.id, description, pool, seq, submit, request.processors, walltime, walltime,
            (-pool.tier, submit, seq), description.held,
            unconditional=unconditional(description),
        )  # fmt: skip

    def settle(self) -> None:
        """It is on its way to no other pool any more."""
        self.bound_for = ""
        self.unconditional = unconditional(self.description)

    @property
    def domain(self) -> Domain:
        """The domain of the pool that it faces."""
        return self.pool.domain

    @property
    def request(self) -> Request:
        return self.description.request

    @property
    def user(self) -> str:
        return self.description.user

    @property
    def account(self) -> str:
        return self.description.account

    @property
    def name(self) -> str:
        return self.description.name

    @property
    def barred(self) -> bool:
        """Whether time alone cannot let it start: it is held, refused, or its pool cannot hold it."""
        return self.held or bool(self.refusal or self.bound_for) or self.obstacle is not None

    @property
    def leaving(self) -> bool:
        """Whether it was told to go."""
        return self.gone_by is not None

    @property
    def cpu(self) -> float | None:
        """Share of a processor that each of its processes uses, in (0, 1]: measured, else its attribute
        ``cpu``; None: not known."""
        if self.measured_cpu is not None:
            return self.measured_cpu
        attributes = self.description.attributes
        return None if attributes is None else attributes.get("cpu")

    def done(self, now: float) -> float:
        """Seconds of its work that are done at ``now`` (absolute seconds), at full speed."""
        pace = self.pace
        until = now if self.suspended_since is None else min(now, self.suspended_since)
        if pace is not None:
            return pace.done + max(0.0, until - pace.since) * pace.rate
        if self.start_time is None:
            return 0.0
        return max(0.0, until - self.start_time - self.paused)

    @property
    def stands_still(self) -> bool:
        """Whether the job has its processors and makes no progress: it is suspended, or being moved."""
        return self.suspended_since is not None or (self.pace is not None and self.pace.rate <= 0.0)

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute of the description."""
        attributes = self.description.attributes
        return default if attributes is None else attributes.get(name, default)

    def __repr__(self) -> str:
        return f"Job({self.id!r}, {self.processors} processors, {self.estimate:g} s, {self.status.value})"


def submission(job: Job) -> tuple[float, Seq]:
    """The order in which jobs were submitted, also within one second: what a queue goes by at the end
    (:func:`headway.state.queues.give_order`), and lists of jobs that are in no queue."""
    return job.description.submit_time, job.seq


class Watcher(Protocol):
    """Is told of each job that takes processors and gives them back, while the state changes; so it must not
    change it. A job that moves gives and takes again."""

    def took(self, job: Job) -> None:
        """The job has its processors from now on: it is to start, or was seen to run."""

    def gave(self, job: Job) -> None:
        """It has them no longer."""


class Booked(Protocol):
    """Capacity that is kept for a job from ``start`` on (absolute seconds)."""

    @property
    def job(self) -> Job: ...
    @property
    def start(self) -> float: ...
    @property
    def placement(self) -> Placement: ...


class Outlook(Protocol):
    """What a domain's view (:mod:`headway.view`) tells plugins that look at it from outside of its policy."""

    @property
    def now(self) -> float: ...
    @property
    def bookings(self) -> Sequence[Booked]: ...
    @property
    def started(self) -> Sequence[Job]: ...
    def stretch(self, job: Job, runtime: float, *, push: bool = False) -> bool: ...


#: ``(expected end, seq, processors in this domain, job)``
RunningEntry = tuple[float, Seq, int, Job]


class PoolState:
    """One pool: what its jobs are bounded by, and the domain (:class:`Domain`) that it is a part of."""

    __slots__ = ("bounds", "description", "domain", "flat", "name", "obstacles", "open", "tier", "total")

    def __init__(self, description: PoolDescription, tier: int | None = None) -> None:
        """``tier``: instead of the description's."""
        self.description = description
        self.name: str = description.name
        self.flat: bool = description.flat
        self.open: bool = description.open
        #: What a job there may not exceed; None: nothing is bounded.
        self.bounds: PoolBounds | None = description.bounds
        #: Jobs of a higher tier come first in the domain.
        self.tier: int = description.priority_tier if tier is None else tier
        #: Usable processors (nodes that are down do not count).
        self.total: int = description.processors
        #: On nodes: requests (without walltime) that were judged -> why nodes cannot hold them, or None.
        self.obstacles: dict[Request, Obstacle | None] = {}
        self.domain: Domain = Domain((self,))

    def __repr__(self) -> str:
        return f"PoolState({self.name!r}, {self.total} processors)"


class Domain:
    """Pools that share nodes, directly or by way of other pools: one queue, what runs there, what is free.

    A pool that shares no nodes is a domain of its own, of the same name.
    """

    __slots__ = (
        "background", "by_size", "flat", "free", "least", "name", "news", "pool_names", "pools", "predicted",
        "queue", "reservations", "running", "shared", "small", "total", "view",
    )  # fmt: skip

    def __init__(self, pools: tuple[PoolState, ...]) -> None:
        """``pools``: at least one pool; of several pools none is flat."""
        self.pools = pools
        self.pool_names: tuple[str, ...] = tuple([pool.name for pool in pools])
        self.name: str = "+".join(self.pool_names)
        self.flat: bool = pools[0].flat
        #: Usable processors (nodes that are down do not count), and how many of them are free.
        self.total: int = pools[0].total
        self.free: int = pools[0].total
        #: Jobs in the background by id, in the order of their starts. They are not in ``running`` and count
        #: nowhere in ``free``.
        self.background: dict[str, Job] = {}
        #: Startable jobs in service order.
        self.queue: list[Job] = []
        #: The jobs of the queue that were sent to several pools, by id.
        self.shared: dict[str, Job] = {}
        #: Running and starting jobs by expected end.
        self.running: list[RunningEntry] = []
        #: Where jobs are predicted: a heap of the entries of ``running`` that end before their jobs' limits,
        #: and of some that are no longer there.
        self.predicted: list[RunningEntry] = []
        #: Reservations that are not over and take something from these pools, by start.
        self.reservations: list[Reservation] = []
        #: What happened since the policies were asked last.
        self.news: News[Job] = News()
        #: The queue by the jobs' sizes; there once a policy has asked for it.
        self.by_size: JobsBySize[Job] | None = None
        #: No job of the queue needs fewer processors; and a job that was small enough at the last search for
        #: such a job (:mod:`headway.state.expectations`).
        self.least: int = 0
        self.small: Job | None = None
        #: What its policy sees of it: bookings, and whether a start may take longer.
        self.view: Outlook | None = None

    @property
    def free_behind(self) -> int:
        """Processors of a flat pool that no job has in the background. For nodes, see their table
        (:meth:`headway.resources.nodes.NodeTable.free_behind`)."""
        return self.total - sum(job.processors for job in self.background.values())

    def touch(self) -> None:
        """Something changed that may let other jobs start: the next cycle looks at everything."""
        self.news.everything()

    def __repr__(self) -> str:
        return f"Domain({self.name!r}, {self.free} of {self.total} free, {len(self.queue)} queued)"
