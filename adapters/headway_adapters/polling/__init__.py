"""What the adapters share that look at a batch system through its commands, from looks to actuators."""

from headway_adapters.polling.adapter import PollingAdapter, validated
from headway_adapters.polling.flights import Flight
from headway_adapters.polling.look import Launch, Look
from headway_adapters.polling.system import BatchSystem, Pace

__all__ = ["BatchSystem", "Flight", "Launch", "Look", "Pace", "PollingAdapter", "validated"]
