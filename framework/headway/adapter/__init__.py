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

__all__ = ["Check", "ClusterAdapter", "Oddity", "Outage", "Outcome", "StartsWait", "WishedFrequency"]
