"""A torus machine as a configuration describes it."""

from __future__ import annotations

from typing import Annotated, Literal

import pydantic

from headway.model import ClusterDescription, NodeDescription, PoolDescription
from headway.model.wiring import PartitionTimes, Torus
from headway.partitions.cabling import capacity_of_cables
from headway.partitions.cycle import PRESETS
from headway.partitions.torus import Geometry

#: Seconds of a step of a partition's life at numbers of compute nodes.
_SecondsBySize = dict[Annotated[int, pydantic.Field(ge=1)], Annotated[float, pydantic.Field(ge=0)]]
_Extent = Annotated[int, pydantic.Field(ge=1, le=64)]
_Capacity = Annotated[int, pydantic.Field(ge=1)]


class PartitionTimesConfig(pydantic.BaseModel):
    """How long partitions take, in seconds by their number of compute nodes, such as {512: 26, 1024: 36}."""

    model_config = pydantic.ConfigDict(extra="forbid", defer_build=True)

    prepare: _SecondsBySize = pydantic.Field(
        default_factory=dict,
        description="seconds to choose a place and give the order; meanwhile no other job begins",
    )
    boot: _SecondsBySize = pydantic.Field(
        default_factory=dict, description="seconds from the order until the partition is ready"
    )
    load: _SecondsBySize = pydantic.Field(
        default_factory=dict, description="seconds from a ready partition to the first instruction"
    )
    halt: _SecondsBySize = pydantic.Field(
        default_factory=dict, description="seconds until the partition is free again"
    )


class TorusConfig(pydantic.BaseModel):
    """Midplanes in three dimensions that are handed out in wired partitions, which have to be booted."""

    model_config = pydantic.ConfigDict(extra="forbid", defer_build=True)

    shape: tuple[_Extent, _Extent, _Extent] = pydantic.Field(
        description="numbers of midplanes along x, y and z"
    )
    unit: int = pydantic.Field(default=512, ge=1, description="number of compute nodes of a midplane")
    io_per_midplane: int = pydantic.Field(default=8, ge=1, description="number of I/O nodes of a midplane")
    connection: Literal["mesh", "torus"] = pydantic.Field(
        default="mesh", description="wiring of a partition whose job does not name it"
    )
    capacity: tuple[_Capacity, _Capacity, _Capacity] = pydantic.Field(
        default=(1, 1, 1), description="number of partitions that may use a link at a time, along x, y and z"
    )
    cables: list[tuple[str, str]] = pydantic.Field(
        default_factory=list,
        description="every cable, as [m0-0-0, m1-0-0]; the cables are checked, and their number is the "
        "capacity",
    )
    deny_passthrough: list[Literal["x", "y", "z"]] = pydantic.Field(
        default_factory=list,
        description="dimensions along which no torus is closed through the switches of other midplanes",
    )
    proxy_stages: Literal["loadleveler", "all", "minimal", "slurm"] = pydantic.Field(
        default="loadleveler", description="stages of a job during which the scheduler waits"
    )
    times: PartitionTimesConfig = pydantic.Field(default_factory=PartitionTimesConfig)
    pool: str = pydantic.Field(default="pool", description="pool that the midplanes form")

    def description(self) -> ClusterDescription:
        """The machine as a cluster, a node for each midplane.

        Raises :class:`UserError` when the cables do not close the lines.
        """
        capacity = self.capacity
        if self.cables:
            capacity = capacity_of_cables(self.shape, self.cables, "emulation.torus.cables")
        given = {name: tuple(sorted(times.items())) for name, times in self.times if times}
        torus = Torus(
            self.shape,
            self.unit,
            self.io_per_midplane,
            capacity,
            self.connection,
            tuple(sorted("xyz".index(name) for name in set(self.deny_passthrough))),
            PartitionTimes(**given),
            PRESETS[self.proxy_stages],
        )
        nodes = tuple(
            NodeDescription(name=name, processors=self.unit, pools=(self.pool,))
            for name in Geometry(torus).names
        )
        return ClusterDescription(
            name="emulated", pools=(PoolDescription(name=self.pool),), nodes=nodes, wiring=torus
        )
