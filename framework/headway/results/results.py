"""What a run produced: one record a job, and what is needed to judge them.

The emulated cluster fills this in; metrics, reports and writers read it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from headway.decisions import Decision
from headway.model import ClusterDescription, JobDescription, Placement
from headway.model.classes import ClassBounds


class Occupation(msgspec.Struct, frozen=True, gc=False):
    """Processors that a member of a bundle had, or a job between two suspensions. Times are absolute
    seconds of the run's clock."""

    start: float
    #: None: until the end of the run.
    end: float | None
    processors: int
    placement: Placement = ()


class JobResult(msgspec.Struct, gc=False):
    """A job's course. Times are absolute seconds of the run's clock."""

    job: JobDescription
    #: Start of its last execution; None: never started.
    start_time: float | None
    #: None: still running (or waiting) when the run ended.
    end_time: float | None
    #: One of :data:`headway.events.OUTCOMES`, or "running", "pending", "refused": a plugin refused it, or its
    #: pool could never hold it.
    state: str
    #: Seconds of execution, start to end; less than end - start if it was suspended or paused. Where
    #: processors are shared (:mod:`headway.workload.sharing`), seconds of work at full speed.
    runtime: float
    placement: Placement = ()
    #: Pool that it ran in.
    pool: str = ""
    #: Row of the trace's record array that it came from; -1: from no trace.
    row: int = -1
    #: How often it was started (more than once after requeues and node failures).
    starts: int = 1
    #: Hertz, at its end; None: the nodes' own.
    frequency: float | None = None
    #: Since when it ran as it did at its end (frequency, size, nodes, not suspended); None: since its
    #: start. What was before is among the run's activities.
    active_since: float | None = None
    #: How often it was moved with its progress, began again elsewhere while it ran, and was brought from the
    #: background to the foreground of its own processors.
    migrations: int = 0
    restarts: int = 0
    promotions: int = 0
    #: What it had if it ran as a bundle of subjobs, in the order of their starts, instead of the processors
    #: that it asked for.
    members: tuple[Occupation, ...] = ()
    #: When it had its processors, if others might have them while it was suspended; else from its start to
    #: its end.
    spans: tuple[Occupation, ...] = ()

    @property
    def several(self) -> tuple[Occupation, ...]:
        """What it had when, if that is not all from its start to its end."""
        return self.members or self.spans


class Activity(msgspec.Struct, frozen=True, gc=False):
    """A span in which a job ran unchanged, before the span that its :class:`JobResult` ends with.

    There is one for each span between two changes of its frequency, size or nodes, or suspensions,
    and for each execution that was cut off and repeated.
    """

    job_id: str
    #: Absolute seconds.
    start: float
    end: float
    pool: str
    processors: int
    placement: Placement = ()
    frequency: float | None = None


class NodePower(msgspec.Struct, frozen=True, gc=False):
    """From ``time`` on the node is in this power state ("on", "falling asleep", "asleep", "waking")."""

    time: float
    node: str
    power: str


class PartitionStep(msgspec.Struct, frozen=True, gc=False):
    """From ``time`` on a partition of a machine that wires and boots them is in this state."""

    time: float
    partition: str
    nodes: tuple[str, ...]
    connection: str
    #: "promised" (no other job gets its hardware), "configuring", "ready", "loading" (its job has it, and
    #: executes nothing yet), "busy", "deallocating", "free" or "error".
    state: str
    #: The job that it was made for, or that is on it.
    job_id: str = ""


class Refused(msgspec.Struct, frozen=True):
    """A job that was not accepted, or waited in vain to the end of the run, and why."""

    job_id: str
    reason: str
    #: Line of the trace file, 0 if unknown.
    line: int = 0


class LeftWaiting(msgspec.Struct, frozen=True):
    """Jobs that never started, for the same reason."""

    #: How many, and the first of them.
    jobs: int
    first: str
    #: Sentences, as they are about the first.
    why: str


class PluginFailure(msgspec.Struct, frozen=True):
    """A plugin that raised in one of its hooks during a run."""

    plugin: str
    hook: str
    times: int
    #: What it said first, and where: file and line, "" if unknown.
    message: str
    place: str
    #: Whether it never answered in this hook.
    always: bool

    def __str__(self) -> str:
        often = "once" if self.times == 1 else f"{self.times} times"
        ever = ", at every call" if self.always else ""
        place = f" ({self.place})" if self.place else ""
        return f"plugin {self.plugin!r} failed {often} in hook {self.hook}{ever}: {self.message}{place}"


class DecisionRecord(msgspec.Struct, frozen=True, gc=False):
    """A decision that was taken, when, and what became of it."""

    time: float
    decision: Decision
    accepted: bool = True
    message: str = ""


class CapacityChange(msgspec.Struct, frozen=True):
    """From ``time`` on, the pool has ``processors`` usable processors (failures, repairs)."""

    time: float
    pool: str
    processors: int


@dataclass
class RunResult:
    """A whole run of one configuration over one workload."""

    #: Short label, such as the policy's name.
    label: str
    cluster: ClusterDescription
    #: In order of submission.
    jobs: Sequence[JobResult]
    refused: Sequence[Refused] = ()
    #: The jobs that waited to the end of the run for something that may still come, by reason.
    left_waiting: Sequence[LeftWaiting] = ()
    #: The plugins that raised.
    failures: Sequence[PluginFailure] = ()
    decisions: Sequence[DecisionRecord] = ()
    capacity: Sequence[CapacityChange] = ()
    #: What jobs did before the last span that their records tell of, in order of time.
    activities: Sequence[Activity] = ()
    #: Changes of nodes' power states, including nodes that were not on at the beginning.
    power: Sequence[NodePower] = ()
    #: What became of the partitions of a machine that wires and boots them, in order of time.
    partitions: Sequence[PartitionStep] = ()
    #: Epoch second of time 0 of the run's clock; 0 if unknown (then times are relative).
    epoch: float = 0.0
    seed: int = 0
    #: Scheduling cycles run, and wall-clock seconds they took all together.
    cycles: int = 0
    wall_seconds: float = 0.0
    #: Metrics of the run's own plugins, by name: functions of this result.
    contributed: dict[str, Callable[[RunResult], Any]] = field(default_factory=dict)
    #: Free-form facts for the report: trace file, policy options, version.
    about: dict[str, str] = field(default_factory=dict)
    #: Where narrow and short jobs end, for the metrics by class.
    class_bounds: ClassBounds = field(default_factory=ClassBounds)
    #: When the run began, on the run's clock; None: with its first submission. Needed where jobs
    #: were submitted before it, as in a copy of a live queue.
    begin: float | None = None
    #: What ran it: the enabled plugins in their order, each with its options.
    plugins: Sequence[tuple[str, Mapping[str, Any]]] = ()
    #: Runs some of its jobs (in order of submission) again under the same configuration, each for as long
    #: as it ran
    #: here; or why that cannot be done.
    again: Callable[[Sequence[JobResult]], RunResult] | str = "the run was not a run of the emulated cluster"
    #: What callers computed of the run and need more than once, each figure under a name of its own.
    computed: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
