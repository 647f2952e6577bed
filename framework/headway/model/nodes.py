"""What a cluster is made of: nodes, the pools that group them, and the whole."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from headway.model.energy import EnergyProfile
from headway.model.reservations import Reservation
from headway.model.sites import Sites
from headway.model.switches import SwitchDescription
from headway.model.wiring import Torus


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
    #: What it has that no job takes anything of, such as ``(("disk", 10**12),)``: a job may ask for so much.
    sizes: tuple[tuple[str, int], ...] = ()
    #: The machine that the node is a part of, where several nodes are parts of a machine (PBS's vnodes);
    #: "": the node is a machine.
    host: str = ""


class PoolBounds(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What the batch system starts nothing beyond in a pool. 0: not bounded."""

    #: Seconds.
    max_walltime: float = 0.0
    min_nodes: int = 0
    max_nodes: int = 0
    max_processors_per_node: int = 0
    #: Bytes.
    max_memory_per_node: int = 0
    max_memory_per_processor: int = 0
    #: ``(field, QOS)``: the field does not bound jobs of this QOS.
    lifted: tuple[tuple[str, str], ...] = ()

    def of(self, qos: str) -> PoolBounds:
        """What bounds jobs of a QOS."""
        lifted = {field: 0 for field, name in self.lifted if name == qos}
        return msgspec.structs.replace(self, **lifted) if lifted else self


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
    #: What no job that runs there may exceed; None: the batch system has checked that at submission.
    bounds: PoolBounds | None = None
    #: Among pools that share nodes, jobs of a higher tier come before jobs of a lower tier, whatever their
    #: order otherwise.
    priority_tier: int = 0
    #: Names of decisions (``"Reserve"``) that other clusters of a federation can carry out and that of this
    #: pool cannot.
    lacks: tuple[str, ...] = ()

    @property
    def flat(self) -> bool:
        return self.processors > 0


class ClusterDescription(msgspec.Struct, frozen=True, gc=False):
    """A cluster when the scheduler first meets it."""

    name: str
    pools: tuple[PoolDescription, ...]
    nodes: tuple[NodeDescription, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    #: What its nodes draw; None: not stated.
    energy: EnergyProfile | None = None
    #: A start puts a job into the reservation that headway keeps for it (:attr:`Reservation.job_id`).
    enters_reservations: bool = True
    #: Where a request leaves it open, the batch system itself decides, at the start, how many processors a
    #: job gets on each of the nodes that it was sent to.
    shares_out: bool = False
    #: A move (:class:`headway.decisions.Migrate`, :class:`headway.decisions.SwapTiers`) takes time, and may
    #: fail in the end: until it is told, the job is where it was.
    moves_take_time: bool = False
    #: Other jobs may have the processors of a suspended job, which keeps its memory, generic resources and
    #: licences.
    suspended_lend: bool = False
    #: Amounts of what is counted for the whole cluster and belongs to no node, such as ``(("matlab", 4),)``.
    licences: tuple[tuple[str, int], ...] = ()
    #: How the nodes are connected, as far as the batch system says it.
    switches: tuple[SwitchDescription, ...] = ()
    #: How its nodes are wired where they are handed out in partitions that have to be booted; None: they are
    #: not.
    wiring: Torus | None = None
    #: The sites of a federation, with links, stores and datasets; None: the configuration names none.
    sites: Sites | None = None
    #: It stands in for the site's own cluster, in a dry run: pools and nodes that options name may not be
    #: there.
    stands_in: bool = False
    #: Its jobs' ids are the batch system's numbers (:mod:`headway.model.numbering`): they break ties, so that
    #: the order is the same however the jobs are listed. Else jobs are numbered as they arrive.
    numbered: bool = False

    def in_nodes(self) -> ClusterDescription:
        """The same with a node for each processor of a flat pool: P1, P2, ..., where there are several pools
        led by the pool's name."""
        if not any(pool.flat for pool in self.pools):
            return self
        several = len(self.pools) > 1
        nodes = [
            NodeDescription(
                f"{pool.name}-P{number}" if several else f"P{number}",
                1,
                pools=(pool.name,),
                node_class=pool.node_class,
            )
            for pool in self.pools
            for number in range(1, pool.processors + 1)
        ]
        pools = tuple(
            msgspec.structs.replace(pool, processors=0, node_class="") if pool.flat else pool
            for pool in self.pools
        )
        return msgspec.structs.replace(self, pools=pools, nodes=(*self.nodes, *nodes))

    def pool_sizes(self) -> dict[str, int]:
        """The usable processors of each pool; processors of a node that pools share count in each pool."""
        sizes = {pool.name: pool.processors for pool in self.pools}
        for node in self.nodes:
            if node.available:
                for name in node.pools:
                    if name in sizes:
                        sizes[name] += node.processors
        return sizes

    @classmethod
    def flat(cls, processors: int, *, name: str = "cluster", pool: str = "pool") -> ClusterDescription:
        """One flat pool of ``processors``."""
        return cls(name=name, pools=(PoolDescription(name=pool, processors=processors),))


def sharing_nodes(pools: Iterable[str], of_nodes: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """These pools in groups: pools that share nodes, directly or by way of other pools, are together. Each
    group is in the pools' order, and the groups are in the order of their first pools.

    ``of_nodes``: of each node the pools that it is in; pools that are not in ``pools`` do not count.
    """
    group_of = {name: [name] for name in pools}
    order = {name: at for at, name in enumerate(group_of)}
    for names in dict.fromkeys(of_nodes):
        known = [name for name in names if name in group_of]
        for name in known[1:]:
            group, other = group_of[known[0]], group_of[name]
            if group is not other:
                group += other
                group_of.update(dict.fromkeys(other, group))
    groups = {id(group): sorted(group, key=order.__getitem__) for group in group_of.values()}
    return [tuple(group) for group in sorted(groups.values(), key=lambda group: order[group[0]])]
