"""What a run was, as its files, metrics and reports have it."""

from headway.results.results import (
    Activity,
    CapacityChange,
    DecisionRecord,
    JobResult,
    LeftWaiting,
    NodePower,
    Occupation,
    PartitionStep,
    PluginFailure,
    Refused,
    RunResult,
)

__all__ = [
    "Activity",
    "CapacityChange",
    "DecisionRecord",
    "JobResult",
    "LeftWaiting",
    "NodePower",
    "Occupation",
    "PartitionStep",
    "PluginFailure",
    "Refused",
    "RunResult",
]
