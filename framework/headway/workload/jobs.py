"""A workload's job: what the user asked for, and what the scheduler must not know."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from headway.model import JobDescription, Placement

#: The attribute of a dedicated job (:attr:`headway.model.JobDescription.attributes`): absolute seconds.
REQUESTED_START = "requested_start"


def dedicated(job: JobDescription, start: float) -> JobDescription:
    """The job as one that must start at ``start`` (absolute seconds), out of the queue until then."""
    attributes = {**(job.attributes or {}), REQUESTED_START: start}
    return msgspec.structs.replace(job, begin_time=start, attributes=attributes)


class TraceJob(msgspec.Struct, frozen=True, gc=False):
    """A job with its secret: how long it really runs.

    ``runtime`` is seconds of work at rate 1, not cut at the estimate.
    """

    job: JobDescription
    runtime: float
    #: How it ends if it is not cut short; one of :data:`headway.events.OUTCOMES`.
    outcome: str = "completed"
    #: Row of the trace's record array; -1: from no trace.
    row: int = -1


class Begun(NamedTuple):
    """A job of a workload that runs already when an emulation begins."""

    job_id: str
    #: Seconds since its start.
    elapsed: float
    placement: Placement
    tier: str = "foreground"
    #: Hertz; None: the nodes' own.
    frequency: float | None = None
    #: Seconds of its work that are done; None: it has run at full speed since its start.
    done: float | None = None
    #: The pool in which a job of several runs; "": its only one.
    pool: str = ""


class Follows(msgspec.Struct, frozen=True, gc=False):
    """A job that its user submits once another one has ended; see :mod:`headway.workload.chains`."""

    #: The other job's id.
    job_id: str
    #: Seconds from its end to the submission.
    think: float


class TraceCommand(msgspec.Struct, frozen=True, gc=False):
    """An elastic command that a workload's user gives at ``time`` (seconds)."""

    time: float
    job_id: str
    #: "ET", "RT" (extend, reduce time; ``amount`` in seconds), "EP", "RP" (processors).
    command: str
    amount: float
