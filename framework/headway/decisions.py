"""Decisions: everything the scheduler can wish for, the only thing that leaves it.

A closed vocabulary of small frozen wishes. Each carries a ``reason``, a short sentence for a
person; the sum of the reasons about a job is what ``headway explain`` shows. An adapter states
as its *capabilities* which of these types it can carry out.
"""

from __future__ import annotations

import msgspec

from headway.model import JobDescription, Placement, Reservation


class Decision(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="decision", tag=True):
    """What all decisions share."""


class Start(Decision, frozen=True):
    """Start a pending job on these nodes (none named on a flat pool)."""

    job_id: str
    placement: Placement = ()
    reason: str = ""
    tier: str = "foreground"
    #: Hertz; None: the node's own.
    frequency: float | None = None
    #: The pool in which a job of several starts; "": its only pool.
    pool: str = ""


class Hold(Decision, frozen=True):
    """Keep a pending job from starting."""

    job_id: str
    reason: str = ""


class Release(Decision, frozen=True):
    """Take a hold away."""

    job_id: str
    reason: str = ""


class Suspend(Decision, frozen=True):
    """Stop a running job; it keeps its memory."""

    job_id: str
    reason: str = ""


class Resume(Decision, frozen=True):
    """Let a suspended job run."""

    job_id: str
    reason: str = ""


class Checkpoint(Decision, frozen=True):
    """Save a running job's progress."""

    job_id: str
    reason: str = ""


class Migrate(Decision, frozen=True):
    """Move a running job to other nodes, or have it begin again there."""

    job_id: str
    placement: Placement = ()
    reason: str = ""
    #: The tier that it runs in there; "": its tier until now.
    tier: str = ""
    #: It begins again, and what it has done is lost: possible with every job.
    restart: bool = False


class Signal(Decision, frozen=True):
    """Send all processes of a running job a signal."""

    job_id: str
    #: Its name without SIG, such as "TERM".
    signal: str
    #: It is expected to go so many seconds later, by itself or because it is told to; None: it stays.
    grace: float | None = None
    reason: str = ""


class Requeue(Decision, frozen=True):
    """Send a running job back to the queue."""

    job_id: str
    reason: str = ""


class Kill(Decision, frozen=True):
    """End a running job."""

    job_id: str
    reason: str = ""


class Cancel(Decision, frozen=True):
    """Remove a pending job."""

    job_id: str
    reason: str = ""


class SetTimeLimit(Decision, frozen=True):
    """Change a job's walltime, in seconds from its start."""

    job_id: str
    walltime: float
    reason: str = ""
    #: Its user asked for it, and knows what the job needs: emulated, its work changes as its limit does.
    asked: bool = False


class Annotate(Decision, frozen=True):
    """Write ``key`` and ``value`` where a pending job can read them once it runs, beside what its user
    wrote."""

    job_id: str
    #: Small letters.
    key: str
    #: Letters, digits and ``=,._/:-``; not empty.
    value: str
    reason: str = ""


class Resize(Decision, frozen=True):
    """Change a job's processors; for a running job on nodes, ``placement`` is what it has after."""

    job_id: str
    processors: int
    placement: Placement = ()
    reason: str = ""


class SwapTiers(Decision, frozen=True):
    """Bring ``job_id`` to the foreground and send ``other_job_id`` ("" for none) to the background."""

    job_id: str
    other_job_id: str = ""
    reason: str = ""


class SetFrequency(Decision, frozen=True):
    """Run a job's processors at ``frequency`` hertz."""

    job_id: str
    frequency: float
    reason: str = ""


class PowerDown(Decision, frozen=True):
    """Put idle nodes to sleep."""

    nodes: tuple[str, ...]
    reason: str = ""


class PowerUp(Decision, frozen=True):
    """Wake nodes."""

    nodes: tuple[str, ...]
    reason: str = ""


class Reserve(Decision, frozen=True):
    """Make an advance reservation, or change the reservation of that id."""

    reservation: Reservation
    reason: str = ""


class Unreserve(Decision, frozen=True):
    """Remove an advance reservation."""

    reservation_id: str
    reason: str = ""


class SubmitSubjob(Decision, frozen=True):
    """Submit a further job on behalf of ``parent_id``."""

    parent_id: str
    job: JobDescription
    reason: str = ""


class Route(Decision, frozen=True):
    """Send a pending job to another pool, in a federation also of another cluster. It keeps its id."""

    job_id: str
    pool: str
    reason: str = ""


class Bind(Decision, frozen=True):
    """Let a pending job run in this reservation alone; "" lets it run outside of reservations again."""

    job_id: str
    reservation_id: str
    reason: str = ""
    #: Where the job waits when it is bound no more; needed where jobs of reservations have queues of their
    #: own (PBS).
    pool: str = ""


class Copy(Decision, frozen=True):
    """Copy a dataset to the store of a site from the store of another."""

    dataset: str
    #: The site that is to have it.
    site: str
    source: str
    reason: str = ""


class Drop(Decision, frozen=True):
    """Remove a site's copy of a dataset."""

    dataset: str
    site: str
    reason: str = ""


class Tell(Decision, frozen=True):
    """Write a letter to a user. The engine has it delivered: no cluster is asked. At most once, and no event
    says what became of it."""

    #: The user's name, as the batch system has it.
    user: str
    #: One line.
    subject: str
    text: str
    reason: str = ""


AnyDecision = (
    Start
    | Hold
    | Release
    | Suspend
    | Resume
    | Checkpoint
    | Migrate
    | Signal
    | Requeue
    | Kill
    | Cancel
    | SetTimeLimit
    | Annotate
    | Resize
    | SwapTiers
    | SetFrequency
    | PowerDown
    | PowerUp
    | Reserve
    | Unreserve
    | SubmitSubjob
    | Route
    | Bind
    | Copy
    | Drop
    | Tell
)

#: By name, as configurations and plugins name them.
DECISION_TYPES: dict[str, type[Decision]] = {
    kind.__name__: kind
    for kind in (
        Start, Hold, Release, Suspend, Resume, Checkpoint, Migrate, Signal, Requeue, Kill, Cancel,
        SetTimeLimit, Annotate, Resize, SwapTiers, SetFrequency, PowerDown, PowerUp, Reserve, Unreserve,
        SubmitSubjob, Route, Bind, Copy, Drop,
        Tell,
    )
}  # fmt: skip

#: What the engine itself carries out: no adapter is asked for it, and every plugin can decide it.
OF_THE_ENGINE: frozenset[type[Decision]] = frozenset({Tell})


class Answer(msgspec.Struct, frozen=True):
    """What a plugin answers to a request, in the step in which it was served.

    The answer holds only if the cluster accepts all ``decisions``, which the plugin made in this step;
    otherwise the user is told the cluster's refusal.
    """

    #: "accepted", "in part", "refused" or "waiting".
    outcome: str
    reason: str = ""
    decisions: tuple[Decision, ...] = ()
