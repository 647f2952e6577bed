"""How a command reaches the cluster: argument vectors only, never a shell of ours.

On another machine a shell cannot be avoided, for SSH hands each command to the user's login shell;
:mod:`headway_adapters.transport.quoting` is the only place that writes for it.
"""

from headway_adapters.transport.base import Result, Transport
from headway_adapters.transport.local import LocalTransport
from headway_adapters.transport.make import make_transport
from headway_adapters.transport.options import SshOptions, TransportOptions

__all__ = ["LocalTransport", "Result", "SshOptions", "Transport", "TransportOptions", "make_transport"]
