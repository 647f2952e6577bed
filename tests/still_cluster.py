"""A real cluster without jobs, for daemons that tests start: ``--adapter still_cluster.py``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pydantic

from headway.adapter import ClusterAdapter, Outcome
from headway.decisions import Decision, Start
from headway.events import Event
from headway.model import ClusterDescription, PoolDescription
from headway_adapters.polling.bell import Bell


class StillCluster(ClusterAdapter):
    """Nothing happens in it."""

    name = "still"
    capabilities = frozenset({Start})

    class Options(pydantic.BaseModel):
        """None."""

    def __init__(self, options: Any, *, read_only: bool = False, clock: Any = None) -> None:
        self._clock = clock or time.time
        self._bell = Bell()
        self._told = False

    def describe(self) -> ClusterDescription:
        return ClusterDescription("still", (PoolDescription("batch", 4),))

    def wait(self, deadline: float | None) -> tuple[float, Sequence[Event]]:
        while self._told and not self._bell.woken:
            self._bell.sleep(60.0)
        self._told, self._bell.woken = True, False
        return self._clock(), ()

    def apply(self, now: float, decisions: Sequence[Decision]) -> Sequence[Outcome]:
        return [Outcome(True)] * len(decisions)

    def wake(self) -> None:
        self._bell.wake()
