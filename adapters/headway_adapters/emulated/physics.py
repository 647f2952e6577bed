"""How fast a running job goes: the product of what the physics modules say."""

from __future__ import annotations

from typing import Protocol

from headway_adapters.emulated.execution import Execution


class Physics(Protocol):
    """One influence on a job's speed (node class, frequency, tier, oversubscription, ...).

    Plugins contribute modules through the hook ``register_physics``.
    """

    def rate(self, execution: Execution, now: float) -> float:
        """A factor on the job's rate, 1 for no influence; not negative.

        Asked when an execution begins; what changes a rate later has
        :meth:`~headway_adapters.emulated.rates.Rates.reconsider` ask again.
        """
        ...
