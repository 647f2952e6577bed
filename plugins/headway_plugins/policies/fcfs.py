"""First come, first served: the strict order of submission, unless a plugin defines another order."""

from __future__ import annotations

from headway_plugins.policies.strict import Strict


class Fcfs(Strict):
    """First come, first served: start from the head of the queue until one does not fit."""
