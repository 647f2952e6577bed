"""A machine whose nodes are handed out in wired blocks: a torus of midplanes."""

from __future__ import annotations

import msgspec

#: Seconds at a number of compute nodes, smallest first; between them linear in the logarithm of the number.
Times = tuple[tuple[int, float], ...]


class PartitionTimes(msgspec.Struct, frozen=True, gc=False):
    """How long the steps of a partition's and a job's life take, by the partition's compute nodes.

    The defaults are Table 1 of Y. Aridor et al., "Open Job Management Architecture for the Blue Gene/L
    Supercomputer", 2005.
    """

    #: Stages 1 to 3: a look at the machine, a place, the partition's record and the order to make it.
    prepare: Times = ((512, 1.0), (1024, 1.0), (2048, 2.0))
    #: From the order until the partition is ready.
    boot: Times = ((512, 26.0), (1024, 36.0), (2048, 38.0))
    #: From a ready partition until the job's first instruction.
    load: Times = ((512, 14.0), (1024, 15.0), (2048, 19.0))
    #: From the order to give the partition back until it is free.
    halt: Times = ((512, 10.0), (1024, 11.0), (2048, 11.0))


class Torus(msgspec.Struct, frozen=True, gc=False):
    """Midplanes in three dimensions, each line of them a ring of links.

    Along each dimension of length N the midplanes of a line are joined by N links, link i between the
    positions i and i + 1 modulo N. The midplanes are the cluster's nodes, one each, named by
    :func:`headway.partitions.torus.name_of`.
    """

    #: Midplanes along x, y, z.
    shape: tuple[int, int, int]
    #: Compute nodes of a midplane.
    unit: int = 512
    #: I/O nodes of a midplane; a partition has its midplanes' I/O nodes.
    io_per_midplane: int = 8
    #: How many partitions may use one link at a time, by dimension.
    capacity: tuple[int, int, int] = (1, 1, 1)
    #: How a partition is wired when its job does not say: ``mesh`` or ``torus``.
    connection: str = "mesh"
    #: Dimensions (0, 1, 2) along which no torus may be closed through switches of other midplanes.
    deny_passthrough: tuple[int, ...] = ()
    times: PartitionTimes = PartitionTimes()
    #: The stages (1 to 10) of a job's life that its proxy sees to; the other stages hold the scheduler up.
    proxy_stages: tuple[int, ...] = (4, 5, 6, 7, 8)
