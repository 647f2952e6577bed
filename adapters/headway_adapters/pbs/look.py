"""One look at a PBS cluster, with what the commands need besides the snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headway_adapters.pbs import reader
from headway_adapters.polling import Look
from headway_adapters.polling.snapshot import SnapshotJob


@dataclass(frozen=True)
class PbsLook(Look[reader.Detail]):
    """The snapshot, and what the commands need besides."""

    #: Vnode -> host, and host -> vnodes.
    hosts: Mapping[str, str] = field(default_factory=dict)
    vnodes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    #: Our reservations' ids -> PBS's.
    reservations: Mapping[str, str] = field(default_factory=dict)
    #: Jobs with a place, also jobs of queues that headway does not manage: job id -> request and placement.
    placed: Mapping[str, SnapshotJob] = field(default_factory=dict)
