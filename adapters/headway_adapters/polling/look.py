"""One look at a whole cluster, and what became of one start that was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from headway.adapter import Outcome
from headway_adapters.polling.snapshot import Snapshot

#: What an adapter knows about a job besides its :class:`headway_adapters.polling.snapshot.SnapshotJob`.
DetailT = TypeVar("DetailT")
#: What an adapter must remember of a start to take it back.
PayloadT = TypeVar("PayloadT")


@dataclass(frozen=True)
class Look(Generic[DetailT]):
    """One look at the whole cluster."""

    snapshot: Snapshot
    #: By job id.
    details: Mapping[str, DetailT] = field(default_factory=dict)
    #: What was odd; each is logged once.
    notes: frozenset[str] = frozenset()
    #: Jobs and reservations that are there, but of which nothing could be read: they stay as they were.
    unread: frozenset[str] = frozenset()

    def kept_from(self, before: Snapshot | None) -> Look[DetailT]:
        """This look, with what was :attr:`unread` as ``before`` had it."""
        if before is None or not self.unread:
            return self
        jobs, reservations = dict(self.snapshot.jobs), dict(self.snapshot.reservations)
        for key in self.unread:
            if key in before.jobs:
                jobs.setdefault(key, before.jobs[key])
            if key in before.reservations:
                reservations.setdefault(key, before.reservations[key])
        return replace(self, snapshot=replace(self.snapshot, jobs=jobs, reservations=reservations))


@dataclass(frozen=True)
class Launch(Generic[PayloadT]):
    """What became of one start when it was asked for."""

    outcome: Outcome
    #: Kept in the :class:`headway_adapters.polling.flights.Flight`; needed only if the start was accepted.
    payload: PayloadT | None = None
