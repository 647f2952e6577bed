"""What a cluster is made of: nodes, the pools that group them, and the whole."""

from __future__ import annotations

import msgspec

from headway.model.energy import EnergyProfile
from headway.model.reservations import Reservation


class NodeDescription(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A node as the batch system describes it."""

    name: str
    processors: int
    #: Bytes; 0: the batch system does not manage memory on this node.
    memory: int = 0
    gres: tuple[tuple[str, int], ...] = ()
    features: tuple[str, ...] = ()
    #: Names of the pools that it belongs to.
    pools: tuple[str, ...] = ()
    #: False: down, drained, or otherwise not usable for new jobs.
    available: bool = True
    #: Why it is not available.
    reason: str = ""
    #: Name of its hardware class ("" when all nodes are alike).
    node_class: str = ""
    #: Seconds that it takes to wake once it sleeps.
    wake_time: float = 0.0


class PoolDescription(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Nodes, or a plain count of processors, that one queue discipline rules.

    A *flat* pool has ``processors`` and no nodes: what a trace replay uses. A node pool has
    ``processors == 0`` here; its size is the sum over the nodes that name it.
    """

    name: str
    processors: int = 0
    #: Seconds; jobs that ask for more are refused by the batch system. 0: no limit.
    max_walltime: float = 0.0
    #: False: jobs are accepted but the pool starts none (a closed partition).
    open: bool = True
    #: Hardware class of a flat pool's processors ("" when all are alike).
    node_class: str = ""

    @property
    def flat(self) -> bool:
        return self.processors > 0


class ClusterDescription(msgspec.Struct, frozen=True, gc=False):
    """A cluster when the scheduler first meets it."""

    name: str
    pools: tuple[PoolDescription, ...]
    nodes: tuple[NodeDescription, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    #: What its nodes draw; None: nobody said.
    energy: EnergyProfile | None = None
    #: A start puts a job into the reservation that headway keeps for it (:attr:`Reservation.job_id`).
    enters_reservations: bool = True

    @classmethod
    def flat(cls, processors: int, *, name: str = "cluster", pool: str = "pool") -> ClusterDescription:
        """One flat pool of ``processors``."""
        return cls(name=name, pools=(PoolDescription(name=pool, processors=processors),))
