"""What a cluster must offer: to the scheduler, to handlers of moves, to an ordinary user."""

from headway.adapter.adapter import ClusterAdapter, Outcome, WishedFrequency
from headway.adapter.condition import Check, CommandCount, Condition, Oddity, Outage, StartsWait
from headway.adapter.giving_back import Given, GivingBack
from headway.adapter.leadership import Seen
from headway.adapter.replicas import KnownReplica, copying_capabilities

__all__ = [
    "Check",
    "ClusterAdapter",
    "CommandCount",
    "Condition",
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
