"""What the journal tells of the past: frozen facts, for pages and programs.

Times are absolute seconds by the batch system's clock. None: not known, or it does not apply. An entry's
``number`` is its place in the journal, in three numbers with points between them: a reader goes on behind it.
"""

from __future__ import annotations

import msgspec

from headway.model import Placement


class PastDecision(msgspec.Struct, frozen=True, omit_defaults=True, tag="decision", tag_field="entry"):
    """A decision of an earlier cycle, and what became of it when it was handed to the cluster."""

    number: str
    #: When its cycle was.
    at: float | None
    #: The decision's type, such as "Start".
    decision: str
    #: The job that it is about, and the user of it; "": it is about no job.
    job: str = ""
    user: str = ""
    #: A second job that it is about, if the asking user may know of that.
    other_job: str = ""
    reason: str = ""
    #: None: what became of it was not recorded.
    accepted: bool | None = None
    #: What the cluster said.
    message: str = ""
    #: Node -> processors on it, in pairs, of a decision that names nodes for its job.
    placement: Placement = ()


class PastEvent(msgspec.Struct, frozen=True, omit_defaults=True, tag="event", tag_field="entry"):
    """An event that was recorded."""

    number: str
    #: The event's type, such as "JobEnded".
    kind: str
    #: When it happened, and when the cycle was that recorded it.
    at: float | None
    recorded: float | None
    #: Its job and the user of it, or its node; "": it is about none.
    job: str = ""
    user: str = ""
    other_job: str = ""
    node: str = ""
    #: What it says beside that: how a job ended, why.
    detail: str = ""
    #: Node -> processors on it, in pairs.
    placement: Placement = ()


class PastJob(msgspec.Struct, frozen=True, omit_defaults=True):
    """A job as it was from one start to its end, or without a start."""

    id: str
    pool: str
    processors: int
    #: Seconds after which the batch system would have ended it; None: never.
    limit: float | None
    submitted: float | None
    user: str = ""
    account: str = ""
    qos: str = ""
    name: str = ""
    #: Number of nodes that it asked for; 0: it did not say.
    nodes: int = 0
    #: All pools that it was sent to, if there were several.
    pools: tuple[str, ...] = ()
    #: The array that it was an element of.
    array: str = ""
    #: When it began; None: it did not, or that is not known.
    started: float | None = None
    #: When it was there no longer; None: no end is recorded.
    ended: float | None = None
    #: Node -> processors on it, in pairs.
    placement: Placement = ()
    #: How it ended: one of :data:`headway.events.OUTCOMES`, "requeued" or "moved" (it went on elsewhere).
    outcome: str = ""
    reason: str = ""
    exit_code: int | None = None
    #: The number of the event that was its end.
    number: str = ""


class DecisionHistory(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page of decisions."""

    decisions: tuple[PastDecision, ...]
    #: The next page is behind this number, also if this page is empty; None: there is none now.
    next: str | None = None


class EventHistory(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page of events."""

    events: tuple[PastEvent, ...]
    #: As of :class:`DecisionHistory`.
    next: str | None = None


class WorkHistory(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page of jobs that ran, by their ends."""

    jobs: tuple[PastJob, ...]
    #: As of :class:`DecisionHistory`.
    next: str | None = None


class JobHistory(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the journal tells of one job, or which elements of an array it tells of."""

    id: str
    #: The job from each of its starts to its end, the last first; without a start, once.
    jobs: tuple[PastJob, ...] = ()
    #: What happened to it and what was decided about it, oldest first. What a later run only found as it was
    #: is left out.
    entries: tuple[PastEvent | PastDecision, ...] = ()
    #: Why its last start failed; "": nothing failed, or it began since.
    last_failure: str = ""
    #: There are more entries than these, which are the first.
    more: bool = False
    #: The elements of the array of this id.
    elements: tuple[str, ...] = ()
