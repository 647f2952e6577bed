"""What is told of jobs, pools, nodes, bookings and a cycle: frozen facts, for pages and programs.

Times are absolute seconds by the batch system's clock, memory is in bytes. None: not known, or it does not
apply.
"""

from __future__ import annotations

import math

import msgspec

from headway.model import Placement


def finite(seconds: float) -> float | None:
    """The same seconds; None for infinity, which JSON has not."""
    return None if seconds == math.inf else seconds


class JobReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """A job: what it asks for, where it is, and why it waits."""

    id: str
    #: The pool that it runs in; of a job that waits, the first that could start it.
    pool: str
    #: "pending" (in its queue), "waiting" (outside of it), "starting", "running" or "suspended".
    status: str
    #: That it has, or is to have.
    processors: int
    #: Seconds after which the batch system ends it; None: it never does.
    limit: float | None
    #: Seconds that it is planned with: a prediction, else the limit.
    expected_runtime: float | None
    submitted: float
    user: str = ""
    account: str = ""
    qos: str = ""
    name: str = ""
    #: Number of nodes that it asks for; 0: it did not say.
    nodes: int = 0
    #: All pools that it was sent to, if there are several.
    pools: tuple[str, ...] = ()
    #: The array that it is an element of.
    array: str = ""
    #: The plugin whose prediction ``expected_runtime`` is.
    predicted_by: str = ""

    # On nodes:
    started: float | None = None
    #: By when it is expected to end.
    expected_end: float | None = None
    #: Node -> processors on it, in pairs; empty on a pool without nodes.
    placement: Placement = ()
    #: "foreground" or "background".
    tier: str = "foreground"

    # Not on nodes:
    #: Its place in the queue (1: the first), and how many jobs are in that.
    position: int | None = None
    queue_length: int | None = None
    #: From when on capacity is kept for it, and where, as the last cycle planned it.
    planned_start: float | None = None
    planned_placement: Placement = ()
    #: Why it waits: a name of the tables in :mod:`headway.state.reasons` and :mod:`headway.inquiry.waiting`,
    #: and the same in sentences.
    waits_because: str = ""
    why: str = ""
    #: Ids of the jobs that it waits for, as far as the sentences name them.
    waits_for: tuple[str, ...] = ()


class PoolReport(msgspec.Struct, frozen=True):
    """A pool; processors."""

    name: str
    total: int
    free: int
    queued: int
    running: int
    #: Processors that the first job of the queue asks for; 0: no job waits.
    head: int = 0
    #: When running jobs are expected to end (absolute seconds), and how many processors they have: the
    #: earliest, of jobs that are expected to end at all.
    ends: tuple[tuple[float, int], ...] = ()
    #: Jobs that run in the background; ``running`` are those in front.
    background: int = 0
    #: False: jobs are accepted and none is started.
    open: bool = True
    #: Among pools that share nodes, jobs of a higher tier come first.
    tier: int = 0
    #: Other pools with which it shares nodes, and so the queue.
    shares_nodes_with: tuple[str, ...] = ()


class NodeReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """A node."""

    name: str
    processors: int
    free: int
    pools: tuple[str, ...] = ()
    #: False: down, drained, or otherwise not usable for new jobs; and why.
    available: bool = True
    reason: str = ""
    #: "on", "asleep", "falling asleep" or "waking".
    power: str = "on"
    #: None: the batch system does not manage memory on this node.
    memory: int | None = None
    memory_free: int | None = None
    #: Generic resources: name, how many, how many of them are free.
    gres: tuple[tuple[str, int, int], ...] = ()
    features: tuple[str, ...] = ()
    #: Ids of the jobs that have processors of it.
    jobs: tuple[str, ...] = ()
    #: Ids of the reservations of it that are not over.
    reservations: tuple[str, ...] = ()


class BookingReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """Capacity that is kept for a job that cannot start yet, as the last cycle planned it."""

    job: str
    pool: str
    processors: int
    #: None: no running job's end makes room for it.
    start: float | None
    #: When it would end by its expected runtime; None: never.
    end: float | None
    user: str = ""
    #: Node -> processors on it, in pairs; empty on a pool without nodes.
    placement: Placement = ()


class DecisionReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """A decision of a cycle, and what became of it when it was handed to the cluster."""

    #: The decision's type, such as "Start".
    decision: str
    #: The job that it is about; "": it is about no job.
    job: str = ""
    reason: str = ""
    accepted: bool = True
    #: What the cluster said.
    message: str = ""


class BeforeReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """The jobs before a job in its queue."""

    #: How many, and for how many processors together.
    jobs: int
    processors: int = 0
    #: Ids of the first of them, of those that the asking user may see.
    named: tuple[str, ...] = ()


class SoonerReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """What would let a job start now, by the plan of the last cycle; ``change`` says which field is set."""

    #: "limit" (it would start with at most this limit), "size" (with at most this size), "feature" (without
    #: it), "resource" (with this in the place of the same of another type) or "pool" (there).
    change: str
    #: Seconds.
    limit: float | None = None
    #: Nodes ("size", 0: it names none) and processors.
    nodes: int = 0
    processors: int = 0
    feature: str = ""
    resource: str = ""
    pool: str = ""


class PlanChange(msgspec.Struct, frozen=True):
    """A job's planned start became another one; absolute seconds."""

    at: float
    start: float


class PlanHistory(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the daemon planned for a job that waits, over time; absolute seconds."""

    #: When a start was first planned for it, and for when.
    noted: float
    first: float
    #: Changes of more than a minute, and the last of them.
    changes: int = 0
    latest: tuple[PlanChange, ...] = ()
    #: Nothing is known of before this time: the daemon began.
    since: float = 0.0


class PlanAccuracy(msgspec.Struct, frozen=True, omit_defaults=True):
    """How good the planned starts of jobs were that began lately in a pool; seconds, early or late."""

    pool: str
    jobs: int
    #: Between the first planned start and the start: half of the jobs, and 90 % of them, are within this.
    half: float
    most: float
    #: The same of what was planned an hour before the start, of the jobs that were planned by then.
    jobs_at_hour: int = 0
    half_at_hour: float | None = None
    most_at_hour: float | None = None


class JobPage(msgspec.Struct, frozen=True, omit_defaults=True, tag="jobs", tag_field="found"):
    """Some of the jobs: first the queues in their order, then jobs outside of them, then jobs on nodes."""

    jobs: tuple[JobReport, ...]
    #: Where the next page begins; None: this was the last.
    next: int | None = None


class JobList(msgspec.Struct, frozen=True, omit_defaults=True):
    """Jobs of all pages, in the order that was asked for: what ``headway jobs --json`` prints."""

    jobs: tuple[JobReport, ...]
    #: The time of the cycle that this is the state after.
    as_of: float
    #: What is missing, or may be; "" if nothing is.
    remark: str = ""


class PoolList(msgspec.Struct, frozen=True, tag="pools", tag_field="found"):
    """The pools, as the cluster lists them."""

    pools: tuple[PoolReport, ...]


class NodePage(msgspec.Struct, frozen=True, omit_defaults=True, tag="nodes", tag_field="found"):
    """Some of the nodes, as the cluster lists them."""

    nodes: tuple[NodeReport, ...]
    #: Where the next page begins; None: this was the last.
    next: int | None = None


class BookingPage(msgspec.Struct, frozen=True, omit_defaults=True, tag="bookings", tag_field="found"):
    """Some of the bookings, pool by pool in the order of the queue."""

    bookings: tuple[BookingReport, ...]
    #: Where the next page begins; None: this was the last.
    next: int | None = None
    #: So many bookings more are not worked out, at most.
    owed: int = 0

    @property
    def missing(self) -> str:
        """What is not on any page, in words; "": nothing."""
        return f"{self.owed} more bookings are not worked out" if self.owed else ""


class ReservationReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """Capacity that is kept free from ``start`` until ``end`` (absolute seconds)."""

    id: str
    start: float
    end: float
    pool: str = ""
    #: On a pool without nodes.
    processors: int = 0
    #: Whole nodes.
    nodes: tuple[str, ...] = ()
    #: Who may use it, and why it is there; empty as well where the asking user may not know.
    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    reason: str = ""


class ReservationPage(msgspec.Struct, frozen=True, omit_defaults=True, tag="reservations", tag_field="found"):
    """Some of the reservations that are not over, as the cluster lists them."""

    reservations: tuple[ReservationReport, ...]
    #: Where the next page begins; None: this was the last.
    next: int | None = None


class CycleReport(msgspec.Struct, frozen=True, omit_defaults=True, tag="cycle", tag_field="found"):
    """The last cycle: what happened, and what was decided."""

    #: How many cycles there were.
    number: int
    at: float
    #: Seconds of the whole cycle, and of the scheduler's step in it; the rest is the journal and commands.
    seconds: float
    step_seconds: float
    #: Type of event -> how many came.
    events: dict[str, int]
    #: Type of decision -> how many were made.
    decisions: dict[str, int]
    #: The first of the decisions.
    first: tuple[DecisionReport, ...] = ()


class ReplicaReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """A site that has a dataset."""

    site: str
    #: Since when; None: from the beginning, and it keeps it.
    since: float | None = None


class CopyReport(msgspec.Struct, frozen=True):
    """A copy of a dataset that is on its way."""

    site: str
    source: str
    since: float
    #: Bytes that have arrived, as far as that is told.
    done: int


class DatasetReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """A dataset: bytes, the sites that have it, and its copies on their way."""

    name: str
    size: int
    at: tuple[ReplicaReport, ...] = ()
    copies: tuple[CopyReport, ...] = ()


class StoreReport(msgspec.Struct, frozen=True):
    """A site's store; bytes."""

    site: str
    #: None: not bounded.
    capacity: int | None
    #: What datasets take, and what copies on their way will take.
    used: int


class DatasetList(msgspec.Struct, frozen=True, tag="datasets", tag_field="found"):
    """The datasets and the stores, as they are configured."""

    datasets: tuple[DatasetReport, ...]
    stores: tuple[StoreReport, ...]


class HoleReport(msgspec.Struct, frozen=True):
    """What a job could have from now on that delays no booking."""

    processors: int
    #: Nodes of which all is free, or that have what was asked for on each; 0 on a pool without nodes.
    nodes: int
    #: When it ends (absolute seconds), and how long that is from the last cycle on; None: it has no end.
    until: float | None
    seconds: float | None


class PoolHoles(msgspec.Struct, frozen=True, omit_defaults=True):
    """The holes of a pool, the largest first and the longest last."""

    pool: str
    holes: tuple[HoleReport, ...] = ()
    #: Why there is none; "": there are some.
    why: str = ""
    #: The plan has not been made beyond this time, so a hole that ends then may be longer; None: it has.
    known_until: float | None = None
    #: Whether a hole has what was asked for in all; None: nothing was.
    fits: bool | None = None


class HoleList(msgspec.Struct, frozen=True, tag="holes", tag_field="found"):
    """The holes of the pools, as the cluster lists these."""

    pools: tuple[PoolHoles, ...]


class SmallerRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A smaller request that would start earlier."""

    #: What is asked for: nodes (0: not stated), processors, seconds.
    nodes: int
    processors: int
    limit: float
    #: When it would start (absolute seconds).
    start: float


class TrialReport(msgspec.Struct, frozen=True, omit_defaults=True, tag="trial", tag_field="found"):
    """When a job would start if it was submitted now."""

    #: Where it would start, or could.
    pool: str
    #: "now"; "planned": capacity would be kept for it; "foreseen": if no other job comes and all run as long
    #: as they are planned with; "later": not before a time; "never".
    outcome: str
    #: When it would start, where that is planned or foreseen (absolute seconds).
    start: float | None = None
    #: Before this it does not start (absolute seconds), if no other job ends early.
    not_before: float | None = None
    #: Node -> processors on it, in pairs; empty on a pool without nodes, and where it is not known.
    placement: Placement = ()
    #: Its place in the queue (1: the first), and how many jobs are in that, with it.
    position: int | None = None
    queue_length: int | None = None
    #: Why it would wait, as of :class:`JobReport`.
    waits_because: str = ""
    why: str = ""
    waits_for: tuple[str, ...] = ()
    #: With which account and QOS it was tried.
    account: str = ""
    qos: str = ""
    #: The smaller requests that were tried and would start earlier, the earliest first.
    smaller: tuple[SmallerRequest, ...] = ()


class HealthCheck(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that must hold of a daemon that runs."""

    name: str
    ok: bool
    #: What was seen.
    detail: str
    #: What to do about it when it does not hold.
    remedy: str = ""


class HealthReport(msgspec.Struct, frozen=True, tag="health", tag_field="found"):
    """Whether what must always hold does hold."""

    checks: tuple[HealthCheck, ...]

    @property
    def well(self) -> bool:
        return all(check.ok for check in self.checks)


class CourseReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is foreseen under one policy, if no other job comes and all run as long as they are planned
    with."""

    #: All enabled plugins, in order.
    plugins: tuple[str, ...]
    #: The waiting jobs whose start is known.
    starts: int
    #: Up to when it is known (absolute seconds); None: to the end, so that a job without a start never starts
    #: by itself.
    known_until: float | None = None
    #: Why no further; "": it is known to the end.
    ended: str = ""
    #: Wait from the submission to the start of the jobs whose start is known under both policies, seconds;
    #: None: there is none.
    mean_wait: float | None = None
    median_wait: float | None = None
    #: Processors that are busy until :attr:`WhatIfReport.until`, as a share of those that are usable now;
    #: None: there are none, or it is no time.
    use: float | None = None


class ForeseenJob(msgspec.Struct, frozen=True, omit_defaults=True):
    """When a job that waits would start under either policy (absolute seconds)."""

    id: str
    pool: str
    user: str
    processors: int
    submitted: float
    #: As the daemon goes on; None: not known, or never.
    present: float | None = None
    #: Under the other policy; None: not known, or never.
    other: float | None = None


class UseOverTime(msgspec.Struct, frozen=True):
    """The share of processors that are busy under either policy, in spans of equal length."""

    #: The middle of each span (absolute seconds).
    times: tuple[float, ...] = ()
    present: tuple[float, ...] = ()
    other: tuple[float, ...] = ()


class WhatIfReport(msgspec.Struct, frozen=True, omit_defaults=True, tag="what-if", tag_field="found"):
    """What would become of the jobs that wait now under another policy, beside what is planned."""

    policy: str
    #: From when on it is foreseen (absolute seconds).
    now: float
    present: CourseReport
    other: CourseReport
    #: The jobs that wait now; of these, those that start earlier, later, or within a second of it under the
    #: other policy, and those of which that is not known.
    waiting: int
    earlier: int = 0
    later: int = 0
    same: int = 0
    unknown: int = 0
    #: Up to when both are known, or all of these jobs have started (absolute seconds).
    until: float | None = None
    use: UseOverTime = UseOverTime()
    #: Jobs in the order in which the daemon serves them, and how many are left out behind them.
    jobs: tuple[ForeseenJob, ...] = ()
    left_out: int = 0
