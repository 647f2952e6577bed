"""How a command reaches the cluster: argument vectors only, never a shell."""

from headway_adapters.transport.base import Result, Transport
from headway_adapters.transport.local import LocalTransport

__all__ = ["LocalTransport", "Result", "Transport"]
