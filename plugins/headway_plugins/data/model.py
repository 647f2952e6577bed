"""A batch of jobs, the files that they read, and the machines and links between them.

T. Phan, K. Ranganathan, R. Sion: Evolving Toward the Perfect Schedule: Co-scheduling Job Assignments and Data
Replication in Wide-Area Systems Using a Genetic Algorithm. JSSPP 2005, section 3 and table 1. A job runs on
one compute node and reads *objects* (files that nobody writes). An object lies in a remote store; a replica
of it is made in one local store, from which it takes one more hop to a node. A transfer takes its size over
the bandwidth, whatever else is transferred.

:class:`Batch` has sizes and rates, :class:`Tables` the seconds that follow. What the paper leaves open:

- 1 kbps is 1,000 bits a second, and 1 MB a million bytes.
- COMPUTE of a job is ``k`` seconds for each GB of its objects, the same on all nodes.
- From a remote store to a node there are rates of their own, for jobs without replicas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from headway.errors import UserError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: COMPUTE, seconds for each GB.
K = 300.0


@dataclass(frozen=True)
class Replica:
    """A copy of an object that is there already, or on its way."""

    #: The local store.
    store: int
    #: Seconds from now at which it is complete; 0: it is.
    at: float = 0.0


@dataclass(frozen=True)
class Batch:
    """Jobs, their objects, and rates. All lists are by number: of objects, remote and local stores, nodes."""

    #: MB.
    sizes: Sequence[float]
    #: The remote store of each object.
    sources: Sequence[int]
    #: kbps: ``remote_store[source][store]``, ``store_node[store][node]``, ``remote_node[source][node]``.
    remote_store: Sequence[Sequence[float]]
    store_node: Sequence[Sequence[float]]
    remote_node: Sequence[Sequence[float]]
    #: The objects of each job.
    jobs: Sequence[Sequence[int]]
    k: float = K

    def tables(
        self, free: Sequence[float] | None = None, replicas: Mapping[int, Replica] | None = None
    ) -> Tables:
        """All times of the batch, in seconds."""
        nodes = len(self.store_node[0])

        def over(rates: Sequence[Sequence[float]], size: float, source: int) -> list[float]:
            return [size * 8000 / rate for rate in rates[source]]

        pairs = list(zip(self.sizes, self.sources, strict=True))
        return Tables(
            jobs=[tuple(objects) for objects in self.jobs],
            transfer=[over(self.remote_store, *pair) for pair in pairs],
            hop=[
                [over(self.store_node, size, store) for store in range(len(self.store_node))]
                for size in self.sizes
            ],
            direct=[over(self.remote_node, *pair) for pair in pairs],
            compute=[[self.k * sum(self.sizes[o] for o in objects) / 1000] * nodes for objects in self.jobs],
            free=free,
            replicas=replicas or {},
            stores=len(self.store_node),
        )


@dataclass(frozen=True)
class Tables:
    """A batch as seconds: table 1 of the paper.

    Raises :class:`UserError` for an object without its row, or for no node.
    """

    #: REQUIRES: the objects of each job.
    jobs: Sequence[Sequence[int]]
    #: ``transfer[object][store]``: from the object's remote store to a local store (TD).
    transfer: Sequence[Sequence[float]]
    #: ``hop[object][store][node]``: from a local store to a node.
    hop: Sequence[Sequence[Sequence[float]]]
    #: COMPUTE: ``compute[job][node]``.
    compute: Sequence[Sequence[float]]
    #: ``direct[object][node]``: from the remote store to a node; None: not known, so replicas are needed.
    direct: Sequence[Sequence[float]] | None = None
    #: NACT: seconds from now until each node is free; None: all are.
    free: Sequence[float] | None = None
    #: Objects of which a replica exists, or is being made. It stands in place of the store that a plan names.
    replicas: Mapping[int, Replica] = field(default_factory=dict)
    #: Local stores; None: as many as the tables have.
    stores: int | None = None
    #: A plan ends with its last job; False: when the last node is free, a node without jobs included.
    jobs_alone: bool = False

    def __post_init__(self) -> None:
        if self.nodes < 1:
            raise UserError("data: expected at least one node, found none")
        known = len(self.transfer)
        wrong = [o for objects in self.jobs for o in objects if not 0 <= o < known]
        if wrong:
            raise UserError(f"data: expected objects from 0 to {known - 1}, found {wrong[0]}")

    @property
    def objects(self) -> int:
        """D."""
        return len(self.transfer)

    @cached_property
    def nodes(self) -> int:
        """C."""
        for rows in (self.compute, *self.hop[:1], [self.free or ()], self.direct or ()):
            if rows and rows[0]:
                return len(rows[0])
        return 0

    @cached_property
    def local_stores(self) -> int:
        """S."""
        if self.stores is not None:
            return self.stores
        return len(self.transfer[0]) if self.transfer else 0

    @cached_property
    def begin(self) -> list[float]:
        """NACT at the beginning."""
        return list(self.free) if self.free is not None else [0.0] * self.nodes

    def direct_rows(self) -> Sequence[Sequence[float]]:
        """Times from the remote stores to the nodes. Raises :class:`UserError` if they are not known."""
        if self.direct is None:
            raise UserError("data: expected times from remote stores to nodes, found none")
        return self.direct


def lower_bound(tables: Tables, *, replicas: bool = True) -> float | None:
    """No plan ends before so many seconds; with ``replicas`` false: no plan without replicas.

    The largest of what a single job takes with its objects' best stores and its fastest node, and of the mean
    over nodes of what they do in any case: last hops and computing. None where nodes are not free at once or
    replicas exist, for which the bound does not hold.
    """
    if any(tables.begin) or tables.replicas:
        return None
    if replicas:
        transfer, hop = np.array(tables.transfer), np.array(tables.hop)
        last = [float(one.min()) for one in hop]
        whole = [float((td[:, None] + one).min()) for td, one in zip(transfer, hop, strict=True)]
    else:
        last = whole = [min(row) for row in tables.direct_rows()]
    computing = [min(row) for row in tables.compute]
    alone = [max((whole[o] for o in objects), default=0.0) for objects in tables.jobs]
    each = [max((last[o] for o in objects), default=0.0) for objects in tables.jobs]
    longest = max((a + c for a, c in zip(alone, computing, strict=True)), default=0.0)
    return max(longest, sum(e + c for e, c in zip(each, computing, strict=True)) / tables.nodes)
