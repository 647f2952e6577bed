"""What the records of a listing were read as, for the next one, of which most records are the same bytes.

A record is read again where anything differs that it is read by: its own bytes, what the whole listing says
of it (:class:`Among`), the site, the partitions, the nodes, or the time, where the time matters. So a listing
is read as if nothing had been remembered, in the time of what changed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from headway.model import NodeDescription
from headway_adapters.polling.readings import Readings, digest
from headway_adapters.polling.snapshot import SnapshotJob
from headway_adapters.slurm.reader.brief import Brief
from headway_adapters.slurm.reader.dependencies import Conditions
from headway_adapters.slurm.reader.detail import Detail
from headway_adapters.slurm.reader.documents import JobRecord, job_record


class Among(msgspec.Struct, frozen=True, gc=False):
    """What the other records of a listing mean for a record of what waits."""

    #: What it depends on; of elements that share a record, what all of them do.
    conditions: Conditions
    #: What each of these elements depends on, where that differs.
    each: tuple[Conditions, ...] = ()
    #: Of these elements so many may start.
    room: float = math.inf
    #: Other elements of the array have records of their own.
    others: bool = False
    #: Most leaf switches, and seconds to wait for so few, where another listing says it.
    bound: tuple[int, float | None] | None = None


class Taken(msgspec.Struct, gc=False):
    """What one record was read as."""

    #: By id; with the details of what waits.
    jobs: tuple[tuple[str, SnapshotJob, Detail | None], ...]
    #: On nodes and not held; on nodes and held for the case of a requeue.
    loose: bool = False
    kept: bool = False
    #: What is left of an array whose waiting elements were ended together.
    rest: SnapshotJob | None = None


class Reading(msgspec.Struct, frozen=True, gc=False):
    """A record that was read, and what it was read by besides its bytes."""

    brief: Brief
    taken: Taken
    among: Among | None
    notes: frozenset[str]
    #: Until when it is read so (seconds).
    until: float
    #: The nodes of the listing had a part in it.
    by_nodes: bool


class Item(msgspec.Struct, gc=False):
    """One record of a listing."""

    #: Its JSON, or the record itself where the listing was no plain JSON.
    raw: Any
    #: What tells it from others; b"" for a record that is not remembered.
    key: bytes = b""
    known: Reading | None = None
    decoded: JobRecord | None = None
    #: What was odd about it.
    notes: frozenset[str] = frozenset()

    @property
    def record(self) -> JobRecord:
        """All of it. Raises :class:`headway.errors.Failure` for what is no JSON."""
        if self.decoded is None:
            self.decoded = self.raw if isinstance(self.raw, JobRecord) else job_record(self.raw)
        return self.decoded


class Remembered(Readings[bytes, Reading]):
    """The readings of the last listing, by the bytes of their records."""

    def __init__(self) -> None:
        super().__init__()
        self._nodes: Mapping[str, NodeDescription] = {}

    def begin_on(self, nodes: Mapping[str, NodeDescription], context: Any) -> None:
        """As :meth:`begin`; ``nodes``: what some records are read by."""
        self.begin(context)
        if any(reading.by_nodes for reading in self.readings.values()) and nodes != self._nodes:
            self.readings = {key: each for key, each in self.readings.items() if not each.by_nodes}
        self._nodes = nodes

    def item(self, raw: Any, now: float) -> Item:
        """A record of the listing, with what it was read as before, if that holds ``now`` (seconds)."""
        if isinstance(raw, JobRecord):
            return Item(raw)
        key = digest(raw)
        known = self.readings.get(key)
        return Item(raw, key, known if known is not None and now < known.until else None)
