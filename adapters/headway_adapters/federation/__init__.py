"""Several clusters as one: each adapter on a thread of its own, names told apart by their cluster."""

from headway_adapters.federation.adapter import Federation

__all__ = ["Federation"]
