"""How long tests wait: as the conformance suite does (:mod:`headway.conformance.waiting`)."""

from headway.conformance.waiting import HANG, bound, delay, limit, until

__all__ = ["HANG", "bound", "delay", "limit", "until"]
