"""What a batch system shows at one moment; the common form of every adapter's reader."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

import msgspec

from headway.model import JobDescription, NodeDescription, Placement, PoolDescription, Reservation

#: The values of :attr:`SnapshotJob.state`. "starting": its nodes are given, it does not run yet.
STATES = ("pending", "starting", "running", "suspended", "ended")


class SnapshotJob(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A job as the batch system shows it. Times are absolute seconds."""

    job: JobDescription
    #: One of :data:`STATES`.
    state: str
    #: Where it runs or ran; empty if it never did.
    placement: Placement = ()
    #: Start of its last (or present) execution.
    start_time: float | None = None
    #: Since when it is suspended, if it is and the batch system says so.
    suspended_since: float | None = None
    #: Seconds since its start for which it was suspended, up to :attr:`suspended_since` or now.
    paused: float = 0.0
    #: When it ended; for a job that has not ended this is None.
    end_time: float | None = None
    #: One of :data:`headway.events.OUTCOMES` for an ended job.
    outcome: str = ""
    exit_code: int | None = None
    #: The holder of a pending job: "", "headway", "user", "administrator", or "system".
    held_by: str = ""
    #: Nodes that headway chose for a start that is not confirmed yet.
    pinned: Placement = ()
    #: A start that headway asked for is on its way.
    releasing: bool = False
    #: Of a job of several pools: the pool of that start.
    pool: str = ""
    #: Why it waits, or how it ended, in the batch system's words.
    reason: str = ""
    #: How often it went back to the queue.
    restarts: int = 0
    #: The tier that it runs in.
    tier: str = "foreground"
    #: It runs no more, and its nodes are not free of it yet; afterwards it may go back to the queue.
    leaving: bool = False


@dataclass(frozen=True)
class Snapshot:
    """A whole cluster at ``time`` (absolute seconds, when the looking began)."""

    time: float
    jobs: Mapping[str, SnapshotJob] = field(default_factory=dict)
    nodes: Mapping[str, NodeDescription] = field(default_factory=dict)
    pools: Mapping[str, PoolDescription] = field(default_factory=dict)
    reservations: Mapping[str, Reservation] = field(default_factory=dict)
    #: Node name -> "on", "asleep", "falling asleep", "waking"; only where the batch system says.
    power: Mapping[str, str] = field(default_factory=dict)
    #: Name -> how much there is, for the jobs that are shown, of what belongs to no node.
    licences: Mapping[str, int] = field(default_factory=dict)
    #: Node name -> watts that the batch system measured last; only where it measures.
    watts: Mapping[str, float] = field(default_factory=dict)

    def dropped(self, jobs: Container[str], unread: Container[str]) -> list[str]:
        """The jobs here that had not ended and that a later listing neither has (``jobs``) nor could not read
        (``unread``)."""
        return [
            key for key, job in self.jobs.items()
            if job.state != "ended" and key not in jobs and key not in unread
        ]  # fmt: skip
