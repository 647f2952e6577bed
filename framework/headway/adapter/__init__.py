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
from headway.adapter.giving_back import Given, GivingBack
from headway.adapter.leadership import Seen
from headway.adapter.replicas import KnownReplica, copying_capabilities

__all__ = [
    "Check",
    "ClusterAdapter",
    "Given",
    "GivingBack",
    "KnownReplica",
    "Oddity",
    "Outage",
    "Outcome",
    "Seen",
    "StartsWait",
    "WishedFrequency",
    "copying_capabilities",
]
