"""The emulated cluster of a configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import pydantic

from headway.config.section import Section
from headway.model import ClusterDescription, NodeDescription, PoolDescription
from headway.partitions.description import TorusConfig

if TYPE_CHECKING:
    from headway.workload.trace_pools import TracePools


class NodesConfig(Section):
    """Equal nodes of an emulated cluster."""

    count: int = pydantic.Field(ge=1, description="how many")
    processors: int = pydantic.Field(ge=1, description="processors of each node")
    memory: int = pydantic.Field(
        default=0, ge=0, description="bytes of memory of each node; 0: memory is not managed"
    )
    gres: dict[str, int] = pydantic.Field(default_factory=dict, description="generic resources of each node")
    features: list[str] = pydantic.Field(default_factory=list)
    prefix: str = pydantic.Field(
        default="n", description="prefix of the node names, before a running number from 1"
    )
    pool: str | list[str] = pydantic.Field(
        default="pool", description="the pool that the nodes form, or the pools that share the nodes"
    )
    class_: str = pydantic.Field(
        default="", alias="class", description="class of the nodes in the energy profile"
    )

    @pydantic.field_validator("pool")
    @classmethod
    def _named(cls, value: str | list[str]) -> str | list[str]:
        # A schedule's header has each name in a line.
        names = [value] if isinstance(value, str) else value
        if not all(name.strip() and name.isprintable() for name in names):
            raise ValueError("names without line breaks")
        return value

    @property
    def pools(self) -> tuple[str, ...]:
        """The pools that they are in, each once."""
        return tuple(dict.fromkeys([self.pool] if isinstance(self.pool, str) else self.pool))


class TracePoolsConfig(Section):
    """Which pool each job of a trace is sent to. Without it, all go to the first."""

    by: Literal["partition", "queue"] = pydantic.Field(
        default="partition",
        description="the field of the trace that names the pool: partition (16) or queue (15)",
    )
    of: dict[int | str, str] = pydantic.Field(
        default_factory=dict,
        description="number or name in the trace's header -> pool, such as {0: debug, 1: batch}; default: "
        "the names in the header are names of pools",
    )
    others: str = pydantic.Field(
        default="", description="the pool of all other jobs; default: another number is an error"
    )

    def chosen(self, source: str) -> TracePools:
        """The same for a workload; ``source``: where it is configured, for messages."""
        from headway.workload.trace_pools import TracePools

        return TracePools(self.by, self.of, self.others, source)


class EmulationConfig(Section):
    """The emulated cluster of a dry run. Without a size, that of the trace's header."""

    processors: int | None = pydantic.Field(
        default=None, ge=1, description="processors of a flat pool, which has no nodes"
    )
    nodes: list[NodesConfig] = pydantic.Field(
        default_factory=list, description="nodes, instead of a flat pool"
    )
    whole_nodes: bool = pydantic.Field(
        default=False, description="give each job whole nodes, as Slurm's select/linear does"
    )
    torus: TorusConfig | None = pydantic.Field(
        default=None, description="a machine of midplanes in wired partitions, instead of a flat pool"
    )
    licences: dict[str, Annotated[int, pydantic.Field(ge=0)]] = pydantic.Field(
        default_factory=dict, description="amounts of licences, such as {matlab: 4}"
    )
    trace: str | None = pydantic.Field(
        default=None, description="trace file for `headway run` in mode dry-run"
    )
    trace_pools: TracePoolsConfig | None = pydantic.Field(
        default=None, description="pools to which the trace's jobs are sent; default: the first pool"
    )
    latency: Literal["none", "measured"] = pydantic.Field(
        default="none",
        description="measured: starts and ends take as long as the daemon with this journal has measured; "
        "none: they take no time",
    )
    faults: dict[str, Any] = pydantic.Field(
        default_factory=dict,
        description="faults that are drawn at random: node_mtbf, node_repair, requeue, latency, "
        "failure_rate, wake_failure_rate, boot_failure_rate, proxy_mtbf",
    )

    @pydantic.model_validator(mode="after")
    def _one_size(self) -> EmulationConfig:
        if self.processors is not None and self.nodes:
            raise ValueError("either processors (a flat pool) or nodes, not both")
        if self.torus is not None and (self.processors is not None or self.nodes):
            raise ValueError("either a torus or processors or nodes")
        if self.whole_nodes and not self.nodes:
            raise ValueError("whole_nodes only beside nodes, found no nodes")
        return self

    def description(self, processors: int | None = None) -> ClusterDescription | None:
        """The cluster that is configured, a flat one of ``processors``, or None if neither says a size."""
        cluster = self._bare(processors)
        return self.with_licences(cluster) if cluster is not None else None

    def with_licences(self, cluster: ClusterDescription) -> ClusterDescription:
        """The cluster with the configured licences."""
        return msgspec.structs.replace(cluster, licences=tuple(self.licences.items()))

    def _bare(self, processors: int | None) -> ClusterDescription | None:
        """Processors or nodes alone."""
        size = processors if processors is not None else self.processors
        if self.torus is not None and processors is None:
            return self.torus.description()
        if self.nodes and processors is None:
            nodes = []
            numbers: dict[str, int] = {}
            for kind in self.nodes:
                for _ in range(kind.count):
                    number = numbers[kind.prefix] = numbers.get(kind.prefix, 0) + 1
                    nodes.append(
                        NodeDescription(
                            name=f"{kind.prefix}{number}",
                            processors=kind.processors,
                            memory=kind.memory,
                            gres=tuple(sorted(kind.gres.items())),
                            features=tuple(kind.features),
                            pools=kind.pools,
                            node_class=kind.class_,
                        )
                    )
            names = dict.fromkeys(name for kind in self.nodes for name in kind.pools)
            pools = tuple(PoolDescription(name=name) for name in names)
            return ClusterDescription(name="emulated", pools=pools, nodes=tuple(nodes))
        return ClusterDescription.flat(size, name="emulated") if size is not None else None
