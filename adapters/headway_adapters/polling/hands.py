"""What the actuators and the moves need of the adapter that they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway import decisions as d
from headway.adapter import Outcome
from headway_adapters.polling.bell import Bell
from headway_adapters.polling.client import CommandClient
from headway_adapters.polling.orders import Orders
from headway_adapters.polling.overlay import Overlay
from headway_adapters.polling.system import BatchSystem
from headway_adapters.transport import Result


class Hands:
    """:class:`headway_adapters.polling.actuators.Host` and :class:`headway_adapters.polling.moves.Hands`."""

    #: The adapter gives both once they are made.
    overlay: Overlay[Any]
    orders: Orders[Any, Any]

    def __init__(self, system: BatchSystem[Any, Any], client: CommandClient, bell: Bell) -> None:
        self._system = system
        self._client = client
        self._bell = bell

    def act(self, argv: Sequence[str], timeout: float) -> Result:
        """Run one command that changes something. On any thread."""
        return self._client.act(argv, timeout)

    def drain(self, node: str, reason: str) -> tuple[str, ...]:
        """The command that takes a node out of service."""
        return self._system.drain(node, reason)

    def undrain(self, node: str) -> tuple[str, ...]:
        """The command that puts it back."""
        return self._system.undrain(node)

    def usable(self, node: str) -> bool:
        """Whether the batch system, at the last look, could start jobs on a node."""
        return self.overlay.usable(node)

    def order(self, decision: d.Decision) -> Outcome:
        """Carry out what a move needs."""
        return self.orders.order(decision)

    def signal(self, job_id: str, name: str) -> Outcome:
        """Send all processes of a running job a signal."""
        return self.orders.signal(job_id, name)

    def poke(self) -> None:
        """Make the adapter look around. On any thread."""
        self._bell.stir()
