"""The bridge: the only interface through which resources are provisioned, booted and released.

The component that decides about partitions (a job manager, a plugin) speaks to a bridge. The owner of the
hardware (an emulated control system, a batch system's power saving) is behind it. Calls have three classes:
*logical* calls write records, *physical* calls begin something that takes time and return at once, *queries*
tell how far it is. There is no order but this: an object is added before it is named in another call, what
was not created cannot be destroyed, and a job that does not run cannot be signalled. Every call can be
repeated.

States of a partition::

            create                boot done              job starts
   FREE ------------> CONFIGURING ---------> READY <----------------> BUSY
     ^                    | boot fails |       |      job ends          |
     |                    v            |       | destroy                |
     |<-- DEALLOCATING <--+------------+-------+------------------------+
   ERROR  <- a fault of its own in any state; leaves only to FREE

and of a job: IDLE, STARTING (also while its partition is not ready), RUNNING, DYING, TERMINATED; ERROR if its
partition did not boot.
"""

from __future__ import annotations

import abc
from enum import StrEnum

import msgspec


class Status(StrEnum):
    """What became of a call."""

    OK = "ok"
    NOT_FOUND = "not found"
    EXISTS = "exists"
    INCOMPATIBLE_STATE = "incompatible state"
    CONFLICT = "conflict"
    INTERNAL_ERROR = "internal error"


class PartitionState(StrEnum):
    FREE = "free"
    CONFIGURING = "configuring"
    READY = "ready"
    BUSY = "busy"
    DEALLOCATING = "deallocating"
    ERROR = "error"


#: A partition in one of these holds its hardware.
ACTIVE = frozenset({
    PartitionState.CONFIGURING, PartitionState.READY, PartitionState.BUSY, PartitionState.DEALLOCATING,
})  # fmt: skip


class JobState(StrEnum):
    IDLE = "idle"
    STARTING = "starting"
    RUNNING = "running"
    DYING = "dying"
    TERMINATED = "terminated"
    ERROR = "error"


class Reply(msgspec.Struct, frozen=True):
    """What became of a call; ``changed``: it had an effect."""

    status: Status
    changed: bool = False
    message: str = ""

    @property
    def ok(self) -> bool:
        return self.status is Status.OK


class PartitionSpec(msgspec.Struct, frozen=True):
    """Which nodes a partition consists of, and how they are wired ("": not at all)."""

    id: str
    nodes: tuple[str, ...]
    connection: str = ""


class Partition(msgspec.Struct, frozen=True):
    """A partition as it is now."""

    spec: PartitionSpec
    state: PartitionState = PartitionState.FREE
    #: Why its last boot failed, or what is wrong with it.
    message: str = ""
    #: The job that is on it, or that waits for it.
    job: str = ""


class JobSpec(msgspec.Struct, frozen=True):
    """A job and the partition that it is to run on."""

    id: str
    partition: str


class BridgeJob(msgspec.Struct, frozen=True):
    """A job as it is now."""

    spec: JobSpec
    state: JobState = JobState.IDLE
    #: What it returned, once it is TERMINATED.
    exit_code: int | None = None


class Snapshot(msgspec.Struct, frozen=True):
    """Everything that is known of the machine at one moment."""

    #: Node names; unusable nodes are also in ``down``.
    nodes: tuple[str, ...]
    down: frozenset[str]
    partitions: tuple[Partition, ...]
    jobs: tuple[BridgeJob, ...]


class Provisioner(abc.ABC):
    """The partitions' half of a bridge: what can be provisioned and booted, however jobs start there."""

    @abc.abstractmethod
    def get_machine(self) -> Snapshot:
        """Everything (query)."""

    @abc.abstractmethod
    def add_partition(self, spec: PartitionSpec) -> Reply:
        """Write a record (logical). Every node must exist (NOT_FOUND), none need be free; a node may be in
        any number of partitions. EXISTS for another partition of this id; the same one again is OK without
        effect. INCOMPATIBLE_STATE: these nodes cannot be wired so."""

    @abc.abstractmethod
    def remove_partition(self, partition: str) -> Reply:
        """Delete the record of a FREE one (logical); INCOMPATIBLE_STATE for any other."""

    @abc.abstractmethod
    def create_partition(self, partition: str) -> Reply:
        """Begin to boot it (physical): CONFIGURING, then READY, or FREE again if that fails. CONFLICT while a
        conflicting one is active; INCOMPATIBLE_STATE if part of it is down or it is not FREE. One that is
        CONFIGURING, READY or BUSY: OK without effect."""

    @abc.abstractmethod
    def destroy_partition(self, partition: str, *, force: bool = False) -> Reply:
        """Give its hardware back (physical): DEALLOCATING, then FREE; the record stays. On a FREE one, or
        one on its way there: OK without effect. BUSY: INCOMPATIBLE_STATE; with ``force`` its job dies
        first."""

    @abc.abstractmethod
    def get_partition(self, partition: str) -> Partition | None:
        """One partition (query); None: NOT_FOUND."""


class Bridge(Provisioner):
    """The whole bridge, with jobs."""

    @abc.abstractmethod
    def add_job(self, spec: JobSpec) -> Reply:
        """Write a record (logical), state IDLE. NOT_FOUND without its partition; EXISTS as for partitions."""

    @abc.abstractmethod
    def remove_job(self, job: str) -> Reply:
        """Delete the record (logical). INCOMPATIBLE_STATE while it is RUNNING or DYING, or STARTING on a
        partition that is ready for it."""

    @abc.abstractmethod
    def start_job(self, job: str) -> Reply:
        """Have an IDLE job start (physical): at once if its partition is READY, else as soon as it is.
        INCOMPATIBLE_STATE for a partition that has a job, and for a job that has ended. Again: OK without
        effect."""

    @abc.abstractmethod
    def signal_job(self, job: str, signal: int) -> Reply:
        """Deliver a signal to a RUNNING job (physical); INCOMPATIBLE_STATE, and nothing, for any other."""

    @abc.abstractmethod
    def cancel_job(self, job: str) -> Reply:
        """Have a RUNNING job end: DYING, then TERMINATED (physical). INCOMPATIBLE_STATE for any other; one
        that is DYING already: OK without effect."""

    @abc.abstractmethod
    def get_job(self, job: str) -> BridgeJob | None:
        """One job (query); None: NOT_FOUND."""
