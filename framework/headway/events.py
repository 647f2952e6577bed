"""Events: everything that happens, the only thing that enters the scheduler.

A closed vocabulary of small frozen facts. An adapter produces them, the journal stores them, and
:meth:`headway.scheduler.Scheduler.step` folds them into its state. Each has the ``time`` at which
it happened, in seconds.

At equal times, completions (and starts) come before changes and changes before arrivals; the
class attribute ``phase`` says which an event is. :func:`in_order` applies that rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, get_args

import msgspec

from headway.decisions import AnyDecision
from headway.model import (
    JobDescription,
    NodeDescription,
    Placement,
    PoolDescription,
    Reservation,
    SitePolicy,
)

#: How a job can end; the values of :attr:`JobEnded.outcome`.
OUTCOMES = ("completed", "failed", "cancelled", "timed out", "preempted", "node failure", "vanished")


class Event(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="event", tag=True):
    """What all events share."""

    phase: ClassVar[int] = 1

    time: float


class JobSubmitted(Event, frozen=True):
    """A job entered a queue."""

    phase: ClassVar[int] = 2

    job: JobDescription
    #: Why it is held, if it is.
    reason: str = ""


class JobStarted(Event, frozen=True):
    """A job runs (``time`` is its start), on these nodes."""

    phase: ClassVar[int] = 0

    job_id: str
    placement: Placement = ()
    tier: str = "foreground"
    #: Hertz; None: the node's own.
    frequency: float | None = None
    #: The pool in which a job of several runs; "": its only pool, or the pool that its start named.
    pool: str = ""


class JobEnded(Event, frozen=True):
    """A job left the machine or the queue for good; ``outcome`` is one of :data:`OUTCOMES`."""

    phase: ClassVar[int] = 0

    job_id: str
    outcome: str = "completed"
    reason: str = ""
    exit_code: int | None = None


class JobRequeued(Event, frozen=True):
    """A running job went back to the queue and will run again from its start or checkpoint."""

    phase: ClassVar[int] = 0

    job_id: str
    reason: str = ""


class JobHeld(Event, frozen=True):
    """A pending job was held by its user or an administrator (not by headway)."""

    job_id: str
    reason: str = ""


class JobReleased(Event, frozen=True):
    """A pending job's hold was taken away: it may be started again."""

    job_id: str


class JobReleasing(Event, frozen=True):
    """A start was asked for and is on its way: the batch system has it, but it does not run yet.

    Seen after a restart, when a predecessor's start was issued and not yet confirmed.
    """

    phase: ClassVar[int] = 0

    job_id: str
    placement: Placement = ()
    #: Hertz, that was asked for with the start; None: the node's own.
    frequency: float | None = None
    #: The pool in which a job of several is to start; "": its only pool.
    pool: str = ""


class JobChanged(Event, frozen=True):
    """A job's description changed (limit, size, priority, pool, dependencies, ...): the new one."""

    job: JobDescription


class JobSuspended(Event, frozen=True):
    """A running job was stopped and keeps its memory."""

    job_id: str


class JobResumed(Event, frozen=True):
    """A suspended job runs again."""

    job_id: str


class JobLeaving(Event, frozen=True):
    """A job is over, and its nodes are not free of it yet: an epilog runs, or a node is silent."""

    job_id: str


class JobCheckpointed(Event, frozen=True):
    """A running job's progress is safe: a restart loses nothing before ``time``."""

    job_id: str


class JobMigrated(Event, frozen=True):
    """A running job moved."""

    job_id: str
    placement: Placement = ()
    #: The tier that it is in there; "": its tier until now.
    tier: str = ""
    #: It began again there, and what it had done is lost.
    restarted: bool = False
    #: How long it stood still for that, seconds; None: not measured.
    seconds: float | None = None


class JobTierChanged(Event, frozen=True):
    """A running job went to another tier ("foreground", "background")."""

    job_id: str
    tier: str


class JobPaceChanged(Event, frozen=True):
    """How far a running job is, and how fast it goes from now on.

    Told about jobs that do not run alone at full speed: a job that shares its processors, or is being moved.
    """

    job_id: str
    #: Seconds of its work that are done, at full speed.
    done: float
    #: Seconds of work a second: 1 is full speed, 0 stands still.
    rate: float
    #: When a job that stands still goes on (absolute seconds), where that is known.
    resumes: float | None = None


class JobUsageMeasured(Event, frozen=True):
    """How much of its processors a running job uses."""

    job_id: str
    #: Share of one processor that each of its processes uses, in (0, 1].
    cpu: float


class JobFrequencyChanged(Event, frozen=True):
    """A running job's processors now run at ``frequency`` hertz; None: at the nodes' own."""

    job_id: str
    frequency: float | None


class ElasticCommandReceived(Event, frozen=True):
    """A user's elastic command: ET, RT (extend, reduce time; seconds), EP, RP (processors)."""

    job_id: str
    command: str
    amount: float
    #: The user that gave it; "" when it comes from a workload.
    user: str = ""
    #: The user may command all users' jobs.
    operator: bool = False
    #: The key by which its answer is found; "" when no client waits for an answer.
    request: str = ""


class ReservationRequested(Event, frozen=True):
    """A user wants capacity from ``start`` for ``duration`` seconds: nodes, or processors."""

    request: str
    start: float
    duration: float
    #: Either is 0.
    nodes: int = 0
    processors: int = 0
    #: "" means the cluster's only pool.
    pool: str = ""
    #: The asking user; the beneficiary is the user that may use it ("": the asking user).
    user: str = ""
    operator: bool = False
    beneficiary: str = ""
    account: str = ""


class ReservationReturned(Event, frozen=True):
    """A user no longer wants a reservation."""

    request: str
    reservation_id: str
    user: str = ""
    operator: bool = False


class PluginAsked(Event, frozen=True):
    """A user asks a plugin for something that is the plugin's own, such as a metajob."""

    #: The key by which its answer is found; "" when no client waits for an answer.
    request: str
    #: The plugin's name; another plugin leaves the event alone.
    plugin: str
    #: What the user wants, in a word of the plugin's.
    verb: str
    #: What it is about, in JSON. The plugin checks it: a user wrote it.
    text: str = ""
    user: str = ""
    operator: bool = False


class PoolChanged(Event, frozen=True):
    """A pool appeared, or its description changed. Whether it is flat cannot change."""

    pool: PoolDescription


class NodeUp(Event, frozen=True):
    """A node became usable, appeared, or changed its description."""

    node: NodeDescription


class NodeDown(Event, frozen=True):
    """A node takes no new jobs (down, drained). Jobs on it end with events of their own."""

    node: str
    reason: str = ""


class NodeFrequencyChanged(Event, frozen=True):
    """A node's clock is now ``frequency`` hertz."""

    node: str
    frequency: float


class NodePowerChanged(Event, frozen=True):
    """A node's power state: "on", "asleep", "falling asleep", "waking"."""

    node: str
    power: str


class PartitionChanged(Event, frozen=True):
    """A set of nodes that is booted together is in another state: one of
    :class:`headway.partitions.bridge.PartitionState`, such as "ready" or "free".

    Told of partitions whose boot was ordered (``PowerUp``), and of failed boots of other partitions."""

    partition: str
    nodes: tuple[str, ...]
    state: str
    #: Why, if it came to it by a fault.
    reason: str = ""


class LicencesChanged(Event, frozen=True):
    """The amount of something that belongs to no node has changed."""

    licence: str
    total: int


class ReservationMade(Event, frozen=True):
    """A reservation exists, or changed."""

    reservation: Reservation


class ReservationStarted(Event, frozen=True):
    """A reservation's time began."""

    reservation_id: str


class ReservationEnded(Event, frozen=True):
    """A reservation's time is over, or it was removed."""

    phase: ClassVar[int] = 0

    reservation_id: str


class JobRouted(Event, frozen=True):
    """A pending job has gone to another pool, perhaps of another cluster, and keeps its id."""

    job_id: str
    pool: str


class DatasetCopying(Event, frozen=True):
    """A copy of a dataset is on its way to a site."""

    dataset: str
    site: str
    source: str
    #: Bytes that are there already.
    done: int = 0


class DatasetCopied(Event, frozen=True):
    """A site has a dataset now."""

    phase: ClassVar[int] = 0

    dataset: str
    site: str
    #: Where it came from; "": it was found there.
    source: str = ""
    #: How long the copy took; None: not measured.
    seconds: float | None = None


class DatasetLost(Event, frozen=True):
    """A site has a dataset no more: it was dropped, or is gone."""

    phase: ClassVar[int] = 0

    dataset: str
    site: str
    reason: str = ""


class CopyFailed(Event, frozen=True):
    """A copy of a dataset broke off on its way; what had arrived is removed."""

    phase: ClassVar[int] = 0

    dataset: str
    site: str
    source: str
    #: Bytes that had arrived.
    done: int = 0
    reason: str = ""


class SitePolicyChanged(Event, frozen=True):
    """What the batch system says of its site's policy: told first of all, and when it is otherwise."""

    policy: SitePolicy


class ClusterSilent(Event, frozen=True):
    """A cluster does not answer since ``time``. What is known of it stands, and nothing is news meanwhile."""

    #: Its name in a federation; "": the cluster itself.
    cluster: str = ""
    #: What its adapter was told, or what failed.
    reason: str = ""


class ClusterAnswers(Event, frozen=True):
    """A cluster that was silent answers again; what happened there meanwhile comes with this event."""

    #: Its name in a federation; "": the cluster itself.
    cluster: str = ""


class DecisionFailed(Event, frozen=True):
    """The batch system did not carry a decision out; what it said."""

    phase: ClassVar[int] = 0

    decision: AnyDecision
    message: str


class Tick(Event, frozen=True):
    """Time passed and nothing else happened."""


AnyEvent = (
    JobSubmitted
    | JobStarted
    | JobEnded
    | JobRequeued
    | JobHeld
    | JobReleased
    | JobReleasing
    | JobChanged
    | JobSuspended
    | JobResumed
    | JobLeaving
    | JobCheckpointed
    | JobMigrated
    | JobTierChanged
    | JobPaceChanged
    | JobUsageMeasured
    | JobFrequencyChanged
    | ElasticCommandReceived
    | ReservationRequested
    | ReservationReturned
    | PluginAsked
    | PoolChanged
    | NodeUp
    | NodeDown
    | NodeFrequencyChanged
    | NodePowerChanged
    | PartitionChanged
    | LicencesChanged
    | ReservationMade
    | ReservationStarted
    | ReservationEnded
    | JobRouted
    | DatasetCopying
    | DatasetCopied
    | DatasetLost
    | CopyFailed
    | SitePolicyChanged
    | ClusterSilent
    | ClusterAnswers
    | DecisionFailed
    | Tick
)


def all_but(*kinds: type[Event]) -> tuple[type[Event], ...]:
    """All kinds of events but these: for a plugin's trait ``observes``."""
    return tuple(kind for kind in get_args(AnyEvent) if kind not in kinds)


_BEFORE_ALL = float("-inf")


def in_order(events: Sequence[Event]) -> Sequence[Event]:
    """The events by time; at equal times completions, changes, arrivals; otherwise as given.

    Two exceptions keep causes before effects: what happened to a job at the very second of its
    own submission comes after the submission, and pools come before all that is told of their jobs and nodes.
    """
    before = _BEFORE_ALL
    previous: Event | None = None
    for event in events:
        time = event.time
        # Arrivals and other events at one time may need their causes before their effects.
        if time <= before and (time < before or (previous is not None and event.phase != previous.phase)):
            return _sorted(events)
        if isinstance(event, PoolChanged) and previous is not None:
            return _sorted(events)
        before, previous = time, event
    return events


def _sorted(events: Sequence[Event]) -> Sequence[Event]:
    submitted = {e.job.id: e.time for e in events if isinstance(e, JobSubmitted)}

    def key(event: Event) -> tuple[float, int]:
        if isinstance(event, PoolChanged):
            return _BEFORE_ALL, event.phase
        if not isinstance(event, JobSubmitted):
            job_id = event.job.id if isinstance(event, JobChanged) else getattr(event, "job_id", "")
            born = submitted.get(job_id)
            if born is not None and event.time <= born:
                return born, JobSubmitted.phase + 1
        return event.time, event.phase

    return sorted(events, key=key)
