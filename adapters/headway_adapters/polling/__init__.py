"""What the adapters share that look at a batch system through its commands, from looks to actuators."""

from headway_adapters.polling.adapter import Flight, Launch, Look, Pace, PollingAdapter, validated

__all__ = ["Flight", "Launch", "Look", "Pace", "PollingAdapter", "validated"]
