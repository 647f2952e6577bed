"""What a daemon tells a program that follows it: all that is there, then what changed after each cycle.

A line of JSON each, on the connection on which :class:`headway.service.protocol.Follow` was asked. What only
some users may know says so: the follower serves users as the daemon would (:class:`Begun`).
"""

from __future__ import annotations

from typing import Any

import msgspec

from headway.inquiry.reports import BookingReport, CycleReport, DecisionReport, JobReport, NodeReport
from headway.service.protocol import Report

#: Of what is told here; a follower of another one cannot follow.
FORMAT = 1


class _Change(msgspec.Struct, frozen=True, array_like=True, tag=str.lower):
    """What all changes share."""


class Begun(_Change, frozen=True):
    """The first that is told."""

    format: int
    #: Users are told of their own jobs only, and operators of all.
    private: bool = True
    operators: tuple[str, ...] = ()
    #: Whether the following program's own user is an operator.
    operator: bool = False


class Words(msgspec.Struct, frozen=True, array_like=True):
    """Why a job waits, as its own user is told."""

    why: str
    waits_for: tuple[str, ...] = ()


class JobRow(msgspec.Struct, frozen=True, array_like=True):
    """A job."""

    #: As operators see it. Its place is 0 if it is in a queue, whose length is not told. Before it was worked
    #: out why a job waits, that and its place are missing.
    report: JobReport
    #: In this order jobs stand that are in no queue: by when the job was submitted, then by this number.
    submitted: float
    seq: Any
    #: None: its user is told the same.
    own: Words | None = None


class JobRows(_Change, frozen=True):
    """Jobs that came or changed, and ids of jobs that are gone."""

    rows: tuple[JobRow, ...] = ()
    gone: tuple[str, ...] = ()


class Domains(_Change, frozen=True):
    """The queues in their order: of each its name and the names of its pools. None has jobs any more."""

    domains: tuple[tuple[str, tuple[str, ...]], ...]


class Order(_Change, frozen=True):
    """A queue changed: first the jobs at these places (ascending, of the queue as it was) are taken out, then
    others are put in, one by one, each at its place. ``anew``: the queue was empty before."""

    domain: str
    out: tuple[int, ...] = ()
    put: tuple[tuple[int, str], ...] = ()
    anew: tuple[str, ...] | None = None


class NodeRows(_Change, frozen=True):
    """Nodes that came (they stand behind those that are there) or changed, without their jobs."""

    rows: tuple[NodeReport, ...]
    gone: tuple[str, ...] = ()
    #: Ids of all reservations that are told to operators alone, as they are kept for jobs.
    hidden: tuple[str, ...] = ()


class Booked(_Change, frozen=True):
    """The bookings of a domain: the first ``keep`` as they were, then these."""

    domain: str
    keep: int
    rows: tuple[BookingReport, ...]
    #: So many are still to be made, or to be told.
    owed: int = 0


class Decided(msgspec.Struct, frozen=True, array_like=True):
    """A decision: as operators see it, the user of its job ("": not known, or of no job), and as that user is
    told (None: the same)."""

    report: DecisionReport
    user: str = ""
    own: DecisionReport | None = None


class Happened(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """An event: its type, its time (absolute seconds), its job and that job's user, or its node."""

    kind: str
    at: float
    job: str = ""
    user: str = ""
    node: str = ""


class Cycled(_Change, frozen=True):
    """A cycle is over: its report without its decisions, these, and what happened; both may be cut."""

    report: CycleReport
    decided: tuple[Decided, ...] = ()
    happened: tuple[Happened, ...] = ()


class State(_Change, frozen=True):
    """How the daemon is, as operators see it."""

    report: Report


class Whole(_Change, frozen=True):
    """All that was there when the program began to follow has been told."""


Change = Begun | JobRows | Domains | Order | NodeRows | Booked | Cycled | State | Whole

_change = msgspec.json.Decoder(Change)
#: A change, or a part of one, without the line's end.
encoded = msgspec.json.Encoder().encode


def read_change(line: bytes) -> Change:
    """A change; :class:`msgspec.DecodeError` says what is wrong with it."""
    return _change.decode(line)


def write_change(change: Change) -> bytes:
    """A change as its line."""
    return encoded(change) + b"\n"
