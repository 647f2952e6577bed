"""What the adapters share that look at a batch system through its commands, from looks to actuators."""

from headway_adapters.polling.adapter import PollingAdapter, validated
from headway_adapters.polling.client import CommandClient, Unanswered
from headway_adapters.polling.flights import Flight
from headway_adapters.polling.look import Launch, Look
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob
from headway_adapters.polling.system import BatchSystem, Pace
from headway_adapters.polling.words import Unfit, matching

__all__ = [
    "BatchSystem",
    "CommandClient",
    "Flight",
    "Launch",
    "Look",
    "Pace",
    "PollingAdapter",
    "Snapshot",
    "SnapshotJob",
    "Unanswered",
    "Unfit",
    "matching",
    "validated",
]
