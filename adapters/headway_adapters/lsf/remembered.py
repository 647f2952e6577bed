"""How the jobs of the last look were read, for the next one, in which most jobs are told of as before.

A job is read again where anything differs that it is read by: what the listings say of it (the same records
are the same objects, :mod:`headway_adapters.lsf.parsed`), what it waits for, its array's limit, how the last
snapshot shows it, the queues' limits, hosts, groups or shared resources, or the time, where these matter. So
jobs are read as if nothing had been remembered.
"""

from __future__ import annotations

from typing import Any

import msgspec

from headway_adapters.lsf.depend import Condition
from headway_adapters.lsf.detail import Detail
from headway_adapters.lsf.listing import Facts, Row
from headway_adapters.polling.readings import Readings
from headway_adapters.polling.snapshot import SnapshotJob


class Reading(msgspec.Struct, frozen=True, gc=False):
    """How a job was read, and what it was read by."""

    row: Row
    told: Facts | None
    #: What is left of its dependency condition.
    condition: Condition
    #: Why its array keeps it waiting, "" if it does not; None for a job that nobody asked it about.
    over: str | None
    job: SnapshotJob
    #: Of a pending job.
    detail: Detail | None
    notes: frozenset[str]
    #: What it had reserved of licences and gave back.
    given_back: tuple[tuple[str, int], ...]
    #: Until when it is read so (seconds).
    until: float
    #: The snapshot before had a part in it.
    by_past: bool
    #: It is read so as well while the snapshot does not show it.
    unseen: bool

    def holds(self, row: Row, told: Facts | None, past: SnapshotJob | None, now: float) -> bool:
        """Whether a job is read so that these tell of; ``past``: how the snapshot before shows it."""
        return (
            self.row is row and self.told is told and now < self.until
            and (not self.by_past or past is self.job or (past is None and self.unseen))
        )  # fmt: skip


class Remembered(Readings[str, Reading]):
    """The readings of the last look."""

    def __init__(self) -> None:
        super().__init__()
        self._now = self._seen = 0.0

    def begin_at(self, now: float, seen: float, context: Any) -> None:
        """As :meth:`begin`. ``now``, and ``seen`` of the snapshot before: absolute seconds; what was read at
        a later time than these is forgotten."""
        self.begin(context)
        if now < self._now or seen < self._seen:
            self.readings = {}
        self._now, self._seen = now, seen
