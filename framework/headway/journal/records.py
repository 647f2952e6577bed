"""What a journal is told about a run, and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from headway.adapter import Outcome
from headway.decisions import Decision
from headway.events import Event
from headway.model import ClusterDescription


@dataclass(frozen=True)
class RunInfo:
    """What is known when a run begins: enough, with its events, to run it again."""

    #: "drive", "monitor" or "dry-run".
    mode: str
    #: Seconds since the epoch.
    started_at: float
    #: headway's version.
    version: str
    #: The configuration file's text.
    config_text: str
    seed: int
    #: The cluster as it was met.
    cluster: ClusterDescription
    #: The state that each plugin started from (JSON-able), by the plugin's name.
    plugin_states: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RunRecord:
    """A run in the journal."""

    id: int
    info: RunInfo
    #: Seconds since the epoch; None: it still goes on, or was killed.
    ended_at: float | None
    #: Why it ended; "" while it has not.
    end_reason: str


@dataclass(frozen=True)
class CycleRecord:
    """One recorded cycle. ``outcomes[i]`` belongs to ``decisions[i]``."""

    #: The cycle's number within its run.
    seq: int
    #: The time of the cycle, in seconds of the run's clock.
    now: float
    events: tuple[Event, ...]
    decisions: tuple[Decision, ...]
    #: As long as ``decisions``; None where no outcome was recorded.
    outcomes: tuple[Outcome | None, ...]


@dataclass(frozen=True)
class UnfinishedDecision:
    """A decision whose outcome is not known: it may have been carried out or not."""

    seq: int
    #: Its place among the cycle's decisions.
    position: int
    #: The time of its cycle.
    time: float
    decision: Decision


@dataclass(frozen=True)
class HistoryEntry:
    """One thing that happened to a job, or was decided about it."""

    run_id: int
    seq: int
    #: An event's own time, a decision's cycle's time; seconds of the run's clock.
    time: float
    kind: Literal["event", "decision"]
    what: Event | Decision
    #: Of a decision, where one was recorded.
    outcome: Outcome | None = None


@dataclass(frozen=True)
class CheckpointRecord:
    """What the plugins knew after cycle ``seq``, by the plugin's name; for a plugin that promises, what it
    knew later."""

    seq: int
    states: dict[str, Any]
