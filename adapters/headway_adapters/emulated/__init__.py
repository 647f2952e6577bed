"""The built-in emulated cluster: virtual time behind the same interface as a batch system."""

from headway_adapters.emulated.adapter import EmulatedAdapter
from headway_adapters.emulated.faults import Faults
from headway_adapters.emulated.physics import Physics

__all__ = ["EmulatedAdapter", "Faults", "Physics"]
