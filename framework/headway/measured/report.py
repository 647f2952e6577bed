"""What was measured, as plain numbers: what the daemon says over its socket."""

from __future__ import annotations

import msgspec

from headway.adapter import CommandCount


class Histogram(msgspec.Struct, frozen=True):
    """Values by size."""

    #: Upper bounds, rising; the last count has no bound.
    bounds: tuple[float, ...]
    #: Values up to each bound and above the bound before: one more than there are bounds.
    counts: tuple[int, ...]
    sum: float = 0.0

    @property
    def count(self) -> int:
        return sum(self.counts)


class OfPool(msgspec.Struct, frozen=True):
    """Seconds of the jobs of one pool and QOS."""

    pool: str
    qos: str
    seconds: Histogram
    #: Of planned starts: "early" (the job began before it) or "late".
    side: str = ""


class OfUser(msgspec.Struct, frozen=True):
    """What was counted of one user: only where the configuration asks for it."""

    user: str
    #: Jobs that wait.
    waiting: int = 0


class WaitingJobs(msgspec.Struct, frozen=True):
    """The jobs of a pool that wait for one reason."""

    pool: str
    reason: str
    jobs: int


class DecisionCount(msgspec.Struct, frozen=True):
    """Decisions of one kind, and what became of them."""

    decision: str
    #: "accepted" or "refused"; in mode monitor "not applied".
    outcome: str
    count: int


class OutageSeconds(msgspec.Struct, frozen=True):
    """A cluster that does not answer, or did not."""

    cluster: str
    #: Since when, absolute seconds; 0: it answers.
    since: float = 0.0


class OddityCount(msgspec.Struct, frozen=True):
    """Something odd about a cluster."""

    cluster: str
    what: str
    count: int


class LetterCount(msgspec.Struct, frozen=True):
    """Letters to users, by what became of them."""

    outcome: str
    count: int


class Measured(msgspec.Struct, frozen=True):
    """All that a daemon measures. Counts are since the process began, and times absolute seconds."""

    version: str
    mode: str
    cluster: str
    run: int
    #: When the process began to count.
    since: float
    #: When the loop turned last, and when the last cycle was.
    last_turn: float | None = None
    last_cycle: float | None = None
    #: The whole cycle, and the scheduler's step in it.
    cycle_seconds: Histogram | None = None
    step_seconds: Histogram | None = None
    #: Plugin -> seconds in its hooks.
    plugin_seconds: dict[str, float] = {}
    #: Kind -> how many.
    events: dict[str, int] = {}
    decisions: tuple[DecisionCount, ...] = ()
    commands: tuple[CommandCount, ...] = ()
    waits: tuple[OfPool, ...] = ()
    plan_errors: tuple[OfPool, ...] = ()
    #: Cluster ("": the only one) -> from a decided start until the job runs.
    start_seconds: dict[str, Histogram] = {}
    waiting: tuple[WaitingJobs, ...] = ()
    #: When waiting jobs were counted; None: not yet.
    waiting_as_of: float | None = None
    users: tuple[OfUser, ...] = ()
    jobs: int = 0
    #: Outages that began.
    outages_begun: int = 0
    outages: tuple[OutageSeconds, ...] = ()
    oddities: tuple[OddityCount, ...] = ()
    #: Failures of plugins, and what made no sense.
    problems: int = 0
    requests_limited: int = 0
    letters: tuple[LetterCount, ...] = ()
    #: None: the journal is no file of this machine, or is not known.
    journal_bytes: int | None = None
    #: Bytes that are free where the journal is; None: not known.
    journal_free_bytes: int | None = None
    #: How far a stand-by's journal is behind; None: no stand-by follows.
    journal_lag_seconds: float | None = None
    #: Whether this daemon drives; False: it stands by.
    leader: bool = True
    #: The number that each write of this daemon carries; 0: there is no fence.
    epoch: int = 0
    #: Watts that the batch system measures, of so many nodes.
    watts: float = 0.0
    watts_nodes: int = 0
    #: Power state -> nodes in it, without those that are on.
    power: dict[str, int] = {}
    cpu_seconds: float = 0.0
    #: None: not known.
    memory_bytes: int | None = None
