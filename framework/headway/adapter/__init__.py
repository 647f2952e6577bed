"""What a cluster must offer: to the scheduler, to handlers of moves, to an ordinary user."""

from headway.adapter.adapter import (
    Check,
    ClusterAdapter,
    Oddity,
    Outage,
    Outcome,
    StartsWait,
    WishedFrequency,
)
from headway.adapter.replicas import KnownReplica, copying_capabilities

__all__ = [
    "Check",
    "ClusterAdapter",
    "KnownReplica",
    "Oddity",
    "Outage",
    "Outcome",
    "StartsWait",
    "WishedFrequency",
    "copying_capabilities",
]
